"use strict";
/* Tables sort by the column whose head is pressed, and are copied as CSV. A number's cell has its text; units are taken into account. */
(() => {
  const FACTORS = {
    ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9, min: 6e10, h: 3.6e12,
    B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, PB: 1e15, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30,
  };

  function value(cell) {
    const found = /^[><[]?\s*(x?)([-+]?[\d,]+(?:\.\d+)?)\s*([^\s/]*)/.exec(cell.textContent.trim());
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
    return [...table.rows].map((row) => [...row.cells].map(quoted).join(",")).join("\r\n") + "\r\n";
  }

  for (const table of document.querySelectorAll("table")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.append(...head.childNodes);
      button.addEventListener("click", () => sort(table, column, head));
      head.append(button);
    });
    const copy = Object.assign(document.createElement("button"), { textContent: "copy as CSV", className: "copy" });
    copy.addEventListener("click", async () => {
      await navigator.clipboard.writeText(csv(table));
      copy.textContent = "copied";
    });
    table.parentElement.after(copy);
  }
})();
