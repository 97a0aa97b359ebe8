// Which curves are shown: one state for every chart of the page, switched by legend buttons.

const hidden = new Set();
const charts = [];

/** Show or hide a curve everywhere. */
function toggle(id) {
  if (!hidden.delete(id)) hidden.add(id);
  refresh();
}

function showOnly(ids, all) {
  for (const id of all) {
    if (ids.includes(id)) hidden.delete(id);
    else hidden.add(id);
  }
  refresh();
}

function refresh() {
  for (const button of document.querySelectorAll(".legend button[data-id]")) {
    button.setAttribute("aria-pressed", String(!hidden.has(button.dataset.id)));
  }
  for (const chart of charts) chart.draw();
}

/** Fill a legend with one button for each entry {id, rank, name, hue, dash}. */
function fillLegend(box, entries) {
  const ids = entries.map((entry) => entry.id);
  for (const entry of entries) {
    const button = add(box, "button");
    button.type = "button";
    button.dataset.id = entry.id;
    button.setAttribute("aria-pressed", "true");
    const swatch = draw(button, "svg", { class: "swatch", viewBox: "0 0 22 8", "aria-hidden": "true" });
    const line = draw(swatch, "path", { d: "M1 4h20", "stroke-dasharray": entry.dash });
    line.style.stroke = entry.colour;
    if (entry.rank) add(button, "span", "rank", entry.rank);
    add(button, "span", "", entry.name);
    button.addEventListener("click", () => toggle(entry.id));
    for (const [type, id] of [["pointerenter", entry.id], ["focus", entry.id], ["pointerleave", null], ["blur", null]]) {
      button.addEventListener(type, () => charts.forEach((chart) => chart.highlight(id)));
    }
  }
  if (entries.length < 4) return;
  for (const [label, shown] of [["all", ids], ["none", []]]) {
    const button = add(box, "button", "plain", label);
    button.type = "button";
    button.addEventListener("click", () => showOnly(shown, ids));
  }
}
