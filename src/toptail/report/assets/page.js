// Draws the page's charts from the embedded numbers.

const data = JSON.parse(document.getElementById("audit-data").textContent);
const figure = (name) => document.getElementById(`chart-${name}`);

/** What every chart shows of a scorer, beside its numbers. */
function entry(scorer, index) {
  return { id: `s${index}`, rank: index + 1, name: scorer.name, colour: `var(--hue-${scorer.hue})`, dash: scorer.dash };
}

function withInterval(x, low, high, decimals) {
  return `${fixed(x, decimals)} ${missing(x) ? "" : bracket(low, high, decimals)}`.trim();
}

function overK(name, spec) {
  const chart = { x: data.k.map(Math.log2), xNames: data.k.map(String), xTitle: "K, candidates to choose from (log scale)", height: 460 };
  charts.push(new LineChart(figure(name), { ...chart, ...spec }));
}

function overDeciles(name, spec) {
  const deciles = Array.from({ length: 10 }, (_, i) => i + 1);
  const chart = { x: deciles, xNames: deciles.map(String), xTitle: "score decile (10 is the top)", yTitle: "mean value", references: [], height: 360 };
  charts.push(new LineChart(figure(name), { ...chart, ...spec }));
}

/** Where a K that a verdict names stands, which need not be one of the K shown. */
const position = (k) => (missing(k) ? null : Math.log2(k));

/** The gain over a random pick, divided by the headroom: what the verdict is about. */
function gainOverRandom() {
  const series = data.scorers.map((scorer, index) => ({
    ...entry(scorer, index),
    y: scorer.gain.value,
    low: scorer.gain.low,
    high: scorer.gain.high,
    harm: position(scorer.k_harm),
    safe: position(scorer.k_safe_max),
    facts: (i) => [
      ["K", String(data.k[i])],
      ["gain / headroom", fixed(scorer.gain.value[i], 2)],
      ["interval", bracket(scorer.gain.low[i], scorer.gain.high[i], 2) || "not available"],
      ["captured at this K", data.k[i] === 1 ? "–" : fixed(scorer.captured[i], 2)],
      ["verdict", scorer.verdict],
    ],
  }));
  const flat = (name, kind, at) => ({ name, kind, y: data.k.map(() => at) });
  const references = [
    flat("random pick", "none", 0),
    flat(`−δ = −${data.delta_text}`, "delta", -data.delta),
    flat(`−ρ = −${data.rho_text}`, "rho", -data.rho),
  ];
  overK("gain", { series, references, yTitle: `gain / headroom at K = ${data.k.at(-1)}`, zero: true, harmBelow: -data.rho });
}

function bestOfK() {
  const series = data.scorers.map((scorer, index) => ({
    ...entry(scorer, index),
    y: scorer.value,
    low: scorer.band_low,
    high: scorer.band_high,
    harm: position(scorer.k_harm),
    facts: (i) => [
      ["K", String(data.k[i])],
      ["value", fixed(scorer.value[i], data.decimals)],
      [`${data.level} band`, bracket(scorer.band_low[i], scorer.band_high[i], data.decimals) || "not available"],
      ["captured", data.k[i] === 1 ? "–" : fixed(scorer.captured[i], 2)],
      ["oracle", fixed(data.oracle[i], data.decimals)],
      ["random", fixed(data.random, data.decimals)],
    ],
  }));
  const references = [
    { id: "oracle", name: "oracle", kind: "oracle", y: data.oracle },
    { name: "random", kind: "random", y: data.k.map(() => data.random) },
  ];
  overK("best-of-k", { series, references, yTitle: `expected value: ${data.judge}`, height: 380 });
}

function deciles() {
  const facts = (scorer, part) => (i) => [
    ["decile", String(i + 1)],
    ["mean value", withInterval(scorer[part][i], scorer[`${part}_low`]?.[i], scorer[`${part}_high`]?.[i], data.decimals)],
  ];
  const curve = (part) => (scorer, index) => ({
    ...entry(scorer, index),
    y: scorer[part],
    low: scorer[`${part}_low`],
    high: scorer[`${part}_high`],
    facts: facts(scorer, part),
  });
  overDeciles("deciles", { series: data.scorers.map(curve("deciles")) });
  overDeciles("deciles-within", { series: data.scorers.map(curve("deciles_within")), brief: true });
}

function offSupport() {
  const series = data.scorers
    .map((scorer, index) => ({ ...entry(scorer, index), off: scorer.off_support }))
    .filter((each) => each.off)
    .map((each) => ({
      ...each,
      y: each.off.excess,
      low: each.off.excess_low,
      high: each.off.excess_high,
      facts: (i) => [
        ["K", String(data.k[i])],
        ["excess", withInterval(each.off.excess[i], each.off.excess_low[i], each.off.excess_high[i], 3)],
        ["rate", fixed(each.off.rate[i], 3)],
        ["base rate", fixed(each.off.base_rate, 3)],
      ],
    }));
  overK("off-support", { series, references: [], yTitle: "off-support rate minus base rate", zero: true, height: 360 });
}

function smallPanels() {
  const most = Math.max(1, ...data.scorers.flatMap((scorer) => scorer.tau_b?.histogram?.counts ?? []));
  for (const panel of document.querySelectorAll("#panels-tau .panel")) {
    const scorer = data.scorers[panel.dataset.scorer];
    histogram(panel, scorer.tau_b, `var(--hue-${scorer.hue})`, most);
  }
  const seeded = data.scorers.flatMap((scorer) => [scorer.value, ...scorer.seeds.map((seed) => seed.value)]);
  const domain = extent([...seeded, [data.random]]);
  for (const panel of document.querySelectorAll("#panels-seeds .panel")) {
    if (domain) seedCurves(panel, data.scorers[panel.dataset.scorer], data, domain);
  }
}

/** Printing shows what is folded on the screen, but for what would fill many sheets. */
function unfoldForPrint() {
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open], [data-paper=no])")];
    for (const details of folded) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of folded) details.open = false;
  });
}

if (data.kind === "picks") {
  if (figure("differences")) new ForestPlot(figure("differences"), data.comparisons, data.decimals);
} else {
  gainOverRandom();
  bestOfK();
  deciles();
  if (figure("off-support")) offSupport();
  smallPanels();
}
document.querySelectorAll("table.sortable").forEach(makeSortable);
unfoldForPrint();
