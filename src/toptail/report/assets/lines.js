// A line chart with bands, names at the line ends, and a tooltip for pointer, touch and keys.

/** The height of a drawn line at a position; null where it has none. */
function heightAt(xs, ys, at) {
  const next = missing(at) ? -1 : xs.findIndex((x) => x >= at);
  if (next <= 0 || xs[next] === at) return ys[next] ?? null;
  if (missing(ys[next - 1]) || missing(ys[next])) return null;
  return ys[next - 1] + ((at - xs[next - 1]) / (xs[next] - xs[next - 1])) * (ys[next] - ys[next - 1]);
}

class LineChart {
  /**
   * @param figure the chart's <figure>
   * @param spec x (positions), xNames, xTitle, yTitle, decimals, and
   *   series: [{id, rank, name, colour, dash, y, low, high, harm, safe, facts(i)}]; harm and safe are positions on x
   *   references: [{id, name, kind, y}]: lines without a band
   *   harmBelow: where the shaded region of harm begins, if there is one
   */
  constructor(figure, spec) {
    this.spec = spec;
    this.plot = figure.querySelector(".plot");
    this.spoken = figure.querySelector(".spoken");
    this.point = null; // {id, index}: what the tooltip shows
    this.width = 0;
    const legend = figure.querySelector(".legend");
    const extra = spec.references.filter((line) => line.id).map((line) => ({ ...line, colour: "var(--soft)", dash: "1 3" }));
    if (legend) fillLegend(legend, [...spec.series, ...extra]);
    this.listen();
    // Drawn in the next frame: drawing inside the observer would change what it observes.
    new ResizeObserver(() => requestAnimationFrame(() => this.resized())).observe(this.plot);
    this.draw();
  }

  resized() {
    if (this.plot.clientWidth !== this.width) this.draw();
  }

  visible() {
    return this.spec.series.filter((series) => !hidden.has(series.id));
  }

  draw() {
    const { plot, spec } = this;
    this.width = plot.clientWidth;
    plot.replaceChildren();
    const series = this.visible();
    const references = spec.references.filter((line) => !hidden.has(line.id));
    const crowd = series.length > 12; // their bands are hidden, and must not flatten the curves
    const bands = crowd ? [] : series.flatMap((s) => [s.low ?? [], s.high ?? []]);
    const drawn = [...series.map((s) => s.y), ...bands, ...references.map((r) => r.y)];
    const domain = extent(drawn);
    if (domain === null || this.width === 0) {
      if (this.width) add(plot, "p", "empty", "Nothing to show.");
      return;
    }
    this.layout(domain, series, references);
    this.svg = draw(plot, "svg", { viewBox: `0 0 ${this.width} ${this.height}`, "aria-hidden": "true" });
    this.svg.classList.toggle("many", series.length > 6); // their bands lie over each other
    this.svg.classList.toggle("crowd", crowd);
    if (!missing(spec.harmBelow)) this.harmRegion(domain);
    this.axes();
    for (const line of references) this.reference(line);
    for (const each of series) this.series(each);
    this.labels(series, references);
    this.cursor = draw(this.svg, "g", { class: "cursor" });
    this.tip = add(plot, "div", "tip");
    this.tip.hidden = true;
    if (this.point) this.show(this.point.id, this.point.index);
  }

  layout(domain, series, references) {
    const { spec, width } = this;
    this.narrow = width < 540;
    const named = 14 * (series.length + references.length) + 50; // every label needs its line
    this.height = Math.round(Math.max(240, named, Math.min(spec.height, width * 0.85)));
    this.yTicks = ticks(...domain, this.height < 300 ? 4 : 6);
    const longest = Math.max(...[...series, ...references].map((line) => this.labelOf(line).length));
    this.area = {
      left: 16 + 7 * Math.max(...this.yTicks.map((tick) => tick.text.length)),
      right: width - ((this.narrow ? 22 : 26) + 7.4 * longest),
      top: 28,
      bottom: this.height - 44,
    };
    const xs = spec.x;
    this.x = linear([xs[0], xs.at(-1)], [this.area.left + 8, this.area.right - 4]);
    this.y = linear(domain, [this.area.bottom, this.area.top]);
  }

