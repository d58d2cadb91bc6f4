// Filters, the two views, and the sorting of the table of tasks.
const OUTCOMES = [
  ["all", "All", () => true],
  ["failure", "Failures", hasFailed],
  ["error", "Errors", (e) => e.end === "error"],
  ["success", "Successes", (e) => e.end === "success"],
  // The same episode succeeded in one run and not in another.
  ...(several ? [["differs", "Runs differ", (e) => new Set(sameEpisode.get(e.key).filter(Boolean).map((o) => o.end === "success")).size > 1]] : []),
];
let filtered = episodes;

const byId = (id) => document.getElementById(id);
const outcomeButtons = OUTCOMES.map(([key, name]) =>
  make("button", { type: "button", "data-outcome": key, onclick: () => change({ outcome: key }) }, name, make("b")));
byId("filter-outcome").append(...outcomeButtons);
byId("filter-task")?.addEventListener("change", (event) => change({ task: event.target.value }));
byId("filter-run")?.addEventListener("change", (event) => change({ of: event.target.value }));
byId("filter-text").addEventListener("input", (event) => change({ find: event.target.value.trim() }));
const viewButtons = document.querySelectorAll("[data-view]");
for (const button of viewButtons) button.addEventListener("click", () => change({ view: button.dataset.view }));

for (const link of document.querySelectorAll("a[data-task]")) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    const task = link.dataset.task;
    const failed = episodes.some((e) => e.taskName === task && hasFailed(e));
    change({ task, outcome: failed ? "failure" : "all" });
    byId("section-episodes").scrollIntoView();
  });
}

function matches(e) {
  if (filter.task && e.taskName !== filter.task) return false;
  if (filter.of && e.run !== Number(filter.of)) return false;
  const wanted = filter.find.toLowerCase();
  return !wanted || e.taskName.toLowerCase().includes(wanted) || String(e.seed) === wanted || (e.error ?? "").toLowerCase().includes(wanted);
}

function change(values) {
  Object.assign(filter, values);
  rewriteAddress(current);
  show();
}

// The filters that the address names; an address without any, such as that of a section, changes none.
function readFilters(parameters) {
  const known = {
    outcome: OUTCOMES.map(([key]) => key), view: ["gallery", "table"],
    task: ["", ...new Set(episodes.map((e) => e.taskName))], of: ["", ...raw.runs.map((_, i) => String(i))],
  };
  const named = Object.keys(PRESET).filter((key) => parameters.has(key));
  if (!named.length && !(parameters.has("episode") || location.hash === "")) return;
  const values = Object.fromEntries(Object.keys(PRESET).map((key) => {
    const value = parameters.get(key) ?? PRESET[key];
    return [key, known[key] && !known[key].includes(value) ? PRESET[key] : value];
  }));
  if (Object.keys(PRESET).every((key) => filter[key] === values[key])) return;
  Object.assign(filter, values);
  show();
}

function show() {
  for (const [control, key] of [["filter-task", "task"], ["filter-run", "of"]]) if (byId(control)) byId(control).value = filter[key];
  if (byId("filter-text").value.trim() !== filter.find) byId("filter-text").value = filter.find;
  const { view } = filter;
  const within = episodes.filter(matches);
  OUTCOMES.forEach(([key, , test], i) => {
    const n = within.filter(test).length;
    outcomeButtons[i].querySelector("b").textContent = n.toLocaleString("en");
    outcomeButtons[i].setAttribute("aria-pressed", filter.outcome === key);
    outcomeButtons[i].disabled = n === 0 && filter.outcome !== key;
  });
  filtered = within.filter(OUTCOMES.find(([key]) => key === filter.outcome)[2]);
  const videos = filtered.filter((e) => e.video).length;
  byId("shown").textContent = `${filtered.length.toLocaleString("en")} shown, ${videos.toLocaleString("en")} with video`;
  const silent = filtered.length - videos;
  byId("no-video").hidden = view !== "gallery" || silent === 0;
  byId("no-video").textContent = `${silent.toLocaleString("en")} of these ${silent === 1 ? "has" : "have"} no video: they are in the table. To record more, run with --eval.record=failures or all.`;
  gallery.hidden = view !== "gallery";
  holder.hidden = view !== "table";
  for (const button of viewButtons) button.setAttribute("aria-pressed", button.dataset.view === view);
  if (view === "gallery") showGallery(filtered);
  else showTable(filtered);
}

function sortTasks(button) {
  const head = button.closest("th");
  const numeric = button.dataset.kind === "number";
  const down = head.getAttribute("aria-sort") === "ascending" || (numeric && !head.hasAttribute("aria-sort"));
  const list = document.querySelector("#tasks tbody.tasks");
  const value = (row) => row.dataset[button.dataset.key];
  const compare = numeric ? (a, b) => Number(value(a)) - Number(value(b)) : (a, b) => value(a).localeCompare(value(b), "en", { numeric: true });
  list.append(...[...list.rows].sort((a, b) => (down ? -1 : 1) * compare(a, b)));
  for (const other of document.querySelectorAll("#tasks thead th")) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
}
for (const button of document.querySelectorAll("#tasks thead button")) button.addEventListener("click", () => sortTasks(button));

// A command is copied; where the browser forbids that, it is selected, so that it can be.
for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    const code = button.previousElementSibling;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      byId("copied").textContent = "copied";
    } catch {
      getSelection().selectAllChildren(code);
      byId("copied").textContent = document.execCommand("copy") ? "copied" : "selected: copy it with the keyboard";
    }
    setTimeout(() => { byId("copied").textContent = ""; }, 3000);
  });
}

show();
followHash();
