// The page comes to life: charts, tables, views, and the switch for light and dark.
for (const figure of document.querySelectorAll("[data-table]")) {
  const controls = make("div", { class: "controls" });
  sortable(figure.querySelector("table"), controls);
  figure.querySelector(".scroll").before(controls);
}
for (const element of document.querySelectorAll("[data-chart]")) {
  const { spec, data } = DATA.charts[element.dataset.chart];
  const datasets = Object.fromEntries(Object.entries(data).map(([name, columns]) => [name, rowsOf(columns)]));
  draw(element, spec, datasets);
}
for (const element of document.querySelectorAll("[data-view]")) {
  const { name, data, charts } = DATA.views[element.dataset.view];
  new Views[name](element, data, charts);
}
const theme = document.getElementById("theme");
function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  theme.setAttribute("aria-pressed", String(dark));
  redrawAll();
}
theme.setAttribute("aria-pressed", String(isDark()));
theme.addEventListener("click", () => setTheme(!isDark()));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
document.documentElement.dataset.ready = "true";
