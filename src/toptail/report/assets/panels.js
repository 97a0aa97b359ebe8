// Small charts that need no interaction: histograms, seeds' curves, and the forest plot.

/** Histogram of tau_b over the queries; `most` is the highest bar of all panels. */
function histogram(panel, tau, colour, most) {
  const svg = draw(panel, "svg", { viewBox: "0 0 170 100", role: "img", "aria-label": "Histogram of tau_b" });
  const x = linear([-1, 1], [4, 166]);
  const y = linear([0, most], [78, 6]);
  const { edges, counts } = tau?.histogram ?? { edges: [], counts: [] };
  counts.forEach((n, i) => {
    if (!n) return;
    const bar = draw(svg, "rect", { x: x(edges[i]) + 0.5, y: y(n), width: x(edges[i + 1]) - x(edges[i]) - 1, height: 78 - y(n) });
    bar.style.fill = colour;
    draw(bar, "title", {}, `${fixed(edges[i], 1)} to ${fixed(edges[i + 1], 1)}: ${n}`);
  });
  draw(svg, "path", { class: "axis", d: "M4,78.5H166" });
  draw(svg, "path", { class: "zero", d: `M${x(0)},6V82` });
  for (const at of [-1, 0, 1]) {
    const anchor = { "-1": "start", 0: "middle", 1: "end" }[at];
    draw(svg, "text", { class: "tick", x: x(at), y: 98, "text-anchor": anchor }, fixed(at, 0));
  }
  if (missing(tau?.mean)) return;
  if (!missing(tau.low) && !missing(tau.high)) draw(svg, "path", { class: "interval", d: `M${x(tau.low)},85H${x(tau.high)}` });
  draw(svg, "circle", { class: "mean", cx: x(tau.mean), cy: 85, r: 3 });
}

/** Curves of one scorer's training seeds (thin) around their mean (thick). */
function seedCurves(panel, scorer, data, domain) {
  const svg = draw(panel, "svg", { viewBox: "0 0 170 110", role: "img", "aria-label": "Curves of the training seeds" });
  const xs = data.k.map(Math.log2);
  const x = linear([xs[0], xs.at(-1)], [28, 146]);
  const y = linear(domain, [92, 6]);
  for (const { at, text } of ticks(...domain, 3)) {
    draw(svg, "path", { class: "grid", d: `M28,${y(at)}H146` });
    draw(svg, "text", { class: "tick", x: 25, y: y(at) + 3, "text-anchor": "end" }, text);
  }
  if (!missing(data.random)) draw(svg, "path", { class: "reference random", d: `M28,${y(data.random)}H146` });
  const curve = (values, width) => {
    const path = draw(svg, "path", { class: "curve", d: linePath(xs, values, x, y), "stroke-width": width });
    path.style.stroke = `var(--hue-${scorer.hue})`;
  };
  for (const seed of scorer.seeds) curve(seed.value, 0.9);
  curve(scorer.value, 2.4);
  const ends = scorer.seeds
    .filter((seed) => !missing(seed.value.at(-1)))
    .map((seed) => ({ name: seed.seed, at: y(seed.value.at(-1)) }))
    .sort((a, b) => a.at - b.at);
  const heights = spread(ends.map((end) => end.at), 9, 6, 95);
  ends.forEach((end, i) => draw(svg, "text", { class: "tick", x: 149, y: heights[i] + 3 }, end.name.slice(0, 4)));
  draw(svg, "text", { class: "tick", x: 28, y: 106, "text-anchor": "start" }, `K = ${data.k[0]}`);
  draw(svg, "text", { class: "tick", x: 146, y: 106, "text-anchor": "middle" }, String(data.k.at(-1)));
}

/** Paired differences between selectors as intervals around points. */
class ForestPlot {
  constructor(figure, rows, decimals) {
    this.plot = figure.querySelector(".plot");
    this.rows = rows;
    this.decimals = decimals;
    new ResizeObserver(() => requestAnimationFrame(() => this.draw())).observe(this.plot);
  }

  draw() {
    const { plot, rows } = this;
    const width = plot.clientWidth;
    if (width === this.width) return;
    this.width = width;
    plot.replaceChildren();
    const domain = extent([[0], ...rows.map((row) => [row.low, row.high, row.difference])]);
    const step = 40;
    const height = rows.length * step + 40;
    const svg = draw(plot, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Paired differences; the table below has the numbers" });
    const x = linear(domain, [10, width - 10]);
    for (const { at, text } of ticks(...domain, width < 540 ? 4 : 8)) {
      draw(svg, "path", { class: "grid", d: `M${x(at)},4V${height - 30}` });
      draw(svg, "text", { class: "tick", x: x(at), y: height - 14, "text-anchor": "middle" }, text);
    }
    draw(svg, "path", { class: "zero", d: `M${x(0)},4V${height - 30}` });
    rows.forEach((row, i) => this.row(svg, row, x, i * step + 30));
  }

  row(svg, row, x, y) {
    const interval = bracket(row.low, row.high, this.decimals);
    const clear = interval && (row.low > 0 || row.high < 0);
    const name = draw(svg, "text", { class: "label halo", x: 6, y: y - 8 }, `${row.a} − ${row.b}`);
    draw(name, "tspan", { dx: 8 }, `${fixed(row.difference, this.decimals)} ${interval}`);
    const kind = clear ? "clear" : "open";
    if (interval) draw(svg, "path", { class: `whisker ${kind}`, d: `M${x(row.low)},${y}H${x(row.high)}` });
    if (!missing(row.difference)) draw(svg, "circle", { class: `estimate ${kind}`, cx: x(row.difference), cy: y, r: 4.5 });
  }
}
