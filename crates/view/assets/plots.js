// Plots of a run that show the same flows: what is chosen in one is marked in the others.
import { element, grouped } from "./elements.js";
import { top } from "./flows.js";

/* global charts, Plotly */
// Points of a scatter plot that are drawn (our choice: a browser stays quick): the slowest, and one in so many.
const SLOWEST = 1000, SAMPLED = 3000;
// Points of a curve, bars of a histogram (our choice).
const CURVE = 400, BINS = 60;
const CONFIG = {
  responsive: true,
  displaylogo: false,
  modeBarButtons: [["select2d", "zoom2d", "pan2d", "resetScale2d", "toImage"]],
  toImageButtonOptions: { format: "svg", filename: "rackloom-plot" },
};

/** A plot: `content(choice)` gives traces and axes, `brushes` the conditions that its selected range sets. */
const makePlot = (choice, { title, note, axes, content, brushes, direction, pick }) => {
  const place = element("div", { class: "plot", role: "img", "aria-label": title });
  const noted = element("p", { class: "note" });
  const figure = element("figure", {}, element("figcaption", {}, element("h3", {}, title), noted), place);
  let isDrawn = false;
  const room = () => place.clientHeight * 0.65;

  // The chosen range as a box; both sides of it count.
  const box = () => {
    const conditions = choice.conditions();
    const [x, y] = [brushes.x, brushes.y].map((name) => name && conditions[name]);
    if (!x && !y) return [];
    const side = (range, axis) => range
      ? { [`${axis}0`]: range[0], [`${axis}1`]: range[1], [`${axis}ref`]: axis }
      : { [`${axis}0`]: 0, [`${axis}1`]: 1, [`${axis}ref`]: `${axis} domain` };
    const line = { color: charts.colour("--ink"), width: 1, dash: "dot" };
    return [{ type: "rect", line, fillcolor: charts.colour("--soft"), opacity: 0.12, ...side(x, "x"), ...side(y, "y") }];
  };

  const draw = async () => {
    const { traces, ranges, said } = content();
    noted.textContent = said ?? note;
    const layout = {
      ...charts.baseLayout(),
      barmode: "overlay",
      bargap: 0.08,
      showlegend: traces.length > 1,
      dragmode: place._fullLayout?.dragmode ?? "select",
      selectdirection: direction,
      shapes: box(),
      selections: [],
      xaxis: charts.axisLayout(axes.x, ranges.x),
      yaxis: charts.axisLayout(axes.y, ranges.y, room()),
    };
    await Plotly.react(place, traces, layout, CONFIG);
    if (isDrawn) return;
    isDrawn = true;
    charts.follow(place, axes, room);
    place.on("plotly_selected", (event) => {
      if (!event?.range) return;
      const changes = {};
      for (const axis of ["x", "y"]) {
        const range = event.range[axis];
        if (brushes[axis] && range) changes[brushes[axis]] = [Math.min(...range), Math.max(...range)];
      }
      choice.set(changes);
    });
    place.on("plotly_doubleclick", () => {
      choice.set(Object.fromEntries(Object.values(brushes).map((name) => [name, null])));
    });
    if (pick) place.on("plotly_click", (event) => pick(event.points[0].customdata));
  };
  return { figure, draw };
};

/** `make` of an array of rows, made once for each array: of a million flows it takes a while. */
const kept = (make) => {
  const all = new WeakMap();
  return (rows) => {
    if (!all.has(rows)) all.set(rows, make(rows));
    return all.get(rows);
  };
};

