// All episodes as a table: only the rows in sight exist.
const ROW = 36;
const holder = document.getElementById("table");
const COLUMNS = [
  { name: "Task", class: "c-task", value: (e) => `${e.shown}`, sort: (a, b) => a.taskOrder - b.taskOrder || a.index - b.index },
  { name: "Episode", class: "num", value: (e) => number(e.index), sort: (a, b) => a.index - b.index },
  { name: "Outcome", class: "c-end", value: (e) => make("span", { class: `mark ${e.end}` }, WORDS[e.end]), sort: (a, b) => a.rank - b.rank },
  { name: "Steps", class: "num", value: (e) => number(e.steps), sort: (a, b) => a.steps - b.steps },
  { name: "Reward", class: "num opt", value: (e) => number(e.reward), sort: (a, b) => (a.reward ?? -Infinity) - (b.reward ?? -Infinity) || 0 },
  { name: "Seconds", class: "num opt", value: (e) => number(e.seconds), sort: (a, b) => a.seconds - b.seconds },
  { name: "Seed", class: "num opt", value: (e) => String(e.seed), sort: (a, b) => a.seed - b.seed },
];
let rows = [];
let sorting = { column: 2, down: false };

const body = make("tbody");
const heads = COLUMNS.map((column, i) =>
  make("th", { scope: "col", class: column.class }, make("button", { type: "button", onclick: () => sortBy(i) }, column.name)));
const pane = make("div", { class: "window", tabindex: 0, role: "region", "aria-label": "Episodes" },
  make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body));
holder.append(pane);
pane.addEventListener("scroll", () => requestAnimationFrame(drawRows));
body.addEventListener("click", (event) => {
  const row = event.target.closest("tr[data-at]");
  if (row) openEpisode(rows[Number(row.dataset.at)]);
});

function gap(height) {
  const cell = make("td"); // one cell: on a phone some columns are not there
  cell.style.height = `${height}px`;
  return make("tr", { class: "gap", "aria-hidden": "true" }, cell);
}

function drawRows() {
  const first = Math.max(0, Math.floor(pane.scrollTop / ROW) - 8);
  const last = Math.min(rows.length, first + Math.ceil((pane.clientHeight || 600) / ROW) + 16);
  const drawn = rows.slice(first, last).map((e, i) => make("tr", { "data-at": first + i }, ...COLUMNS.map((column, c) => {
    const value = column.value(e);
    if (c > 0) return make("td", { class: column.class }, value);
    return make("td", { class: column.class, title: e.shown }, swatch(e.run), make("a", { href: hashOf(e) }, value));
  })));
  body.replaceChildren(gap(first * ROW), ...drawn, gap((rows.length - last) * ROW));
}

function sortBy(column) {
  sorting = { column, down: sorting.column === column && !sorting.down };
  showTable(rows);
}

function showTable(list) {
  const compare = COLUMNS[sorting.column].sort;
  const sign = sorting.down ? -1 : 1;
  rows = [...list].sort((a, b) => sign * compare(a, b) || a.taskOrder - b.taskOrder || a.index - b.index || a.run - b.run);
  heads.forEach((head, i) => {
    if (i === sorting.column) head.setAttribute("aria-sort", sorting.down ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  });
  pane.scrollTop = 0;
  drawRows();
}