  labelOf(line) {
    if (!line.rank) return line.name;
    if (this.narrow || this.spec.brief) return String(line.rank);
    const text = `${line.rank} ${line.name}`;
    return text.length > 26 ? `${text.slice(0, 13)}…${text.slice(-12)}` : text;
  }

  axes() {
    const { svg, spec, area } = this;
    draw(svg, "text", { class: "title", x: 0, y: 12 }, spec.yTitle);
    draw(svg, "text", { class: "title", x: (area.left + area.right) / 2, y: this.height - 6, "text-anchor": "middle" }, spec.xTitle);
    for (const { at, text } of this.yTicks) {
      draw(svg, "path", { class: at === 0 && spec.zero ? "zero" : "grid", d: `M${area.left},${this.y(at)}H${area.right}` });
      draw(svg, "text", { class: "tick", x: area.left - 8, y: this.y(at) + 4, "text-anchor": "end" }, text);
    }
    let free = -Infinity; // labels that would touch the one before are left out
    spec.x.forEach((at, i) => {
      const x = this.x(at);
      draw(svg, "path", { class: "grid", d: `M${x},${area.bottom}v5` });
      const half = 4 * spec.xNames[i].length;
      if (x - half < free) return;
      draw(svg, "text", { class: "tick", x, y: area.bottom + 18, "text-anchor": "middle" }, spec.xNames[i]);
      free = x + half + 4;
    });
  }

  harmRegion([low]) {
    const { area } = this;
    const top = this.y(this.spec.harmBelow);
    draw(this.svg, "rect", { class: "harm-region", x: area.left, y: top, width: area.right - area.left, height: Math.max(0, this.y(low) - top) });
  }

  reference(line) {
    draw(this.svg, "path", { class: `reference ${line.kind}`, d: linePath(this.spec.x, line.y, this.x, this.y) });
  }

  series(series) {
    const { spec, x, y } = this;
    const inside = (value) => Math.min(this.area.bottom, Math.max(this.area.top, y(value))); // a hidden band may be larger
    const group = draw(this.svg, "g", { class: "series", "data-id": series.id });
    group.style.setProperty("--colour", series.colour);
    if (series.low) draw(group, "path", { class: "band", d: bandPath(spec.x, series.low, series.high, x, inside) });
    draw(group, "path", { class: "curve", d: linePath(spec.x, series.y, x, y), "stroke-dasharray": series.dash });
    series.y.forEach((value, i) => {
      if (!missing(value)) draw(group, "circle", { cx: x(spec.x[i]), cy: y(value), r: 2.4 });
    });
    const safe = heightAt(spec.x, series.y, series.safe);
    if (!missing(safe)) draw(group, "circle", { class: "safe-end", cx: x(series.safe), cy: y(safe), r: 6 });
    const harm = heightAt(spec.x, series.y, series.harm);
    if (!missing(harm)) {
      const [hx, hy] = [x(series.harm), y(harm)];
      draw(group, "path", { class: "harm", d: `M${hx - 7},${hy - 16}h14l-7,11z` });
      draw(group, "text", { class: "harm", x: hx, y: hy - 20, "text-anchor": "middle" }, "hurts");
    }
  }

