// Sorting, filtering and hiding of columns. Ranks of every column are in the data; the page computes none.
const raw = JSON.parse(document.getElementById("data").textContent);
const board = document.getElementById("board");
const list = board.tBodies[0];
const divider = list.querySelector(".divider");
const rows = [...list.rows].filter((row) => row !== divider);
const buttons = [...board.querySelectorAll("thead button")];
const NUMERIC = new Set(["steps", "batch"]);
const FIRST_COLUMN = 6;
let sorting = { key: "c0", down: true };

const byId = (id) => document.getElementById(id);
const cellOf = (row, column) => raw.rows[Number(row.dataset.at)][column];
const byName = (a, b) => a.dataset.name.localeCompare(b.dataset.name, "en", { numeric: true });

function compare(a, b) {
  const { key } = sorting;
  if (/^c\d+$/.test(key)) return cellOf(a, Number(key.slice(1)))[1] - cellOf(b, Number(key.slice(1)))[1];
  if (NUMERIC.has(key)) return Number(a.dataset[key]) - Number(b.dataset[key]);
  return a.dataset[key].localeCompare(b.dataset[key], "en", { numeric: true });
}

// Ranks are of the column by which the table is sorted; of the first one while it is sorted by anything else.
function arrange() {
  const column = /^c\d+$/.test(sorting.key) ? Number(sorting.key.slice(1)) : 0;
  const sign = sorting.down ? -1 : 1;
  const complete = rows.filter((row) => cellOf(row, column)[1] !== null).sort((a, b) => sign * compare(a, b) || byName(a, b));
  const others = rows.filter((row) => cellOf(row, column)[1] === null).sort(byName);
  for (const row of rows) {
    row.cells[0].textContent = cellOf(row, column)[0] ?? "–";
    [...row.cells].forEach((cell, i) => cell.classList.toggle("sorted", i === FIRST_COLUMN + column));
  }
  divider.hidden = others.every((row) => row.hidden);
  list.append(...complete, divider, ...others);
  for (const button of buttons) {
    const head = button.closest("th");
    if (button.dataset.key === sorting.key) head.setAttribute("aria-sort", sorting.down ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  }
}

function filterRows() {
  const text = byId("filter-text").value.trim().toLowerCase();
  const type = byId("filter-type")?.value ?? "";
  for (const row of rows) {
    const { name, dataset, type: own } = row.dataset;
    row.hidden = !(`${name}\n${dataset}`.toLowerCase().includes(text) && (!type || own === type));
  }
  const n = rows.filter((row) => !row.hidden).length;
  byId("shown").textContent = n === rows.length ? "" : `${n} of ${rows.length} models`;
  arrange();
}

for (const button of buttons) {
  button.addEventListener("click", () => {
    const { key } = button.dataset;
    sorting = { key, down: sorting.key === key ? !sorting.down : /^c\d+$/.test(key) || NUMERIC.has(key) };
    arrange();
  });
}
byId("filter-text").addEventListener("input", filterRows);
byId("filter-type")?.addEventListener("change", filterRows);
for (const button of document.querySelectorAll("[data-toggle]")) {
  const apply = (shown) => {
    button.setAttribute("aria-pressed", shown);
    board.classList.toggle(`no-${button.dataset.toggle}`, !shown);
  };
  button.addEventListener("click", () => apply(button.getAttribute("aria-pressed") !== "true"));
  apply(button.getAttribute("aria-pressed") === "true");
}
arrange();
