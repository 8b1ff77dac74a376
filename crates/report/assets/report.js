// Draws the page's plots from the data in it, in the colours of the style sheet.
"use strict";
(() => {
  const plots = JSON.parse(document.getElementById("plots").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const SERIES_COLOURS = 8;
  // Lines of at most this many points get a mark at each.
  const MARKED_POINTS = 40;
  // A jagged line of more points than this is drawn thin.
  const DENSE_POINTS = 200;
  const PRINTED_WIDTH = 680;

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const escaped = (text) =>
    text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  // Numbers as in the tables: three significant digits in the largest unit that is filled.
  const digits = (value) => {
    const size = Math.abs(value);
    if (size >= 1e15 || (size > 0 && size < 1e-3)) return value.toExponential(2);
    const whole = Math.abs(value - Math.round(value)) <= size * 1e-9 || size >= 99.95;
    const places = whole ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
    return value.toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places });
  };
  const scaleFor = (axis, value) => {
    if (value === 0) return axis.scales.find(([scale]) => scale === 1) || axis.scales[0];
    const fits = ([scale]) => Math.abs(value) * 1.0005 >= scale;
    return axis.scales.find(fits) || axis.scales[axis.scales.length - 1];
  };
  const withUnit = (number, name) => number + (name === "" || name === "%" ? name : " " + name);
  const format = (axis, value) => {
    if (axis.kind === "named") return axis.names[value] || "";
    const [scale, name] = scaleFor(axis, value);
    return withUnit(digits(value / scale), name);
  };

  // Ticks at round values inside a range; the range of a logarithmic axis is in powers of ten.
  const linearTicks = (low, high) => {
    const rough = (high - low) / 5;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough * 0.75);
    const ticks = [];
    for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9; n += 1) {
      ticks.push(Number((n * step).toPrecision(12)));
    }
    return ticks;
  };
  const logTicks = (low, high) => {
    const decades = high - low;
    if (decades < 0.7) return linearTicks(10 ** low, 10 ** high).filter((tick) => tick > 0);
    const parts = decades > 2.2 ? [1] : decades > 1.3 ? [1, 3] : [1, 2, 5];
    const every = Math.ceil(decades / 8);
    const ticks = [];
    for (let power = Math.floor(low); power <= high; power += 1) {
      if (power % every !== 0) continue;
      for (const part of parts) {
        const tick = part * 10 ** power;
        if (Math.log10(tick) >= low - 1e-9 && Math.log10(tick) <= high + 1e-9) ticks.push(tick);
      }
    }
    return ticks;
  };
  // Values, their texts and the axis title. A linear axis names its unit once, in the title.
  const ticksOf = (axis, [low, high]) => {
    if (axis.kind === "log") {
      const ticks = logTicks(low, high);
      const title = axis.unit ? `${axis.label} (${axis.unit})` : axis.label;
      return { tickvals: ticks, ticktext: ticks.map((tick) => format(axis, tick)), title };
    }
    const ticks = linearTicks(low, high);
    const [scale, name] = scaleFor(axis, Math.max(...ticks.map(Math.abs), 0));
    const shown = ticks.map((tick) => Number((tick / scale).toPrecision(10)));
    const bare = name === "%" ? "%" : "";
    return {
      tickvals: ticks,
      ticktext: shown.map((n) => n.toLocaleString("en", { maximumFractionDigits: 6 }) + bare),
      title: name === "" || name === "%" ? axis.label : `${axis.label} (${name})`,
    };
  };

  // The range that shows all values with a little room.
  const rangeOf = (axis, values) => {
    if (axis.kind === "log") {
      const logs = values.filter((value) => value > 0).map(Math.log10);
      const low = Math.min(...logs), high = Math.max(...logs);
      const room = Math.max((high - low) * 0.04, 0.05);
      return [low - room, high + room];
    }
    const low = Math.min(...values, 0), high = Math.max(...values, 0);
    const room = axis.scales[0][1] === "%" && high <= 1 ? 0.01 : 0.05;
    const span = high - low || 1;
    return [low < 0 ? low - span * room : 0, high === low ? 1 : high + span * room];
  };

  // A vertical title is as long as its axis at the most: it gets as many lines as it needs.
  const LETTER_WIDTH = 6.5;
  const titleOf = (text, room) => {
    const lines = [""];
    for (const word of text.split(" ")) {
      const line = lines.at(-1);
      const joined = line ? `${line} ${word}` : word;
      if (line && joined.length * LETTER_WIDTH > room) lines.push(word);
      else lines[lines.length - 1] = joined;
    }
    return lines.map(escaped).join("<br>");
  };

  const axisLayout = (axis, range, room = Infinity) => {
    const base = {
      automargin: true,
      gridcolor: colour("--grid"),
      linecolor: colour("--line"),
      zeroline: false,
      ticks: "outside",
      ticklen: 4,
      tickcolor: colour("--line"),
      fixedrange: false,
    };
    if (axis.kind === "named") {
      const tickvals = axis.names.map((_, index) => index);
      return {
        ...base,
        type: "linear",
        range: [-0.6, axis.names.length - 0.4],
        tickvals,
        ticktext: axis.names.map(escaped),
        title: { text: titleOf(axis.label, room), standoff: 10 },
        gridcolor: "rgba(0,0,0,0)",
      };
    }
    const { tickvals, ticktext, title } = ticksOf(axis, range);
    return {
      ...base,
      type: axis.kind,
      range,
      tickvals,
      ticktext,
      title: { text: titleOf(title, room), standoff: 10 },
    };
  };

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
      autosize: true,
      margin: { l: 8, r: 12, t: 8, b: 8 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour("--soft") },
      barmode: "stack",
      bargap: 0.25,
      hovermode: "closest",
      hoverlabel: {
        bgcolor: colour("--card"),
        bordercolor: colour("--line"),
        font: { color: colour("--ink"), size: 12 },
        align: "left",
      },
      showlegend: real.length > 1,
      legend: {
        orientation: "h", traceorder: "normal", x: 0, y: 1.02, yanchor: "bottom", font: { size: 12, color: colour("--ink") },
      },
      dragmode: "zoom",
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("--soft"), activecolor: colour("--accent") },
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

  // New ticks for what a zoom shows.
  const follow = (index) => {
    let busy = false;
    place(index).on("plotly_relayout", (change) => {
      const zoomed = Object.keys(change).some((key) => /axis\.(range|autorange)/.test(key));
      if (busy || !zoomed) return;
      const update = {};
      for (const name of ["x", "y"]) {
        if (plots[index][name].kind === "named") continue;
        const { range } = place(index)._fullLayout[`${name}axis`];
        const { tickvals, ticktext, title } = ticksOf(plots[index][name], range);
        update[`${name}axis.tickvals`] = tickvals;
        update[`${name}axis.ticktext`] = ticktext;
        update[`${name}axis.title.text`] = titleOf(title, name === "y" ? roomOf(index) : Infinity);
      }
      busy = true;
      Plotly.relayout(place(index), update).finally(() => { busy = false; });
    });
  };

  drawAll().then(() => {
    plots.forEach((_, index) => follow(index));
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
