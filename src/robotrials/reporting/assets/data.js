// The page's data, decoded: a flat list of episodes, and how to speak about one.
const raw = JSON.parse(document.getElementById("data").textContent);
const several = raw.runs.length > 1;
const WORDS = { failure: "failure", exception: "exception", time_limit: "time limit", error: "error", success: "success" };
const hasFailed = (e) => ["failure", "exception", "time_limit"].includes(e.end);

const episodes = [];
raw.runs.forEach((run, r) => {
  const c = run.episodes;
  for (let i = 0; i < c.task.length; i++) {
    const task = run.tasks[c.task[i]];
    const name = `${task.suite}/${task.name}`;
    episodes.push({
      run: r, rank: c.end[i], end: raw.ends[c.end[i]], task, taskOrder: c.task[i], taskName: name, key: `${name}/${c.index[i]}`,
      shown: task.suite === task.name ? task.name : name, index: c.index[i], seed: c.seed[i], steps: c.steps[i],
      reward: c.reward[i], seconds: c.seconds[i], attempt: c.attempt[i], video: c.video[i],
      error: c.error[i] === null ? null : run.errors[c.error[i]],
    });
  }
});
episodes.sort((a, b) => a.rank - b.rank || a.taskOrder - b.taskOrder || a.index - b.index || a.run - b.run);
const sameEpisode = new Map();
for (const e of episodes) {
  if (!sameEpisode.has(e.key)) sameEpisode.set(e.key, []);
  sameEpisode.get(e.key)[e.run] = e;
}

// An element. Text is set as text, never as markup: names and errors are other people's.
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// A long identifier breaks after its dashes and underscores.
function breakable(name) {
  return name.split(/(?<=[_/-])/).flatMap((part, i) => (i ? [make("wbr"), part] : [part]));
}

function swatch(run, more = "") {
  return several ? make("span", { class: `swatch run${run % 6} ${more}`, title: raw.runs[run].label }) : null;
}

function number(value) {
  if (value === null || value === undefined) return "–";
  return Number.isInteger(value) || Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en") : value.toPrecision(3);
}

// Videos inside the page are decoded when they are first looked at, and never before.
let inside = null;
const made = new Map();
function address(video) {
  if (!video.startsWith("#")) return video;
  if (!made.has(video)) {
    inside ??= JSON.parse(document.getElementById("videos").textContent);
    const bytes = Uint8Array.from(atob(inside[video]), (character) => character.charCodeAt(0));
    made.set(video, URL.createObjectURL(new Blob([bytes], { type: "video/mp4" })));
  }
  return made.get(video);
}

// #episode=easy/reach-v3/3&run=1&outcome=failure&find=1003: what the address bar says. The filters are in it, so that a
// link shows what its sender saw; "run" is the run of the open episode, "of" the filter.
const PRESET = { outcome: "all", task: "", of: "", find: "", view: episodes.some((e) => e.video) ? "gallery" : "table" };
const filter = { ...PRESET };
function place() {
  return new URLSearchParams(location.hash.slice(1));
}
function episodeOf(parameters) {
  const found = sameEpisode.get(parameters.get("episode") ?? "");
  return found ? found[Number(parameters.get("run") ?? 0)] ?? found.find(Boolean) : undefined;
}
function hashOf(e) {
  const written = (value) => encodeURIComponent(value).replaceAll("%2F", "/");
  const parts = e ? [`episode=${written(e.key)}`, ...(several ? [`run=${e.run}`] : [])] : [];
  for (const key of Object.keys(PRESET)) if (filter[key] !== PRESET[key]) parts.push(`${key}=${written(filter[key])}`);
  return parts.length ? `#${parts.join("&")}` : "";
}
function rewriteAddress(e) {
  history.replaceState(null, "", location.pathname + location.search + hashOf(e));
}