  labels(series, references) {
    const { area } = this;
    const ends = [...series, ...references]
      .filter((line) => !missing(line.y.at(-1)))
      .map((line) => ({ line, at: this.y(line.y.at(-1)) }))
      .sort((a, b) => a.at - b.at);
    const heights = spread(ends.map((end) => end.at), 14, 20, this.height - 8);
    const start = this.x(this.spec.x.at(-1));
    ends.forEach(({ line, at }, i) => {
      const parent = line.rank ? this.svg.querySelector(`.series[data-id="${line.id}"]`) : this.svg;
      const leader = draw(parent, "path", { class: "leader", d: `M${start + 4},${at}L${area.right + 8},${heights[i]}h4` });
      leader.style.stroke = line.colour ?? "var(--soft)";
      const label = draw(parent, "text", { class: "label", x: area.right + 15, y: heights[i] + 4 }, this.labelOf(line));
      draw(label, "title", {}, line.name);
    });
  }

  /** Bring one curve forward; null returns to all alike. */
  highlight(id) {
    if (!this.svg) return;
    this.svg.classList.toggle("one", id !== null && this.visible().some((series) => series.id === id));
    for (const group of this.svg.querySelectorAll(".series")) group.classList.toggle("front", group.dataset.id === id);
  }

  listen() {
    const { plot } = this;
    const near = (event) => {
      if (!this.svg?.isConnected) return;
      const box = this.svg.getBoundingClientRect();
      this.nearest(event.clientX - box.left, event.clientY - box.top);
    };
    plot.addEventListener("pointermove", near);
    plot.addEventListener("pointerdown", near);
    plot.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && this.hide());
    document.addEventListener("pointerdown", (event) => plot.contains(event.target) || this.hide());
    plot.addEventListener("blur", () => this.hide());
    plot.addEventListener("keydown", (event) => this.key(event));
  }

  nearest(px, py) {
    const index = this.closest(this.spec.x.map((at) => Math.abs(this.x(at) - px)));
    const series = this.visible().filter((each) => !missing(each.y[index]));
    if (series.length === 0) return this.hide();
    this.show(series[this.closest(series.map((each) => Math.abs(this.y(each.y[index]) - py)))].id, index);
  }

  closest(distances) {
    return distances.indexOf(Math.min(...distances));
  }

  key(event) {
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    if (event.key === "Escape") return this.hide();
    const series = this.visible();
    if (!(event.key in steps) || series.length === 0) return;
    event.preventDefault();
    const [down, right] = steps[event.key];
    const place = series.findIndex((each) => each.id === this.point?.id);
    const within = (i, length) => Math.min(length - 1, Math.max(0, i));
    const next = series[within(place < 0 ? 0 : place + down, series.length)];
    const index = this.point ? within(this.point.index + right, this.spec.x.length) : this.spec.x.length - 1;
    this.show(next.id, index);
    this.spoken.textContent = this.tip.innerText;
  }

  show(id, index) {
    const series = this.visible().find((each) => each.id === id);
    if (!series) return this.hide();
    this.point = { id, index };
    this.highlight(id);
    const { spec, tip, area } = this;
    const x = this.x(spec.x[index]);
    const y = missing(series.y[index]) ? (area.top + area.bottom) / 2 : this.y(series.y[index]);
    this.cursor.replaceChildren();
    draw(this.cursor, "path", { d: `M${x},${area.top}V${area.bottom}` });
    const dot = draw(this.cursor, "circle", { cx: x, cy: y, r: 4.5 });
    dot.style.stroke = series.colour;
    tip.replaceChildren();
    add(tip, "strong", "", `${series.rank} ${series.name}`);
    const list = add(tip, "dl");
    for (const [label, text] of series.facts(index)) {
      add(list, "dt", "", label);
      add(list, "dd", "", text);
    }
    tip.hidden = false;
    const left = x + 14 + tip.offsetWidth > this.width ? x - 14 - tip.offsetWidth : x + 14;
    tip.style.left = `${Math.max(0, Math.min(left, this.width - tip.offsetWidth))}px`;
    tip.style.top = `${Math.max(0, Math.min(y - tip.offsetHeight / 2, this.height - tip.offsetHeight))}px`;
  }

  hide() {
    this.point = null;
    if (!this.tip) return;
    this.tip.hidden = true;
    this.cursor.replaceChildren();
    this.highlight(null);
  }
}
