// Curves of runs that belong together, over each other: flows by size, and the distribution of completion times.
import { askJson, element, grouped, trouble } from "./elements.js";

/* global charts, Plotly */
// Runs that are drawn at a time (our choice: more curves than that nobody tells apart).
const RUNS = 16;
const QUANTITIES = [
  ["slowdown", "p99", "Slowdown, 99%"], ["slowdown", "p50", "Slowdown, median"],
  ["fct", "p99", "Completion time, 99%"], ["fct", "p50", "Completion time, median"],
];
const CONFIG = { responsive: true, displaylogo: false, modeBarButtons: [["zoom2d", "pan2d", "resetScale2d", "toImage"]] };
const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "cross", "x", "star", "pentagon"];
const DASHES = ["solid", "dash", "dot", "dashdot"];
// Columns that say how a run stands, not what it was.
const STANDING = ["trial", "status", "is_best"];

const pick = (label, id, names) => element("label", { for: id }, `${label} `,
  element("select", { id }, names.map((name, at) => element("option", { value: at }, name))));
const chosen = (label) => Number(label.querySelector("select").value);

/** Fills `place` with the curves of `rows` of a group; `pathOf` gives where a run is. What draws them again. */
export const showCurves = async (place, { columns, rows, axes, aims = [] }, pathOf) => {
  // Of a search those are drawn that are worth it: its best, each with all of its settings.
  const isSearch = aims.length > 0;
  const bestAt = columns.findIndex((column) => column.key === "is_best");
  const runs = rows.filter((row) => row.path && (!isSearch || row.cells[bestAt].value === true));
  const settings = columns.map((column, index) => ({ ...column, index }))
    .filter((column) => column.kind === "setting" && !STANDING.includes(column.key));
  const valueOf = (row, column) => row.cells[column.index].text || "–";
  const searched = settings.filter((column) => !["label", "seed"].includes(column.key));
  const varies = isSearch
    ? [{ title: "Trial", of: (row) => searched.map((column) => valueOf(row, column)).join(", ") }]
    : settings.filter((column) => new Set(runs.map((row) => valueOf(row, column))).size > 1);
  // Fabrics over each other, if there are several.
  varies.sort((a, b) => (b.key === "label") - (a.key === "label"));
  if (!varies.length || !runs.length) return () => {};

  const over = pick("Compare", "curves-over", varies.map((column) => column.title));
  over.hidden = isSearch;
  const quantity = pick("by size:", "curves-quantity", QUANTITIES.map(([, , name]) => name));
  const at = element("label", { for: "curves-at" }, "where ", element("select", { id: "curves-at" }));
  const chart = (label) => element("div", { class: "plot", role: "img", "aria-label": label });
  const [sizes, shares] = [chart("Curves of runs by flow size"), chart("Completion times of runs")];
  const said = element("p", { class: "note", role: "status" });
  const note = "A tail is drawn for sizes with at least 100 flows; none where unfinished flows leave it unknown.";
  const figure = (title, about, one) => element("figure", {},
    element("figcaption", {}, element("h3", {}, title), element("p", { class: "note" }, about)), one);

  const nameOf = (row) => varies.filter((column) => column !== varies[chosen(over)])
    .map((column) => `${column.title} ${valueOf(row, column)}`).join(", ");
  const fillAt = () => {
    const names = [...new Set(runs.map(nameOf))];
    at.querySelector("select").replaceChildren(...names.map((name, index) => element("option", { value: index }, name)));
    at.hidden = names.length < 2;
  };
  fillAt();

  const known = new Map();
  const curvesOf = async (row) => {
    if (!known.has(row.path)) known.set(row.path, askJson("curves", { path: pathOf(row) }));
    return known.get(row.path);
  };
  const trace = (name, points, hue, mode, tip) => ({
    name: charts.escaped(name), type: "scatter", mode,
    x: points.map(([x]) => x), y: points.map(([, y]) => y),
    text: points.map((point) => `<b>${charts.escaped(name)}</b><br>${charts.escaped(tip(point))}`),
    hovertemplate: "%{text}<extra></extra>",
    line: { color: charts.colour(`--series-${hue % 8}`), width: 1.9, dash: DASHES[Math.floor(hue / 8) % 4], simplify: false },
    marker: { color: charts.colour(`--series-${hue % 8}`), symbol: SYMBOLS[hue % 8], size: 8 },
  });
  const plot = async (one, traces, x, y) => {
    const values = (axis, of) => traces.flatMap((found) => found[of]);
    const ranges = [charts.rangeOf(x, values(x, "x")), y === axes.share ? [0, 1.01] : charts.rangeOf(y, values(y, "y"))];
    const room = () => one.clientHeight * 0.65;
    const isDrawn = Boolean(one._fullLayout);
    await Plotly.react(one, traces, {
      ...charts.baseLayout(), showlegend: true,
      xaxis: charts.axisLayout(x, ranges[0]), yaxis: charts.axisLayout(y, ranges[1], room()),
    }, CONFIG);
    if (!isDrawn) charts.follow(one, { x, get y() { return one === sizes ? axes[QUANTITIES[chosen(quantity)][0]] : y; } }, room);
  };

  // A later choice makes an earlier one's answers useless.
  let number = 0;
  const draw = async () => {
    number += 1;
    const own = number;
    const names = [...new Set(runs.map(nameOf))];
    const all = runs.filter((row) => nameOf(row) === names[chosen(at)]);
    const shown = all.slice(0, RUNS);
    said.textContent = "Reading flows …";
    const found = [];
    for (const row of shown) {
      found.push(await curvesOf(row));
      if (own !== number) return;
    }
    said.textContent = all.length > RUNS ? `The first ${grouped(RUNS)} of ${grouped(all.length)} runs.` : "";
    const [what, quantile, title] = QUANTITIES[chosen(quantity)];
    const column = varies[chosen(over)];
    const called = shown.map((row) => column.of ? column.of(row) : valueOf(row, column));
    const { size, fct, share } = axes;
    const y = { ...axes[what], label: title };
    await plot(sizes, found.map((one, hue) => trace(called[hue], one[what][quantile], hue, "lines+markers",
      ([x, value]) => `${charts.format(y, value)} at ${charts.format(size, x)}`)), size, y);
    await plot(shares, found.map((one, hue) => trace(called[hue], one.distribution, hue, "lines",
      ([x, value]) => `${charts.format(share, value)} within ${charts.format(fct, x)}`)), fct, share);
  };
  const drawOrSay = () => draw().catch((error) => { said.replaceChildren(trouble(error)); });
  over.addEventListener("change", () => { fillAt(); drawOrSay(); });
  for (const one of [at, quantity]) one.addEventListener("change", drawOrSay);
  place.append(element("section", { id: "curves" }, element("h2", {}, isSearch ? "The best over each other" : "Over each other"),
    element("div", { class: "buttons" }, over, at, quantity), said,
    element("div", { class: "plots" }, figure("By flow size", note, sizes),
      figure("Completion times", "Share of the measured flows that completed within a time; below 100 % where some did not.", shares))));
  await drawOrSay();
  return drawOrSay;
};
