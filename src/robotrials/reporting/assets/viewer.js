// The dialog of one episode: its video (beside those of the other runs), its facts, the way to the next one.
const viewer = document.getElementById("viewer");
let speed = 1;
let current = null;

function openEpisode(e) {
  if (location.hash === hashOf(e)) showEpisode(e);
  else location.hash = hashOf(e);
}

function showEpisode(e) {
  current = e;
  const shown = filtered.indexOf(e);
  const step = (by) => filtered[shown + by];
  const go = (label, by, title) => make("button", { type: "button", title, disabled: !step(by), onclick: () => openEpisode(step(by)) }, label);
  const head = make("div", { class: "view-head" },
    make("h2", { id: "viewer-title", tabindex: -1, autofocus: true }, ...breakable(`${e.shown} · episode ${e.index}`)),
    make("span", { class: `mark ${e.end}` }, WORDS[e.end]),
    make("span", { class: "chips" }, go("‹ Previous", -1, "left arrow"), go("Next ›", 1, "right arrow"),
      make("button", { type: "button", onclick: () => viewer.close(), "aria-label": "Close" }, "✕")));
  const peers = several ? sameEpisode.get(e.key).filter(Boolean) : [e];
  const screens = make("div", { class: "screens" }, ...peers.map(screen));
  viewer.replaceChildren(head, screens, speeds(), about(e), ...(e.error ? [make("pre", {}, e.error)] : []));
  setSpeed(speed);
  if (!viewer.open) viewer.showModal();
  viewer.scrollTop = 0;
}

function screen(e) {
  const caption = several
    ? make("figcaption", {}, swatch(e.run), raw.runs[e.run].label, make("span", { class: `mark ${e.end}` }, WORDS[e.end]))
    : null;
  if (!e.video) return make("figure", {}, make("div", { class: "none" }, "no video of this episode"), caption);
  const video = make("video", { controls: true, playsinline: true, loop: true, preload: "auto", src: address(e.video) });
  video.muted = true;
  video.autoplay = true;
  video.addEventListener("error", () => video.replaceWith(make("div", { class: "none" }, `the video is not here: ${e.video}`)));
  return make("figure", {}, video, caption);
}

function speeds() {
  const buttons = [0.5, 1, 2, 4].map((rate) =>
    make("button", { type: "button", "data-rate": rate, onclick: () => setSpeed(rate) }, `${rate}×`));
  return make("div", { class: "speeds" }, "Speed", make("span", { class: "chips" }, ...buttons));
}

function setSpeed(rate) {
  speed = rate;
  for (const video of viewer.querySelectorAll("video")) video.playbackRate = video.defaultPlaybackRate = rate;
  for (const button of viewer.querySelectorAll("[data-rate]")) button.setAttribute("aria-pressed", Number(button.dataset.rate) === rate);
}

function about(e) {
  const facts = [
    ["Seed", String(e.seed)], ["Steps", `${number(e.steps)} of ${number(e.task.max_steps)}`], ["Reward, summed", number(e.reward)],
    ["Seconds it took", number(e.seconds)], ["Attempt", String(e.attempt)],
    ["Run", `${raw.runs[e.run].policy} (${raw.runs[e.run].label})`],
  ];
  const entry = ([name, value], wide = false) => make("div", { class: wide ? "wide" : null }, make("dt", {}, name), make("dd", {}, value));
  return make("dl", { class: "about" }, e.task.instruction ? entry(["Instruction", e.task.instruction], true) : null, ...facts.map((fact) => entry(fact)));
}

viewer.addEventListener("close", () => {
  viewer.replaceChildren();
  current = null;
  if (place().has("episode")) rewriteAddress(null);
});
viewer.addEventListener("click", (event) => { if (event.target === viewer) viewer.close(); });
viewer.addEventListener("keydown", (event) => {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!by || event.target.tagName === "VIDEO" || !current) return;
  const next = filtered[filtered.indexOf(current) + by];
  if (next) openEpisode(next);
});

function followHash() {
  const parameters = place();
  readFilters(parameters);
  if (!parameters.has("episode")) return viewer.open ? viewer.close() : undefined;
  const e = episodeOf(parameters);
  if (e) showEpisode(e);
}
addEventListener("hashchange", followHash);
