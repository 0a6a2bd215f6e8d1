"use strict";
/* Tables sort by the column whose head is pressed, and are copied as CSV. A number's cell has its text; units are taken into account. Long tables
   begin with their first rows and are filtered by words, and bytes are shown to the byte on demand. */
(() => {
  const FACTORS = {
    ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9, min: 6e10, h: 3.6e12,
    B: 1, KB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, PB: 1e15, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30,
  };
  const FEWEST_FILTERED = 10, MOST_SHORT = 15; // rows; .short in page.html has the latter too

  function value(cell) {
    const found = /^[><~[(]?\s*(x?)([-+]?[\d,]+(?:\.\d+)?)\s*([a-zµ]*)/i.exec(cell.textContent.trim());
    if (!found) return -Infinity;
    const number = Number(found[2].replaceAll(",", ""));
    return found[1] ? 100 * (number - 1) : number * (FACTORS[found[3]] || 1); // x3.4 is +240 %
  }

  function sort(table, column, head) {
    const isNumber = head.classList.contains("number"), body = table.tBodies[0], order = head.ariaSort === "descending" ? 1 : -1;
    const key = (row) => isNumber ? value(row.cells[column]) : row.cells[column].textContent;
    const sign = isNumber || head.ariaSort ? order : 1;
    const rows = [...body.rows].map((row) => [key(row), row]);
    rows.sort(([one], [other]) => sign * (one < other ? -1 : one > other ? 1 : 0));
    for (const one of table.tHead.rows[0].cells) one.removeAttribute("aria-sort");
    head.ariaSort = sign > 0 ? "ascending" : "descending";
    body.append(...rows.map(([, row]) => row));
  }

  function csv(table) {
    const quoted = (cell) => `"${cell.textContent.replaceAll('"', '""')}"`;
    return [...table.rows].filter((row) => !row.hidden).map((row) => [...row.cells].map(quoted).join(",")).join("\r\n") + "\r\n";
  }

  const made = (tag, more) => Object.assign(document.createElement(tag), more);

  /* Leaves the rows that have each of the words. */
  function filter(table) {
    const rows = [...table.tBodies[0].rows], label = made("label", { className: "filter" }), said = made("span", { role: "status" });
    const input = made("input", { type: "search", placeholder: "filter rows" });
    input.setAttribute("aria-label", "filter rows: words that they have");
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/);
      for (const row of rows) row.hidden = !words.every((word) => [...row.cells].some((cell) => cell.textContent.toLowerCase().includes(word)));
      const shown = rows.filter((row) => !row.hidden).length;
      if (input.value) showAll(table);
      said.textContent = shown < rows.length ? ` ${shown} of ${rows.length}` : "";
    });
    label.append(input, said);
    table.parentElement.before(label);
  }

  function showAll(table) {
    table.classList.remove("short");
    table.allRows?.remove();
  }

  function shorten(table) {
    const button = made("button", { textContent: `all ${table.tBodies[0].rows.length} rows`, className: "copy" });
    button.addEventListener("click", () => showAll(table));
    table.classList.add("short");
    table.allRows = button;
    table.parentElement.after(button);
  }

  /* Where columns, or a part of a picture, are beyond the edge. */
  function hint(around) {
    const said = made("span", { className: "hint", textContent: "more: scroll to the right \u2192" });
    around.after(said);
    const look = () => {
      const isMore = around.scrollLeft + around.clientWidth < around.scrollWidth - 1;
      around.classList.toggle("more", isMore);
      said.hidden = !isMore;
    };
    around.addEventListener("scroll", look);
    new ResizeObserver(look).observe(around);
  }

  for (const table of document.querySelectorAll("table")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.append(...head.childNodes);
      button.addEventListener("click", () => sort(table, column, head));
      head.append(button);
    });
    const copy = made("button", { textContent: "copy as CSV", className: "copy" });
    copy.addEventListener("click", async () => {
      await navigator.clipboard.writeText(csv(table));
      copy.textContent = "copied";
    });
    table.parentElement.after(copy, " ");
    if (table.tBodies[0].rows.length > MOST_SHORT) shorten(table);
    if (table.tBodies[0].rows.length >= FEWEST_FILTERED) filter(table);
  }
  document.querySelectorAll(".scroll").forEach(hint);
})();
