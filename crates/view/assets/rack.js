// The network over time: lines coloured by what they carried, queues as large as they were deep, in a span of time that a
// slider picks.
import { drawn, element, grouped, tableOf } from "./elements.js";

/* global charts */
const BYTES = { scales: [[1e9, "GB"], [1e6, "MB"], [1e3, "KB"], [1, "B"]] };
const RATE = { scales: [[1e12, "Tbps"], [1e9, "Gbps"], [1e6, "Mbps"], [1e3, "Kbps"], [1, "bps"]] };
const SECONDS = { scales: [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"], [1e-12, "ps"]] };
const WIDTH = 1000, ROW = 150, MARGIN = 40, QUEUE_MAX = 13;
// Labels of more nodes in a row would cover each other, and so would their lines to one switch.
const LABELLED = 40;
const BUSIEST = 8;

const kindOf = (name) => name.replace(/[\s\d.,/:-]*$/, "");

/** Where each node is drawn: rows by the distance from the hosts, hosts at the bottom; alike nodes alone in a circle, and
    many around a single switch. */
const placesOf = (nodes, links) => {
  const compare = new Intl.Collator("en", { numeric: true }).compare;
  const sorted = [...nodes].sort(compare);
  const neighbours = new Map(sorted.map((name) => [name, []]));
  for (const { from, to } of links) {
    neighbours.get(from).push(to);
    neighbours.get(to).push(from);
  }
  const hosts = sorted.filter((name) => kindOf(name) === "node");
  const level = new Map(hosts.map((name) => [name, 0]));
  const queue = [...hosts];
  while (queue.length) {
    const name = queue.shift();
    for (const next of neighbours.get(name)) {
      if (level.has(next)) continue;
      level.set(next, level.get(name) + 1);
      queue.push(next);
    }
  }
  const rows = [];
  for (const name of sorted) (rows[level.get(name) ?? 0] ??= []).push(name);
  const places = new Map();
  const isStar = rows.length === 2 && rows[1].length === 1 && rows[0].length > LABELLED;
  if (rows.length === 1 || isStar) {
    const [centre, radius] = [WIDTH / 2, WIDTH / 2 - 2 * MARGIN];
    rows[0].forEach((name, at) => {
      const angle = 2 * Math.PI * at / rows[0].length - Math.PI / 2;
      places.set(name, [centre + radius * Math.cos(angle), centre + radius * Math.sin(angle)]);
    });
    rows[1]?.forEach((name) => places.set(name, [centre, centre]));
    const outside = ([x, y]) => [x + (x - centre) / radius * 20, y + (y - centre) / radius * 20 + 4];
    return { places, height: WIDTH, apart: 2 * Math.PI * radius / rows[0].length, outside };
  }
  const height = (rows.length - 1) * ROW + 2 * MARGIN;
  rows.forEach((row, depth) => row.forEach((name, at) => {
    places.set(name, [(at + 0.5) * WIDTH / row.length, height - MARGIN - depth * ROW]);
  }));
  return { places, height, apart: WIDTH / Math.max(...rows.map((row) => row.length)), outside: ([x, y]) => [x, y + 22] };
};

/** The drawing with its slider; `mark` sets lines off by their names. */
export const makeRack = (picture) => {
  const { places, height, apart, outside } = placesOf(picture.nodes, picture.links);
  const widest = Math.min(3.5, apart / 6);
  const largestQueue = Math.min(QUEUE_MAX, Math.max(apart / 2, 3));
  const most = { carried: 1, found: 1 };
  for (const link of picture.links) {
    link.at = new Map(link.spans.map(([at, carried, found]) => [at, { carried, found }]));
    for (const [, carried, found] of link.spans) {
      most.carried = Math.max(most.carried, carried);
      most.found = Math.max(most.found, found);
    }
  }
  const rate = (carried) => charts.format(RATE, carried * 8 / picture.step_seconds);

  const beside = new Map();
  const lines = picture.links.map((link) => {
    const [[x1, y1], [x2, y2]] = [places.get(link.from), places.get(link.to)];
    // Beside the line of the other direction, and the others of its own.
    const pair = `${link.from} ${link.to}`;
    beside.set(pair, (beside.get(pair) ?? 0) + 1);
    // The line of a node's own NIC has no length: what waits for it stands at the node.
    const length = Math.hypot(x2 - x1, y2 - y1) || 1;
    const aside = Math.min(5, apart / 5) * (beside.get(pair) - 0.4);
    const [dx, dy] = [-(y2 - y1) / length * aside, (x2 - x1) / length * aside];
    const title = drawn("title");
    const line = drawn("line", { x1: x1 + dx, y1: y1 + dy, x2: x2 + dx, y2: y2 + dy, class: "wire" }, title);
    // A queue stands where its line begins, outside of the node.
    const share = Math.min(22 / length, 0.4);
    const queue = drawn("circle", { cx: x1 + dx + (x2 - x1) * share, cy: y1 + dy + (y2 - y1) * share, r: 0, class: "queue" });
    return { link, line, queue, title };
  });
  const nodes = picture.nodes.map((name) => {
    const [x, y] = places.get(name);
    const isHost = kindOf(name) === "node";
    const shape = isHost ? drawn("circle", { cx: x, cy: y, r: Math.min(6, 0.3 * apart), class: "host" })
      : drawn("rect", { x: x - 12, y: y - 7, width: 24, height: 14, rx: 3, class: "switch" });
    shape.append(drawn("title"));
    shape.firstChild.textContent = name;
    if (isHost && apart < WIDTH / LABELLED) return [shape];
    const [labelX, labelY] = isHost ? outside([x, y]) : [x, y - 14];
    const label = drawn("text", { x: labelX, y: labelY, class: "label" });
    label.textContent = isHost ? name.replace(/^node /, "") : name;
    return [shape, label];
  });
  const box = { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": "The network; the table below it says the same" };
  const svg = drawn("svg", box, ...lines.flatMap(({ line }) => line), ...lines.map(({ queue }) => queue), ...nodes.flat());

  const slider = element("input", { type: "range", min: "0", max: String(Math.max(picture.spans - 1, 0)), value: "0", id: "instant" });
  const said = element("output", { for: "instant" });
  const busiest = element("div");
  const draw = () => {
    const at = Number(slider.value);
    const from = at * picture.step_seconds;
    said.textContent = `${charts.format(SECONDS, from)} to ${charts.format(SECONDS, from + picture.step_seconds)}`;
    slider.setAttribute("aria-valuetext", said.textContent);
    for (const { link, line, queue, title } of lines) {
      const { carried, found } = link.at.get(at) ?? { carried: 0, found: 0 };
      const share = carried / most.carried;
      line.style.strokeWidth = carried ? 1 + widest * share : 1;
      line.style.stroke = carried ? `color-mix(in srgb, var(--series-1) ${Math.round(15 + 85 * share)}%, var(--grid))` : "";
      queue.setAttribute("r", found ? Math.max(2, largestQueue * Math.sqrt(found / most.found)) : 0);
      title.textContent = `${link.name}: ${rate(carried)}, queue ${charts.format(BYTES, found)}`;
    }
    const rows = lines.map(({ link }) => ({ link, ...(link.at.get(at) ?? { carried: 0, found: 0 }) }))
      .filter(({ carried, found }) => carried || found)
      .sort((a, b) => b.found - a.found || b.carried - a.carried).slice(0, BUSIEST);
    const columns = [["line", "Line"], ["carried", "Carried"], ["queue", "Most that waited"]]
      .map(([key, title], index) => ({ key, title, number: index > 0 }));
    busiest.replaceChildren(rows.length ? tableOf({ columns, rows: rows.map(({ link, carried, found }) =>
      [link.name, rate(carried), charts.format(BYTES, found)].map((text) => ({ text }))) })
      : element("p", { class: "note" }, "No line carried anything then."));
  };
  slider.addEventListener("input", draw);
  // Begins where most happened.
  const totals = new Array(picture.spans).fill(0);
  for (const link of picture.links) for (const [at, , found] of link.spans) totals[at] += found;
  slider.value = String(totals.indexOf(Math.max(...totals)));
  draw();

  const note = "The wider and darker a line, the more it carried of all flows, headers included (at most " +
    `${rate(most.carried)}); the larger a disc, the more waited for the line where it begins (at most ` +
    `${charts.format(BYTES, most.found)}).`;
  return {
    part: element("div", { class: "rack" }, element("p", { class: "note" }, note), svg,
      element("div", { class: "slide" }, element("label", { for: "instant" }, "Time"), slider, said), busiest),
    mark(names) {
      const wanted = new Set(names);
      for (const { link, line } of lines) line.classList.toggle("marked", wanted.has(link.name));
    },
  };
};
