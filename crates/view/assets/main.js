// The page: picks what is shown by the address behind `#`, and follows the server's news.
import { element, trouble } from "./elements.js";
import { makeList, progressOf } from "./list.js";
import { showGroup } from "./group.js";
import { showRun } from "./run.js";

const content = document.getElementById("content");
const side = document.getElementById("side");
const menu = document.getElementById("menu");

const open = (path) => { location.hash = encodeURI(path); };
const list = makeList(open);
// Number of what is shown: an answer that comes late belongs to none.
let number = 0;
let drawAgain = () => {};
let shown = null;

const asked = () => decodeURIComponent(location.hash.slice(1)) || list.first()?.path;

/** A run that is under way: how far it has come. */
const showProgress = () => {
  const bar = element("progress", { id: "progress", max: "1" });
  const text = element("p", { role: "status" });
  content.append(element("p", {}, "This run is under way; its results are here when it is over."), bar, text);
  return () => {
    const progress = list.progress(shown.path);
    if (!progress) return;
    const { share, text: words } = progressOf(progress);
    if (share === null) bar.removeAttribute("value"); else bar.value = share;
    text.textContent = `${words}, ${(progress.simulated_seconds * 1e3).toPrecision(3)} ms simulated, ` +
      `${Math.round(progress.wall_seconds)} s since it began`;
  };
};
let advance = () => {};

const titleOf = (entry) => element("header", { class: "masthead" },
  element("h1", {}, entry.path === "." ? entry.name : entry.path.split("/").pop()),
  element("p", { class: "lead" }, [entry.path, entry.note].filter((part) => part && part !== ".").join(" · ")),
  entry.part_of ? element("p", {}, element("a", { href: `#${encodeURI(entry.part_of)}` }, `Part of ${entry.part_of}`)) : null);

const reportOf = (entry) => element("p", {}, element("a", {
  href: `/files/${encodeURI(entry.path === "." ? "" : `${entry.path}/`)}report.html`, target: "_blank", rel: "noopener",
}, "Its report as a page of its own"));

const show = async () => {
  const path = asked();
  const entry = list.entry(path);
  number += 1;
  const own = number;
  list.choose(path);
  drawAgain = advance = () => {};
  shown = entry ? { path, kind: entry.kind, modified: entry.modified } : null;
  document.body.removeAttribute("data-shown");
  if (!entry) {
    content.replaceChildren(element("p", { role: "alert" }, path
      ? `${path}: no such results here; pick others from the list.` : "Pick results from the list."));
    return;
  }
  document.title = `${entry.path} · Rackloom`;
  content.replaceChildren(titleOf(entry));
  try {
    if (entry.kind === "run") {
      drawAgain = await showRun(path, content, () => own === number);
    } else if (entry.kind === "underway") {
      advance = showProgress();
      advance();
    } else if (entry.kind === "partial") {
      content.append(element("p", {}, "There is no summary: the run is writing its results, or was killed before it had. ",
        "The same command runs it again."));
    } else {
      content.append(reportOf(entry));
      if (entry.kind !== "reproduction") drawAgain = await showGroup(entry, content, open);
    }
  } catch (error) {
    if (own === number) content.append(trouble(error));
  }
  if (own === number) document.body.dataset.shown = path;
};

const news = new EventSource("/api/live");
news.addEventListener("list", (event) => {
  list.update(JSON.parse(event.data));
  lost.hidden = true;
  const entry = list.entry(asked());
  const same = shown && entry && shown.path === entry.path && shown.kind === entry.kind && shown.modified === entry.modified;
  if (!same) show();
});
news.addEventListener("progress", (event) => {
  list.advance(JSON.parse(event.data));
  advance();
});
const lost = element("p", { class: "warning lost", role: "alert", hidden: true },
  "The command `rackloom view` does not answer any more: was it ended?");
document.body.append(lost);
news.addEventListener("error", () => { lost.hidden = false; });
news.addEventListener("open", () => { lost.hidden = true; });

const setMenu = (isOpen) => {
  menu.setAttribute("aria-expanded", String(isOpen));
  side.classList.toggle("open", isOpen);
};
menu.addEventListener("click", () => {
  const isOpen = menu.getAttribute("aria-expanded") !== "true";
  setMenu(isOpen);
  if (isOpen) document.getElementById("filter").focus();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && side.classList.contains("open")) {
    setMenu(false);
    menu.focus();
  }
});
window.addEventListener("hashchange", async () => {
  setMenu(false);
  await show();
  content.focus({ preventScroll: true });
  window.scrollTo(0, 0);
});
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAgain());
