// The page of one run: figures, linked plots, the table of flows, the network over time.
import { ask, askJson, element, folded, grouped, tableOf, trouble } from "./elements.js";
import { decode, makeChoice } from "./flows.js";
import { makePlots } from "./plots.js";
import { makeRack } from "./rack.js";
import { makeTable } from "./table.js";
import { makeWhy } from "./why.js";

const tile = ({ label, value, note, tone }) => element("div", { class: `tile ${tone}` },
  element("p", { class: "label" }, label), element("p", { class: "value" }, value),
  note ? element("p", { class: "note" }, note) : null);

/** How to have packets recorded, of a run that did not. */
const unrecorded = (overview) => [
  element("p", {}, "This run recorded nothing of single lines and queues over time. The key ",
    element("code", {}, "run.trace"), " of its scenario does. The same run with it, and the ",
    "same results:"),
  element("pre", { class: "command" }, element("code", {}, overview.again)),
];

/** Fills `place` with the run at `path`; gives what draws it again in other colours. */
export const showRun = async (path, place, isCurrent) => {
  const overview = await askJson("run", { path });
  if (!isCurrent()) return () => {};
  const tiles = element("div", { class: "tiles" }, overview.tiles.map(tile));
  const loading = element("p", { class: "note", role: "status" }, "Reading flows …");
  const links = overview.has_report
    ? element("p", {}, element("a", { href: `/files/${encodeURI(path === "." ? "" : `${path}/`)}report.html`, target: "_blank", rel: "noopener" },
      "Its report as a page of its own")) : null;
  place.append(...overview.warnings.map((text) => element("p", { class: "warning" }, text)), tiles, links ?? "", loading);

  let flows;
  try {
    flows = decode(await (await ask("flows", { path })).arrayBuffer());
  } catch (error) {
    loading.replaceWith(trouble(error));
    return () => {};
  }
  if (!isCurrent()) return () => {};
  loading.remove();
  const choice = makeChoice(flows);
  let rack = null;
  const why = makeWhy(path, (among) => choice.set({ among }), (names) => rack?.mark(names));
  const plots = makePlots(choice, overview.axes, why);
  const section = (title, ...parts) => {
    const made = element("section", {}, element("h2", {}, title), parts);
    place.append(made);
    return made;
  };
  section("Flows", plots.figures, makeTable(choice, overview.axes, why));
  await plots.drawAll();

  const network = section("The network over time");
  if (overview.has_links) {
    try {
      const picture = await askJson("rack", { path });
      if (!isCurrent()) return () => {};
      rack = makeRack(picture);
      network.append(rack.part);
    } catch (error) {
      network.append(trouble(error));
    }
  } else {
    network.append(...unrecorded(overview));
  }
  if (overview.has_trace) {
    const recorded = section("Recorded flows");
    try {
      const table = await askJson("recorded", { path });
      if (!isCurrent()) return () => {};
      if (table.all > table.rows.length) {
        recorded.append(element("p", { class: "note" },
          `The slowest ${grouped(table.rows.length)} of ${grouped(table.all)}; the others open from the table of flows.`));
      }
      recorded.append(element("div", { class: "long" }, tableOf(table, (cell, column) => column.key !== "flow_id" ? null
        : element("button", { type: "button", class: "link", onclick: () => why(cell.value) }, cell.text))));
    } catch (error) {
      recorded.append(trouble(error));
    }
  }

  if (overview.has_series) {
    const gauges = element("div", { class: "plots" });
    section("Gauges over time", gauges);
    try {
      const series = await askJson("series", { path });
      if (!isCurrent()) return () => {};
      await plots.addGauges(gauges, series);
    } catch (error) {
      gauges.replaceWith(trouble(error));
    }
  }
  section("Figures", folded("By class of flows", tableOf(overview.distributions)),
    folded("All figures", tableOf(overview.figures)),
    folded("The scenario as resolved", element("pre", {}, element("code", {}, overview.scenario))));
  return plots.drawAll;
};
