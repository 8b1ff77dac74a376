// Where the time of one flow went: the parts of its completion time as bars, the queues that it met.
import { askJson, element, tableOf, trouble } from "./elements.js";

/* global charts */
const SECONDS = { scales: [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"], [1e-12, "ps"]] };

const time = (seconds) => seconds === null ? "–" : charts.format(SECONDS, seconds);

/** The parts, each with a bar as long as its share. */
const bars = ({ rows }) => {
  const most = Math.max(...rows.slice(0, -1).map(([, , , , share]) => share.value), 0) || 1;
  const hues = new Map();
  const hue = (part) => hues.get(part) ?? hues.set(part, hues.size % 8).get(part);
  const line = ([part, at, seconds, , share], index) => {
    const isSum = index === rows.length - 1;
    const bar = element("span", { class: "bar-of-time", "aria-hidden": "true" });
    bar.style.width = isSum ? "0" : `${Math.max(share.value / most * 100, 0.5)}%`;
    bar.style.background = `var(--series-${isSum ? 0 : hue(part.value)})`;
    return element("tr", { class: isSum ? "sum" : null }, element("td", {}, part.text), element("td", {}, at.text),
      element("td", { class: "bars" }, bar), element("td", { class: "number" }, seconds.text),
      element("td", { class: "number" }, share.text));
  };
  const heads = ["Where the time went", "At", "", "Time", "Share"].map((title, at) =>
    element("th", { scope: "col", class: at > 2 ? "number" : null }, title));
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Parts of the completion time" },
    element("table", { class: "parts" }, element("thead", {}, element("tr", {}, heads)), element("tbody", {}, rows.map(line))));
};

/** The dialogue of a run at `path`; `choose` is told flows, `mark` the lines that a flow took. */
export const makeWhy = (path, choose, mark) => {
  const dialog = document.getElementById("why");
  const close = element("button", { type: "button", class: "close", onclick: () => dialog.close() }, "Close");
  const open = async (flow) => {
    const title = element("h2", { id: "why-title", tabindex: "-1" }, `Flow ${flow}`);
    const content = element("div", {}, element("p", { class: "note" }, "Reading the record …"));
    dialog.replaceChildren(element("div", { class: "dialog-head" }, title, close), content);
    if (!dialog.open) dialog.showModal();
    title.focus();
    try {
      content.replaceChildren(...told(await askJson("why", { path, flow }), open));
    } catch (error) {
      content.replaceChildren(trouble(error));
    }
  };
  const told = (why, again) => {
    const parts = [];
    const size = charts.format({ scales: [[1e9, "GB"], [1e6, "MB"], [1e3, "KB"], [1, "B"]] }, why.size_bytes);
    parts.push(element("p", {}, `${size} from node ${why.src} to node ${why.dst}, from ${time(why.start_seconds)} on. ` +
      (why.parts_table
        ? `Completion time ${time(why.fct_seconds)}, ideal ${time(why.ideal_fct_seconds)}, slowdown ` +
          `${charts.format({ scales: [[1, ""]] }, why.slowdown)}. Packets of data: ${why.data_packets}, of which sent again: ` +
          `${why.retransmitted_packets}; the critical one is packet ${why.critical_packet}.`
        : `It did not complete (${why.status}), so its time has no parts.`)));
    if (why.parts_table) parts.push(bars(why.parts_table));
    parts.push(element("h3", {}, "Queues that its data met"), tableOf(why.queues_table));
    const beside = new Set(why.queues.flatMap((queue) => queue.beside.map((one) => one.flow_id)).filter((one) => one !== null));
    if (beside.size) {
      const links = [...beside].slice(0, 12).map((one) =>
        element("button", { type: "button", onclick: () => again(one) }, `Flow ${one}`));
      parts.push(element("h3", {}, "Flows that it waited behind"), element("div", { class: "buttons" }, links,
        element("button", {
          type: "button",
          onclick: () => {
            dialog.close();
            choose(new Set([why.flow_id, ...beside]));
          },
        }, "Choose them all in the plots")));
    }
    mark((why.parts ?? []).map((part) => part.at).filter(Boolean).concat(why.queues.map((queue) => queue.queue)));
    return parts;
  };
  return open;
};
