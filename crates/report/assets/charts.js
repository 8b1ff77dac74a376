// What every chart of Rackloom has in common: colours of the style sheet, numbers as in the tables, ticks at round
// values, axes. A classic script, so that a report holds it as it is; `charts` is all that it leaves behind.
"use strict";
const charts = (() => {
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
      // Each tick says its unit, as they differ.
      return { tickvals: ticks, ticktext: ticks.map((tick) => format(axis, tick)), title: axis.label };
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

  // What the charts of a page share: no frame, the page's font, tips on the page's cards.
  const baseLayout = () => ({
    autosize: true,
    margin: { l: 8, r: 12, t: 8, b: 8 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour("--soft") },
    hovermode: "closest",
    hoverlabel: {
      bgcolor: colour("--card"),
      bordercolor: colour("--line"),
      font: { color: colour("--ink"), size: 12 },
      align: "left",
    },
    legend: {
      orientation: "h", traceorder: "normal", x: 0, y: 1.02, yanchor: "bottom", font: { size: 12, color: colour("--ink") },
    },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("--soft"), activecolor: colour("--accent") },
  });

  // New ticks for what a zoom shows: `axes` has the chart's x and y, `room` the height of its vertical axis.
  const follow = (element, axes, room) => {
    let busy = false;
    element.on("plotly_relayout", (change) => {
      const zoomed = Object.keys(change).some((key) => /axis\.(range|autorange)/.test(key));
      if (busy || !zoomed) return;
      const update = {};
      for (const name of ["x", "y"]) {
        if (axes[name].kind === "named") continue;
        const { range } = element._fullLayout[`${name}axis`];
        const { tickvals, ticktext, title } = ticksOf(axes[name], range);
        update[`${name}axis.tickvals`] = tickvals;
        update[`${name}axis.ticktext`] = ticktext;
        update[`${name}axis.title.text`] = titleOf(title, name === "y" ? room() : Infinity);
      }
      busy = true;
      Plotly.relayout(element, update).finally(() => { busy = false; });
    });
  };

  return { colour, escaped, format, ticksOf, rangeOf, titleOf, axisLayout, baseLayout, follow };
})();