const extent = (rows, column, isLog) => {
  let low = Infinity, high = -Infinity;
  for (const row of rows) {
    const value = column[row];
    if (Number.isNaN(value) || (isLog && value <= 0)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [1, 10];
};

const marks = (name, hue, symbol, size, opacity) => ({
  name, type: "scatter", mode: "markers",
  marker: { color: charts.colour(`--series-${hue}`), symbol, size, opacity, line: { width: 0 } },
});

/** Slowdown against size: each flow a point, as far as they can be drawn. */
const scatter = (choice, axes, pick) => {
  const { flows } = choice;
  // Some of the rows: the slowest, and of the others one in so many.
  const someOf = (rows) => {
    const completed = rows.filter((row) => !Number.isNaN(flows.slowdown[row]));
    if (completed.length <= SLOWEST + SAMPLED) return { rows: completed, of: completed.length, every: 1 };
    const slowest = new Set(top(completed, flows.slowdown, SLOWEST, true));
    const every = Math.ceil((completed.length - SLOWEST) / SAMPLED);
    const others = completed.filter((row) => !slowest.has(row)).filter((_, at) => at % every === 0);
    return { rows: [...others, ...slowest], of: completed.length, every };
  };
  const tip = (row) => `<b>flow ${flows.flow[row]}</b><br>${charts.escaped(charts.format(axes.size, flows.size[row]))} ` +
    `from node ${flows.src[row]} to node ${flows.dst[row]}<br>Slowdown ${charts.format(axes.slowdown, flows.slowdown[row])}, ` +
    `completion time ${charts.escaped(charts.format(axes.fct, flows.fct[row]))}`;
  const trace = (rows, looks) => ({
    ...looks,
    x: Array.from(rows, (row) => flows.size[row]),
    y: Array.from(rows, (row) => flows.slowdown[row]),
    customdata: Array.from(rows),
    text: Array.from(rows, tip),
    hovertemplate: "%{text}<extra></extra>",
  });
  const some = kept(someOf);
  const reach = kept((rows) => ({
    x: charts.rangeOf(axes.size, extent(rows, flows.size, true)),
    y: charts.rangeOf(axes.slowdown, extent(rows, flows.slowdown, true)),
  }));
  return makePlot(choice, {
    title: "Slowdown and size",
    axes: { x: axes.size, y: axes.slowdown },
    brushes: { x: "size", y: "slowdown" },
    direction: "any",
    pick: (row) => pick(flows.flow[row]),
    content: () => {
      const base = choice.base(), chosen = choice.chosen();
      const drawn = some(base);
      const isFaint = chosen !== null;
      const traces = [trace(drawn.rows, marks(isFaint ? "Other flows" : "Flows", 0, "circle", 5, isFaint ? 0.22 : 0.6))];
      if (chosen) traces.push(trace(some(chosen).rows, marks("Chosen", 1, "diamond", 7, 0.85)));
      const said = drawn.every === 1
        ? "Each completed flow a point. Drag a box to choose flows; a click on one tells where its time went."
        : `${grouped(drawn.rows.length)} of ${grouped(drawn.of)} completed flows are drawn: the slowest ${grouped(SLOWEST)} and ` +
          `one in ${grouped(drawn.every)} of the others. A box chooses among all.`;
      return { traces, ranges: reach(base), said };
    },
  });
};

/** Values of some rows in order, thinned to points of a cumulative curve; both ends stay. */
const cumulative = (rows, column) => {
  const values = new Float64Array(rows.length).map((_, at) => column[rows[at]]).filter((value) => value > 0).sort();
  const count = Math.min(values.length, CURVE);
  const x = [], y = [];
  for (let point = 0; point < count; point += 1) {
    const at = count === 1 ? 0 : Math.round(point * (values.length - 1) / (count - 1));
    x.push(values[at]);
    y.push((at + 1) / values.length);
  }
  return { x, y };
};

const distribution = (choice, axes) => {
  const { flows } = choice;
  const points = kept((rows) => cumulative(rows, flows.fct));
  const reach = kept((rows) => charts.rangeOf(axes.fct, extent(rows, flows.fct, true)));
  const curve = (name, rows, hue, dash) => {
    const { x, y } = points(rows);
    const text = x.map((value, at) => `<b>${name}</b><br>${charts.escaped(charts.format(axes.share, y[at]))} within ` +
      charts.escaped(charts.format(axes.fct, value)));
    return {
      name, x, y, text, type: "scatter", mode: "lines", hovertemplate: "%{text}<extra></extra>",
      line: { color: charts.colour(`--series-${hue}`), width: 1.9, dash, simplify: false },
    };
  };
  return makePlot(choice, {
    title: "Completion times",
    note: "Share of flows that completed within a time. Drag along it to choose flows.",
    axes: { x: axes.fct, y: axes.share },
    brushes: { x: "fct" },
    direction: "h",
    content: () => {
      const base = choice.base(), chosen = choice.chosen();
      const traces = [curve(chosen ? "All flows" : "Flows", base, 0, "solid")];
      if (chosen) traces.push(curve("Chosen", chosen, 1, "dash"));
      return { traces, ranges: { x: reach(base), y: [0, 1.01] } };
    },
  });
};

const arrivals = (choice, axes) => {
  const { flows } = choice;
  const reach = kept((rows) => rows.length ? extent(rows, flows.start, false) : [0, 1]);
  return makePlot(choice, {
    title: "Arrivals",
    note: "Flows by the time at which they began. Drag along it to choose flows.",
    axes: { x: axes.start, y: axes.count },
    brushes: { x: "start" },
    direction: "h",
    content: () => {
      const base = choice.base(), chosen = choice.chosen();
      const [low, high] = reach(base);
      const width = (high - low) / BINS || 1e-12;
      const bars = (name, rows, hue, opacity) => {
        const counts = new Array(BINS).fill(0);
        for (const row of rows) counts[Math.min(BINS - 1, Math.floor((flows.start[row] - low) / width))] += 1;
        const x = counts.map((_, bin) => low + (bin + 0.5) * width);
        const text = counts.map((count, bin) => `<b>${name}</b><br>${grouped(count)} from ` +
          `${charts.escaped(charts.format(axes.start, low + bin * width))} on`);
        return {
          name, x, y: counts, text, type: "bar", width, textposition: "none", hovertemplate: "%{text}<extra></extra>",
          marker: { color: charts.colour(`--series-${hue}`), opacity, line: { color: charts.colour("--card"), width: 1 } },
        };
      };
      const all = bars(chosen ? "All flows" : "Flows", base, 0, chosen ? 0.45 : 0.9);
      const traces = chosen ? [all, bars("Chosen", chosen, 1, 0.95)] : [all];
      const ranges = { x: [low, high], y: charts.rangeOf(axes.count, all.y) };
      return { traces, ranges };
    },
  });
};

/** A gauge over time; a range of time chooses the flows under way then. */
const gauge = (choice, time, seconds, { label, meaning, axis, values }) => makePlot(choice, {
  title: label,
  note: `${meaning}. Drag along it to choose the flows under way then.`,
  axes: { x: time, y: axis },
  brushes: { x: "active" },
  direction: "h",
  content: () => {
    const text = values.map((value, at) => `<b>${charts.escaped(label)}</b><br>` +
      `${charts.escaped(charts.format(axis, value))} at ${charts.escaped(charts.format(time, seconds[at]))}`);
    const line = { color: charts.colour("--series-2"), width: 1.2 };
    const trace = { x: seconds, y: values, text, type: "scatter", mode: "lines", line, hovertemplate: "%{text}<extra></extra>" };
    const last = seconds.length ? seconds[seconds.length - 1] : 1;
    return { traces: [trace], ranges: { x: [0, last], y: charts.rangeOf(axis, values) } };
  },
});

/** The plots of flows, and below them those of gauges; all follow the choice. */
export const makePlots = (choice, axes, pick) => {
  const plots = [scatter(choice, axes, pick), distribution(choice, axes), arrivals(choice, axes)];
  // One after another, with room for the browser in between; a later choice makes an earlier one's drawing useless.
  let number = 0;
  const drawAll = async () => {
    number += 1;
    const own = number;
    for (const plot of [...plots]) {
      await plot.draw();
      await new Promise((done) => { setTimeout(done); });
      if (own !== number) return;
    }
  };
  choice.watch(drawAll);
  return {
    figures: element("div", { class: "plots flows" }, plots.map((plot) => plot.figure)),
    drawAll,
    /** Adds gauges to `place`. */
    addGauges(place, series) {
      const time = axes.start;
      const shown = series.gauges.filter((one) => one.values.some((value) => value !== 0));
      const made = shown.map((one) => gauge(choice, time, series.seconds, one));
      place.append(...made.map((plot) => plot.figure));
      plots.push(...made);
      return Promise.all(made.map((plot) => plot.draw()));
    },
  };
};
