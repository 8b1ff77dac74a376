// Which flows are chosen, in words and as fields that the keyboard reaches, and a table of them.
import { element, grouped } from "./elements.js";
import { STATUS, top } from "./flows.js";

/* global charts */
// Rows that are added at a time (our choice).
const PAGE = 25;

const RANGES = [["size", "Size"], ["slowdown", "Slowdown"], ["fct", "Completion time"], ["start", "Start"]];

/** A quantity as people type it, `100 KB`, in the unit of `axis`; null: nothing, NaN: no quantity. */
export const parsed = (axis, text) => {
  const found = /^\s*([-+.\de]*\d)\s*([a-zµ%/]*)\s*$/i.exec(text.replaceAll(",", ""));
  if (!text.trim()) return null;
  if (!found) return NaN;
  const name = found[2].replace(/^u/, "µ").toLowerCase();
  if (!name) return Number(found[1]);
  const scale = axis.scales.find(([, unit]) => unit.toLowerCase() === name);
  return scale ? Number(found[1]) * scale[0] : NaN;
};

/** Fields for the conditions. */
const makeForm = (choice, axes) => {
  const fields = {};
  const field = (name, label, side) => {
    const input = element("input", {
      type: "text", inputmode: "text", autocomplete: "off", spellcheck: "false", "aria-label": `${label}, ${side}`,
      placeholder: side,
    });
    (fields[name] ??= []).push(input);
    return input;
  };
  const ranges = RANGES.map(([name, label]) => element("fieldset", {},
    element("legend", {}, label), field(name, label, "from"), field(name, label, "to")));
  const node = element("input", { type: "text", inputmode: "numeric", autocomplete: "off", "aria-label": "Node, at either end" });
  const status = element("select", { "aria-label": "Status" }, element("option", { value: "" }, "any"),
    STATUS.map((word, at) => element("option", { value: at }, word)));
  const all = element("input", { type: "checkbox", id: "all-flows" });
  const told = element("p", { class: "warning", role: "alert" });
  const form = element("form", { class: "choose", "aria-label": "Choose flows" }, ranges,
    element("fieldset", {}, element("legend", {}, "Node"), node),
    element("fieldset", {}, element("legend", {}, "Status"), status),
    element("div", { class: "buttons" },
      element("button", { type: "submit" }, "Choose"),
      element("button", { type: "button", onclick: () => choice.clear() }, "Clear"),
      element("label", { for: "all-flows" }, all, " also flows that are not measured")), told);

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const changes = {};
    const wrong = [];
    for (const [name, label] of RANGES) {
      const [low, high] = fields[name].map((input) => parsed(axes[name], input.value));
      if (Number.isNaN(low) || Number.isNaN(high)) wrong.push(label);
      changes[name] = low === null && high === null ? null : [low ?? -Infinity, high ?? Infinity];
    }
    const number = node.value.trim();
    if (number && !/^\d+$/.test(number)) wrong.push("Node");
    changes.node = number ? Number(number) : null;
    changes.status = status.value === "" ? null : Number(status.value);
    told.textContent = wrong.length
      ? `${wrong.join(", ")}: expected a number, with a unit if you like: 100 KB, 2.5 µs` : "";
    if (!wrong.length) choice.set(changes);
  });
  all.addEventListener("change", () => choice.lookAtAll(all.checked));

  const show = () => {
    const conditions = choice.conditions();
    for (const [name] of RANGES) {
      const range = conditions[name] ?? [];
      fields[name].forEach((input, side) => {
        input.value = Number.isFinite(range[side]) ? charts.format(axes[name], range[side]) : "";
      });
    }
    node.value = conditions.node ?? "";
    status.value = conditions.status ?? "";
  };
  return { form, show };
};

const COLUMNS = [
  ["flow", "Flow"], ["src", "From"], ["dst", "To"], ["size", "Size"], ["start", "Start"],
  ["fct", "Completion time"], ["slowdown", "Slowdown"], ["status", "Status"],
];

/** The chosen flows: how many, fields to choose by, a table, slowest first. `pick` is told the number of a flow. */
export const makeTable = (choice, axes, pick) => {
  const { flows } = choice;
  let order = "slowdown", isDescending = true, shown = PAGE;
  const count = element("p", { role: "status", id: "count" });
  const { form, show } = makeForm(choice, axes);
  const more = element("button", { type: "button", class: "more" }, `${PAGE} more`);
  const body = element("tbody");
  const heads = COLUMNS.map(([name, title]) => {
    const button = element("button", { type: "button" }, title);
    button.addEventListener("click", () => {
      isDescending = order === name ? !isDescending : !["flow", "src", "dst", "start", "status"].includes(name);
      [order, shown] = [name, PAGE];
      draw();
    });
    return element("th", { scope: "col", class: name === "status" ? null : "number", "data-column": name }, button);
  });
  const table = element("table", { id: "flows" }, element("thead", {}, element("tr", {}, heads)), body);

  const text = (name, row) => {
    const value = flows[name][row];
    if (name === "status") return STATUS[value];
    if (["flow", "src", "dst"].includes(name)) return String(value);
    return Number.isNaN(value) ? "–" : charts.format(axes[name], value);
  };
  const line = (row) => element("tr", { "data-flow": flows.flow[row] }, COLUMNS.map(([name]) => {
    const number = flows.flow[row];
    const content = name !== "flow" ? text(name, row)
      : element("button", { type: "button", class: "link", "aria-label": `Why flow ${number}`, onclick: () => pick(number) }, String(number));
    return element("td", { class: name === "status" ? null : "number" }, content);
  }));
  const draw = () => {
    const base = choice.base(), chosen = choice.chosen();
    const rows = chosen ?? base;
    const among = chosen ? `${grouped(rows.length)} of ${grouped(base.length)} flows chosen` : `${grouped(rows.length)} flows, none chosen in particular`;
    const sampled = flows.every > 1
      ? `. The run has ${grouped(flows.total)}, too many for a page: it shows one in ${grouped(flows.every)}` : "";
    count.textContent = among + sampled;
    COLUMNS.forEach(([name], at) => {
      heads[at].setAttribute("aria-sort", name !== order ? "none" : isDescending ? "descending" : "ascending");
    });
    body.replaceChildren(...top(rows, flows[order], shown, isDescending).map(line));
    more.hidden = rows.length <= shown;
    show();
  };
  more.addEventListener("click", () => {
    shown += PAGE;
    draw();
    body.rows[shown - PAGE]?.querySelector("button")?.focus();
  });
  choice.watch(() => {
    shown = PAGE;
    draw();
  });
  draw();
  return element("div", {}, count, form,
    element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Flows" }, table), more);
};
