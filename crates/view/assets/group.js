// Runs that belong together: a row each, and one figure over one setting; both lead to the runs.
import { askJson, element, grouped, tableOf, trouble } from "./elements.js";

/* global charts, Plotly */
// Rows of the table (our choice: a page stays quick).
const ROWS = 1000;
const textOf = (cell) => cell.text || "–";

/** The page of the group at `path`; `open` shows a run. */
export const showGroup = async (entry, place, open) => {
  const { columns, rows } = await askJson("group", { path: entry.path });
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
  const vertical = pick("Figure", figures, "figure"), horizontal = pick("over", settings, "over");
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
    const axis = isNumber ? { kind: "linear", label: x.title, unit: "", scales: [[1, ""]] } : { kind: "named", label: x.title, names };
    const labels = labelAt < 0 ? [""] : [...new Set(points.map((row) => row.cells[labelAt].text))];
    const symbols = ["circle", "square", "diamond", "triangle-up", "cross", "x", "star", "pentagon"];
    const traces = labels.map((label, hue) => {
      const own = points.filter((row) => labelAt < 0 || row.cells[labelAt].text === label);
      return {
        name: charts.escaped(label), type: "scatter", mode: "markers",
        x: own.map(xOf), y: own.map((row) => row.cells[yAt].value), customdata: own.map((row) => row.path && full(row)),
        text: own.map((row) => `<b>${charts.escaped(label)}</b><br>${charts.escaped(x.title)}: ${charts.escaped(textOf(row.cells[xAt]))}` +
          `<br>${charts.escaped(y.title)}: ${charts.escaped(textOf(row.cells[yAt]))}`),
        hovertemplate: "%{text}<extra></extra>",
        marker: { size: 9, color: charts.colour(`--series-${hue % 8}`), symbol: symbols[hue % 8] },
      };
    });
    const xRange = isNumber ? charts.rangeOf(axis, values) : [0, 1];
    return Plotly.react(chart, traces, {
      ...charts.baseLayout(),
      showlegend: labels.length > 1,
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
    const wanted = figures.findIndex((column) => column.key === "slowdown.all.p99");
    if (wanted >= 0) vertical.querySelector("select").value = String(figures[wanted].index);
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
  return draw;
};
