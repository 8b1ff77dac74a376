// The list of results: groups with their runs, a filter, how far runs under way have come.
import { element, grouped } from "./elements.js";

const KINDS = {
  run: "run", comparison: "comparison", sweep: "sweep", search: "search",
  reproduction: "reproduction", underway: "under way", partial: "not complete",
};
// Lines that are shown at once; a filter finds the others.
const SHOWN_MAX = 500;

/** How far a run has come: share, and words. */
export const progressOf = (progress) => {
  const share = progress.total ? Math.min(progress.ended / progress.total, 1) : null;
  const of = progress.total ? ` of ${grouped(progress.total)}` : "";
  const left = share ? progress.wall_seconds * (1 - share) / share : null;
  const time = left === null ? "" : `, some ${left < 90 ? `${Math.ceil(left)} s` : `${Math.ceil(left / 60)} min`} left`;
  return { share, text: `${grouped(progress.ended)}${of} flows${time}` };
};

export const makeList = (show) => {
  const list = document.getElementById("list");
  const filter = document.getElementById("filter");
  const found = document.getElementById("found");
  let entries = [], isCut = false, progress = {}, current = null;

  // Runs of sweeps and searches have names that say nothing: they are found in the tables of those.
  const groups = () => new Map(entries.map((entry) => [entry.path, entry]));
  const isListed = (entry, all) => {
    const group = entry.part_of && all.get(entry.part_of);
    return !group || group.kind === "comparison" || entry.kind === "underway";
  };

  const line = (entry) => {
    const link = element("a", {
      href: `#${encodeURI(entry.path)}`,
      "aria-current": entry.path === current ? "page" : null,
    },
      element("span", { class: "name" }, entry.path === "." ? entry.name : entry.path),
      element("span", { class: "note" }, [KINDS[entry.kind], entry.note].filter(Boolean).join(" · ")));
    const item = element("li", { class: entry.part_of ? "part" : null, "data-path": entry.path }, link);
    const told = progress[entry.path];
    if (told) {
      const { share, text } = progressOf(told);
      link.append(element("progress", { max: "1", value: share, "aria-label": `${entry.path}: ${text}` }));
    }
    return item;
  };

  const draw = () => {
    const focused = list.contains(document.activeElement)
      ? document.activeElement.closest("li").dataset.path : null;
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const all = groups();
    const fits = (entry) => {
      const text = `${entry.path} ${entry.name} ${entry.note} ${KINDS[entry.kind]}`.toLowerCase();
      return words.every((word) => text.includes(word));
    };
    const listed = entries.filter((entry) => isListed(entry, all) && fits(entry));
    list.replaceChildren(...listed.slice(0, SHOWN_MAX).map(line));
    const more = listed.length > SHOWN_MAX ? `, the first ${SHOWN_MAX} shown` : "";
    const cut = isCut ? "; the directory holds more than was looked at" : "";
    found.textContent = `${grouped(listed.length)} ${listed.length === 1 ? "result" : "results"}${more}${cut}`;
    if (focused) list.querySelector(`li[data-path="${CSS.escape(focused)}"] a`)?.focus();
  };

  filter.addEventListener("input", draw);
  // From the filter down into the list, and along it, with the arrow keys.
  document.getElementById("side").addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const links = [...list.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement);
    const next = at + step < 0 ? filter : links[Math.min(at + step, links.length - 1)];
    next?.focus();
    event.preventDefault();
  });

  return {
    /** There are these entries now. */
    update(listing) {
      entries = listing.entries;
      isCut = listing.is_cut;
      document.getElementById("directory").textContent = listing.directory;
      draw();
    },
    /** Runs under way have come this far. */
    advance(all) {
      progress = all;
      draw();
    },
    /** This one is shown. */
    choose(path) {
      current = path;
      draw();
    },
    entry: (path) => entries.find((entry) => entry.path === path),
    progress: (path) => progress[path],
    first: () => entries.find((entry) => isListed(entry, groups()) && entry.kind !== "partial"),
  };
};
