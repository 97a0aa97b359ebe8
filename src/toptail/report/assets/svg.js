// Small tools for drawing: elements, scales, ticks, numbers, paths with gaps.

const SVG = "http://www.w3.org/2000/svg";

/** Append an SVG element; text is set as text, never as markup. */
function draw(parent, tag, attributes = {}, text = null) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== null) node.textContent = text;
  parent.append(node);
  return node;
}

/** Append an HTML element. */
function add(parent, tag, className = "", text = null) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== null) node.textContent = text;
  parent.append(node);
  return node;
}

/** A linear map from [a, b] to [c, d]. */
function linear([a, b], [c, d]) {
  return (x) => c + ((x - a) / (b - a || 1)) * (d - c);
}

/** Round numbers between low and high, about `count` of them. */
function ticks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const result = [];
  for (let i = Math.ceil(low / step); i * step <= high + step * 1e-9; i++) result.push(i * step);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return result.map((at) => ({ at, text: fixed(at, decimals) }));
}

/** A number as the tables write it. */
function fixed(x, decimals) {
  if (x === null || x === undefined) return "not available";
  if (Math.abs(x) >= 1e6 || decimals > 6) return x.toExponential(2).replaceAll("-", "−");
  const text = x.toFixed(decimals);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
}

/** "[low, high]", or nothing. */
function bracket(low, high, decimals) {
  return missing(low) || missing(high) ? "" : `[${fixed(low, decimals)}, ${fixed(high, decimals)}]`;
}

function missing(x) {
  return x === null || x === undefined;
}

/** Runs of consecutive indices at which no list has a gap. */
function runs(...lists) {
  const result = [[]];
  lists[0].forEach((_, i) => {
    if (lists.some((list) => missing(list[i]))) result.push([]);
    else result.at(-1).push(i);
  });
  return result.filter((run) => run.length > 0);
}

/** Path through the points of a curve; gaps break it. */
function linePath(xs, ys, x, y) {
  return runs(ys).map((run) => "M" + run.map((i) => `${x(xs[i])},${y(ys[i])}`).join("L")).join("");
}

/** Outline of the area between two curves. */
function bandPath(xs, lows, highs, x, y) {
  const area = (run) => {
    const above = run.map((i) => `${x(xs[i])},${y(highs[i])}`);
    const below = [...run].reverse().map((i) => `${x(xs[i])},${y(lows[i])}`);
    return `M${[...above, ...below].join("L")}Z`;
  };
  return runs(lows, highs).map(area).join("");
}

/** Lowest and highest number of some lists, with a little room; null without numbers. */
function extent(lists, room = 0.05) {
  const numbers = lists.flat().filter((x) => !missing(x));
  if (numbers.length === 0) return null;
  const low = Math.min(...numbers);
  const high = Math.max(...numbers);
  const pad = (high - low) * room || Math.abs(high) * room || 1;
  return [low - pad, high + pad];
}

/** Move sorted heights apart to at least `gap`, inside [top, bottom] if they fit. */
function spread(heights, gap, top, bottom) {
  const [down, up] = [[...heights], [...heights]];
  const last = heights.length - 1;
  for (let i = 1; i <= last; i++) down[i] = Math.max(down[i], down[i - 1] + gap);
  for (let i = last - 1; i >= 0; i--) up[i] = Math.min(up[i], up[i + 1] - gap);
  // Both keep the gap, so their mean does, and it lies around where the lines end.
  const mean = down.map((height, i) => (height + up[i]) / 2);
  return mean
    .map((height, i) => Math.max(height, top + i * gap))
    .map((height, i) => Math.min(height, bottom - (last - i) * gap));
}
