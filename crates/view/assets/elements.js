// Elements, answers and tables: what all parts of the page use. Text from results enters the page as text alone.

/** An element with attributes (`on…` are listeners, null and false are left out) and children. */
export const element = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
};

/** An element of a drawing. */
export const drawn = (tag, attributes = {}, ...children) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
};

/** What the server answers, or an error in its words. */
export const ask = async (what, parameters) => {
  const query = new URLSearchParams(parameters);
  const answer = await fetch(`/api/${what}?${query}`).catch(() => {
    throw new Error("The command `rackloom view` does not answer any more: was it ended?");
  });
  if (!answer.ok) throw new Error(await answer.text());
  return answer;
};

export const askJson = async (what, parameters) => (await ask(what, parameters)).json();

/** A count as in tables. */
export const grouped = (number) => number.toLocaleString("en");

/** A table as the server sends it; `button` may make more of a cell's text. */
export const tableOf = ({ columns, rows }, button = () => null) => {
  const head = columns.map((column) =>
    element("th", { scope: "col", class: column.number ? "number" : null }, column.title));
  const cellOf = (cell, index, row) => {
    const content = button(cell, columns[index], row)
      || (cell.tone === "plain" || !cell.tone ? cell.text : element("span", { class: cell.tone }, cell.text));
    const attributes = { class: columns[index].number ? "number" : null, "data-column": columns[index].key };
    return element("td", attributes, content);
  };
  const body = rows.map((row) => element("tr", {}, row.map((cell, index) => cellOf(cell, index, row))));
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" }, element("table", {},
    element("thead", {}, element("tr", {}, head)), element("tbody", {}, body)));
};

/** A part of the page that unfolds. */
export const folded = (title, ...children) =>
  element("details", {}, element("summary", {}, title), element("div", { class: "folded" }, children));

/** What went wrong, where it would have stood. */
export const trouble = (error) => element("p", { class: "warning", role: "alert" }, error.message);
