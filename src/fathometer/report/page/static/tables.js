// Tables: click a head to sort, type to filter.

/** Make the columns of a table sortable, and add a field that filters its rows. */
function sortable(table, controls = null) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const label = head.textContent;
    head.replaceChildren(make("button", { type: "button", onclick: () => sortBy(table, head, column) }, label));
  });
  if (!controls || body.rows.length < 2) return;
  const said = make("span", { role: "status", class: "lead" });
  const field = make("input", { type: "search", placeholder: "filter rows", "aria-label": "Filter rows" });
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of body.rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    said.textContent = words.length ? `${shown} of ${body.rows.length} rows` : "";
  });
  controls.append(field, said);
}

function sortBy(table, head, column) {
  const down = head.getAttribute("aria-sort") === "ascending";
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const numeric = head.classList.contains("number");
  const key = (row) => {
    const cell = row.cells[column], text = cell.dataset.value ?? cell.textContent;
    if (!numeric) return text;
    return text === "" || text === "–" ? null : Number(text);
  };
  const order = (a, b) => {
    const x = key(a), y = key(b);
    if (x === null || y === null) return (x === null) - (y === null); // what is missing comes last
    const sign = numeric ? x - y : x.localeCompare(y, undefined, { numeric: true });
    return down ? -sign : sign;
  };
  table.tBodies[0].append(...[...table.tBodies[0].rows].sort(order));
}

/** A cell with a number; infinities are results too. */
function numberCell(value) {
  const sorted = { "∞": "Infinity", "−∞": "-Infinity" }[value] ?? value ?? "";
  return make("td", { class: "number", "data-value": sorted }, number(value));
}

/** A table of ready cells, to sort and to filter; `heads` are [name, whether it is of numbers]. */
function tableOf(heads, rows, name, part = null, filter = true) {
  const head = make("tr", {}, ...heads.map(([text, numeric]) => make("th", { scope: "col", class: numeric ? "number" : null }, text)));
  const body = make("tbody", {}, ...rows.map((cells) => make("tr", {}, ...cells)));
  const table = make("table", {}, make("thead", {}, head), body), controls = filter ? make("div", { class: "controls" }) : null;
  sortable(table, controls);
  const figure = make("figure", { class: "rows", "data-part": part }, controls,
    make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name }, table));
  return { figure, table, body };
}

/** Rows to choose, by pointer or keyboard; each keeps its place under `key`, however they are sorted. */
function choosable(body, key, choose) {
  [...body.rows].forEach((row, i) => {
    row.dataset[key] = i;
    row.classList.add("choosable");
    row.tabIndex = 0;
    row.addEventListener("click", () => choose(i));
    row.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose(i);
    });
  });
}

/** Mark the row that is shown. */
function current(row, is) {
  if (is) row.setAttribute("aria-current", "true");
  else row.removeAttribute("aria-current");
}
