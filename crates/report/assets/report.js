// Draws the page's plots from the data in it, with what `charts.js` before it has.
(() => {
  const plots = JSON.parse(document.getElementById("plots").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const SERIES_COLOURS = 8;
  // Lines of at most this many points get a mark at each.
  const MARKED_POINTS = 40;
  // A jagged line of more points than this is drawn thin.
  const DENSE_POINTS = 200;
  const PRINTED_WIDTH = 680;

  const { colour, escaped, format, rangeOf, titleOf, axisLayout, baseLayout, follow } =
    charts;

  const SHAPES = { steps: "vh" };
  const DASHES = { dashed: "dash", dotted: "dot", bound: "6px,4px", event: "2px,3px" };
  const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "cross", "x", "star", "pentagon"];

  const traceOf = (plot, series, reach, height) => {
    const ink = series.hue === null ? colour("--ink")
      : colour(`--series-${series.hue % SERIES_COLOURS}`);
    const isBound = series.style === "bound";
    const isEvent = series.style === "event";
    const isSegments = series.style === "segments";
    const pairs = (values) => values.flatMap((value, at) => at % 2 ? [value, null] : [value]);
    const x = isBound ? reach : isEvent ? series.x.flatMap((at) => [at, at, null])
      : isSegments ? pairs(series.x) : series.x;
    const y = isBound ? [series.y[0], series.y[0]]
      : isEvent ? series.x.flatMap(() => [...height, null])
      : isSegments ? pairs(series.y) : series.y;
    const marks = series.marks || [];
    const SIGNS = { "at least": "≥ ", "at most": "≤ " };
    const tip = (value, index) => value === null ? "" :
      `<b>${escaped(series.name)}</b><br>${escaped(plot.x.label)}: ` +
      `${escaped(format(plot.x, value))}<br>${escaped(plot.y.label)}: ` +
      (SIGNS[marks[index]] || "") + escaped(format(plot.y, y[index])) +
      (marks[index] === "saturated" ? "<br>saturated" : "");
    const eventTip = (at) => at === null ? ""
      : `<b>${escaped(series.name)}</b><br>${escaped(format(plot.x, at))}`;
    const boundTip = `<b>${escaped(series.name)}</b><br>${escaped(format(plot.y, y[0]))}`;
    const trace = {
      name: escaped(series.name),
      x,
      y,
      // Given as data: in a template, what a name holds between %{ and } would be looked up.
      text: isBound ? x.map(() => boundTip) : x.map(isEvent ? eventTip : tip),
      hovertemplate: "%{text}<extra></extra>",
    };
    if (series.low) {
      trace.error_y = {
        type: "data",
        symmetric: false,
        array: series.high.map((high, index) => high - y[index]),
        arrayminus: series.low.map((low, index) => y[index] - low),
        color: ink,
        thickness: 1.2,
        width: 3,
      };
    }
    if (series.style === "bars") {
      const edge = { color: colour("--card"), width: 1 };
      return { ...trace, type: "bar", textposition: "none", marker: { color: ink, line: edge } };
    }
    const lined = !["points", "published"].includes(series.style);
    const marked = !lined || (!isBound && !isEvent && !isSegments && series.style !== "steps" && x.length <= MARKED_POINTS);
    const hollow = series.style === "published";
    const shape = series.hue === null ? "diamond" : SYMBOLS[series.hue % SYMBOLS.length];
    // Hollow: somebody else's, or not to be taken as it stands.
    const symbol = hollow ? `${shape}-open`
      : series.marks ? series.marks.map((mark) => mark ? `${shape}-open` : shape) : shape;
    return {
      ...trace,
      type: "scatter",
      mode: [lined && "lines", marked && "markers"].filter(Boolean).join("+"),
      line: {
        color: ink,
        width: isBound || isEvent || x.length > DENSE_POINTS && plot.x.kind === "linear" ? 1.2 : 1.9,
        dash: DASHES[series.style] || "solid",
        shape: SHAPES[series.style] || "linear",
      },
      marker: { color: ink, size: hollow ? 9 : lined ? 5 : 7, symbol, line: { width: hollow ? 1.6 : 0 } },
    };
  };

  // The sum at each place, for the range of stacked bars.
  const stacked = (series) => {
    const sums = new Map();
    for (const { x, y } of series) x.forEach((at, i) => sums.set(at, (sums.get(at) || 0) + y[i]));
    return [...sums.values()];
  };

  // Of a plot's height, what its vertical axis has: the rest is for ticks, titles and the legend.
  const AXIS_SHARE = 0.65;
  const roomOf = (index) => place(index).clientHeight * AXIS_SHARE;

  const chart = (plot, index, width) => {
    const real = plot.series.filter((series) => series.x.length > 0);
    const curves = real.filter((series) => !["bound", "event"].includes(series.style));
    const xs = curves.flatMap((series) => series.x);
    const bars = curves.filter((series) => series.style === "bars");
    const ys = real.filter((series) => series.style !== "event").flatMap((series) => [...series.y, ...(series.low || []), ...(series.high || [])]);
    const xRange = rangeOf(plot.x, xs);
    const yRange = rangeOf(plot.y, ys.concat(bars.length > 1 ? stacked(bars) : []));
    const ends = plot.x.kind === "log" ? xRange.map((power) => 10 ** power)
      : plot.x.kind === "named" ? [-0.6, plot.x.names.length - 0.4] : xRange;
    const height = plot.y.kind === "log" ? yRange.map((power) => 10 ** power) : yRange;
    const layout = {
      ...baseLayout(),
      barmode: "stack",
      bargap: 0.25,
      showlegend: real.length > 1,
      dragmode: "zoom",
      xaxis: axisLayout(plot.x, xRange),
      yaxis: axisLayout(plot.y, yRange, roomOf(index)),
    };
    if (width) layout.width = width;
    return { traces: real.map((series) => traceOf(plot, series, ends, height)), layout };
  };

  const config = {
    responsive: true,
    displaylogo: false,
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
    toImageButtonOptions: { format: "svg", filename: "rackloom-plot" },
  };
  const place = (index) => document.getElementById(`plot-${index + 1}`);

  const drawAll = (width) => Promise.all(plots.map((plot, index) => {
    const { traces, layout } = chart(plot, index, width);
    return Plotly.react(place(index), traces, layout, config);
  }));

  drawAll().then(() => {
    plots.forEach((plot, index) => follow(place(index), plot, () => roomOf(index)));
    document.body.dataset.plotsDrawn = String(plots.length);
  });
  dark.addEventListener("change", () => drawAll());
  // On paper nothing can be unfolded: what is folded is opened for it, and only that closed again.
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const part of opened) part.open = true;
    drawAll(PRINTED_WIDTH);
  });
  window.addEventListener("afterprint", () => {
    for (const part of opened) part.open = false;
    drawAll();
  });
})();
