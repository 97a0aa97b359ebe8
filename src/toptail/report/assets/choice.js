// Draws the page of a choice: value against K of the best selectors.

const data = JSON.parse(document.getElementById("audit-data").textContent);

function overK(figure) {
  const series = data.families.map((family, index) => ({
    id: `s${index}`,
    rank: index + 1,
    name: family.name,
    colour: `var(--hue-${family.hue})`,
    dash: family.dash,
    y: family.value,
    facts: (i) => [["K", String(data.k[i])], ["value", fixed(family.value[i], data.decimals)]],
  }));
  const references = [
    { id: "oracle", name: "oracle", kind: "oracle", y: data.k.map(() => data.oracle) },
    { name: "random", kind: "random", y: data.k.map(() => data.random) },
  ].filter((line) => !missing(line.y[0]));
  const x = { x: data.k.map(Math.log2), xNames: data.k.map(String), xTitle: "K, candidates to choose from (log scale)" };
  charts.push(new LineChart(figure, { ...x, series, references, yTitle: "value", height: 380 }));
}

overK(document.getElementById("chart-value"));
document.querySelectorAll("table.sortable").forEach(makeSortable);
