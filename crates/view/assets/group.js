// Runs that belong together: a row each, and one figure over one setting; both lead to the runs.
import { askJson, element, grouped, tableOf, trouble } from "./elements.js";
import { showCurves } from "./curves.js";

/* global charts, Plotly */
// Rows of the table (our choice: a page stays quick).
const ROWS = 1000;
const textOf = (cell) => cell.text || "–";
const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "cross", "x", "star", "pentagon"];

/** How the trials of a search stand, each kind with its marks: hollow ones do not meet the conditions. */
const standings = (columns, aims) => {
  const [bestAt, statusAt] = ["is_best", "status"].map((key) => columns.findIndex((column) => column.key === key));
  const isBest = (row) => row.cells[bestAt].value === true;
  const is = (status) => (row) => !isBest(row) && row.cells[statusAt].value === status;
  return [
    { name: aims.length > 1 ? "Front" : "Best", has: isBest, symbol: "diamond", line: aims.length > 1 },
    { name: "Feasible", has: is("feasible"), symbol: "circle" },
    { name: "Infeasible", has: is("infeasible"), symbol: "circle-open" },
  ];
};

/** The page of the group at `path`; `open` shows a run. */
export const showGroup = async (entry, place, open) => {
  const group = await askJson("group", { path: entry.path });
  const { columns, rows, aims = [] } = group;
  if (!rows.length) {
    const text = "There is no table yet: it is written when the command ends. Runs that are over are in the list.";
    place.append(element("p", {}, text));
    return () => {};
  }
  const full = (row) => entry.path === "." ? row.path : `${entry.path}/${row.path}`;
  const shown = columns.map((column, index) => ({ ...column, index }))
    .filter(({ index }) => rows.some((row) => row.cells[index].value !== null));
  const figures = shown.filter((column) => column.kind === "figure");
  const settings = shown.filter((column) => column.kind === "setting" && !["status", "is_best"].includes(column.key));
  const pick = (label, options, id) => element("label", { for: id }, `${label} `,
    element("select", { id }, options.map(({ index, title }) => element("option", { value: index }, title))));
  // Of a search, figures over figures: the front of two aims.
  const across = aims.length ? [...settings, ...figures] : settings;
  const vertical = pick("Figure", figures, "figure"), horizontal = pick("over", across, "over");
  const chart = element("div", { class: "plot", role: "img", "aria-label": "A figure over a setting" });

  const draw = () => {
    const [y, x] = [vertical, horizontal].map((one) => columns[Number(one.querySelector("select").value)]);
    const [yAt, xAt] = [columns.indexOf(y), columns.indexOf(x)];
    const labelAt = columns.findIndex((column) => column.key === "label");
    const points = rows.filter((row) => Number.isFinite(row.cells[yAt].value));
    const values = [...new Set(points.map((row) => row.cells[xAt].value))];
    const isNumber = values.every((value) => typeof value === "number");
    const names = isNumber ? null : values.map(String);
    const xOf = (row) => isNumber ? row.cells[xAt].value : values.indexOf(row.cells[xAt].value);
    const axis = x.kind === "figure" ? x.axis : isNumber ? { kind: "linear", label: x.title, scales: [[1, ""]] } : { kind: "named", label: x.title, names };
    const labels = labelAt < 0 ? [""] : [...new Set(points.map((row) => row.cells[labelAt].text))];
    const ofFabric = (name, hue) => ({
      name, symbol: SYMBOLS[hue % 8], has: (row) => labelAt < 0 || row.cells[labelAt].text === name,
    });
    const kinds = aims.length ? standings(columns, aims) : labels.map(ofFabric);
    // The front is a line where it is drawn over its own aims.
    const isFront = x.kind === "figure" && aims.includes(x.key) && aims.includes(y.key) && x.key !== y.key;
    const toSay = aims.length ? settings : settings.filter((column) => column.key === "label");
    const tip = (row) => [...toSay.map(({ title, index }) => `${title}: ${textOf(row.cells[index])}`),
      `${x.title}: ${textOf(row.cells[xAt])}`, `${y.title}: ${textOf(row.cells[yAt])}`].map(charts.escaped).join("<br>");
    const traces = kinds.map(({ name, symbol, has, line }, hue) => {
      const own = points.filter(has);
      if (line && isFront) own.sort((a, b) => xOf(a) - xOf(b));
      return {
        name: charts.escaped(name), type: "scatter", mode: line && isFront ? "lines+markers" : "markers",
        x: own.map(xOf), y: own.map((row) => row.cells[yAt].value), customdata: own.map((row) => row.path && full(row)),
        text: own.map(tip),
        hovertemplate: "%{text}<extra></extra>",
        line: { color: charts.colour(`--series-${hue % 8}`), width: 1.4, dash: "dot" },
        marker: { size: 9, color: charts.colour(`--series-${hue % 8}`), symbol },
      };
    }).filter((trace) => trace.x.length);
    const xRange = axis.kind !== "named" ? charts.rangeOf(axis, values) : [0, 1];
    return Plotly.react(chart, traces, {
      ...charts.baseLayout(),
      showlegend: traces.length > 1,
      xaxis: charts.axisLayout(axis, xRange),
      yaxis: charts.axisLayout(y.axis, charts.rangeOf(y.axis, points.map((row) => row.cells[yAt].value)), chart.clientHeight * 0.65),
    }, { responsive: true, displaylogo: false, modeBarButtons: [["zoom2d", "pan2d", "resetScale2d", "toImage"]] });
  };

  const rowOf = new Map(rows.map((row) => [shown.map(({ index }) => row.cells[index]), row]));
  const link = (cell, column, cells) => {
    const row = rowOf.get(cells);
    return column.key === shown[0].key && row.path
      ? element("a", { href: `#${encodeURI(full(row))}` }, textOf(cell)) : null;
  };
  const heads = shown.map((column) => ({ ...column, number: column.kind === "figure" }));
  const table = tableOf({ columns: heads, rows: [...rowOf.keys()].slice(0, ROWS) }, link);
  if (figures.length && settings.length) {
    place.append(element("figure", {}, element("figcaption", {}, element("div", { class: "buttons" }, vertical, horizontal),
      element("p", { class: "note" }, "Each run a mark; a click shows it.")), chart));
    const choose = (one, key) => {
      const wanted = figures.find((column) => column.key === key);
      if (wanted) one.querySelector("select").value = String(wanted.index);
    };
    choose(vertical, aims.length ? aims[aims.length > 1 ? 1 : 0] : "slowdown.all.p99");
    if (aims.length > 1) choose(horizontal, aims[0]);
    for (const one of [vertical, horizontal]) {
      one.addEventListener("change", () => draw().catch((error) => place.append(trouble(error))));
    }
    await draw();
    chart.on("plotly_click", (event) => {
      if (event.points[0].customdata) open(event.points[0].customdata);
    });
  }
  const note = rows.length > ROWS
    ? element("p", { class: "note" }, `The first ${grouped(ROWS)} of ${grouped(rows.length)}; the plot has all.`) : "";
  place.append(element("h2", {}, "Runs"), note, table);
  const drawCurves = await showCurves(place, group, full);
  return () => Promise.all([draw(), drawCurves()]);
};
