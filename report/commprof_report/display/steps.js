"use strict";
/* Draws the time of the steps (plots/bars.py has the data's format). A click or the arrow keys name a
   step, and show it in the timeline if its calls are in the page: these steps have a mark beneath. */
(() => {
  const data = JSON.parse(document.getElementById("steps-data").textContent);
  const [picture, said, legend] = ["picture", "said", "legend"].map((name) => document.getElementById(`steps-${name}`));
  const choice = document.getElementById("timeline-step"); // null: there is no timeline
  const LEFT = 58, RIGHT = 8, TOP = data.notes.some(Boolean) ? 124 : 30, BOTTOM = TOP + 184, MARK = 5, GAP_FROM = 5;
  const NEAREST_TICKS = 70, NEAREST_NOTES = 11;

  const { first, last, times, parts } = data;
  const end = last.at(-1) + 1;
  const shown = first.map((step, bar) => choice ? [...choice.options].findIndex(({ value }) => step <= value && value <= last[bar]) : -1);
  let at = null;

  const width = () => picture.clientWidth;
  const x = (step) => LEFT + (step - first[0]) / (end - first[0]) * (width() - LEFT - RIGHT);
  const y = (ns) => BOTTOM - Math.min(1, ns / data.top) * (BOTTOM - TOP);

  function box(bar, low, high) {
    const left = x(first[bar]), right = x(last[bar] + 1);
    return `M${left.toFixed(1)},${low.toFixed(1)}V${high.toFixed(1)}H${(right - (right - left >= GAP_FROM)).toFixed(1)}V${low.toFixed(1)}z`;
  }

  function draw() {
    const below = times.map(() => 0), add = cleared(picture, BOTTOM + 40);
    drawAxes(add);
    for (const { colour, values } of parts) {
      const boxes = values.map((ns, bar) => box(bar, y(below[bar]), y(below[bar] += ns)));
      add("path", { fill: colour, d: boxes.join("") });
    }
    drawNotes(add);
    const marks = shown.map((place, bar) => place < 0 ? "" : box(bar, BOTTOM + 3, BOTTOM + 3 + MARK));
    add("path", { class: "mark", d: marks.join("") });
    if (at !== null) add("path", { class: "cursor", d: box(at, BOTTOM + 3 + MARK, TOP) });
  }

  const middle = (bar) => (x(first[bar]) + x(last[bar] + 1)) / 2 + 4;

  /* Above an outlier or a cut bar a mark and its time; near neighbours share a text, from the least to the most. */
  function drawNotes(add) {
    const marked = data.notes.map((note, bar) => note ? bar : -1).filter((bar) => bar >= 0), groups = [];
    for (const bar of marked)
      if (groups.length && middle(bar) - middle(groups.at(-1)[0]) < NEAREST_NOTES) groups.at(-1).push(bar);
      else groups.push([bar]);
    for (const group of groups) {
      const own = group.map((bar) => times[bar]), ends = [Math.min(...own), Math.max(...own)].map(units.duration);
      for (const bar of group) { // the text begins above them all
        const isFirst = bar === group[0], above = y(isFirst ? Math.max(...own) : times[bar]) - 3;
        const transform = `translate(${middle(bar).toFixed(1)},${above.toFixed(1)}) rotate(-90)`;
        add("text", { class: "outlier", transform }, `\u25b8 ${isFirst ? [...new Set(ends)].join(" to ") : ""}`);
      }
    }
  }

  function drawAxes(add) {
    const time = nice(data.top / 5), step = Math.max(1, nice((end - first[0]) * NEAREST_TICKS / width()));
    add("text", { class: "tick", "text-anchor": "end", x: width() - RIGHT, y: BOTTOM + 36 }, "step");
    add("text", { x: 4, y: 12 }, "time per step (mean over ranks)");
    for (let ns = 0; ns <= data.top; ns += time) {
      add("line", { class: "grid", x1: LEFT, x2: width() - RIGHT, y1: y(ns), y2: y(ns) });
      add("text", { class: "tick", "text-anchor": "end", x: LEFT - 6, y: y(ns) + 4 }, ns ? units.tick(ns) : "0");
    }
    for (let one = Math.ceil(first[0] / step) * step; one < end; one += step)
      if (x(one + 0.5) < width() - 24) add("text", { class: "tick", "text-anchor": "middle", x: x(one + 0.5), y: BOTTOM + 22 }, one);
  }

  function text(bar) {
    const isOne = first[bar] === last[bar], spent = parts.map(({ name, values }) => [values[bar], name]).filter(([ns]) => ns);
    const sum = spent.length > 1 ? [spent.map(([ns, name]) => `${units.duration(ns)} ${name}`).join(" + ")] : [];
    const here = !choice ? [] : shown[bar] < 0 ? ["not in the timeline"] : isOne ? [] : [`in the timeline: step ${choice.options[shown[bar]].value}`];
    const name = isOne ? `step ${first[bar]}` : `steps ${first[bar]} to ${last[bar]}, mean`;
    return [[`${name}: ${units.duration(times[bar])}`, ...sum].join(" = "), data.remarks[bar], ...here].filter(Boolean).join("; ");
  }

  function read(bar) {
    at = Math.max(0, Math.min(bar, first.length - 1));
    said.textContent = text(at);
    draw();
  }

  function choose(bar) {
    read(bar);
    if (shown[at] < 0) return;
    choice.selectedIndex = shown[at];
    choice.dispatchEvent(new Event("change"));
  }

  /* The bar at a place, or the next one. */
  function barAt(left) {
    const step = Math.floor(first[0] + (left - LEFT) / (width() - LEFT - RIGHT) * (end - first[0])), bar = last.findIndex((one) => one >= step);
    return bar < 0 ? first.length - 1 : bar;
  }

  onArrows(picture, () => at, () => first.length - 1, choose);
  const left = (event) => event.clientX - picture.getBoundingClientRect().left;
  picture.addEventListener("pointermove", (event) => { said.textContent = text(barAt(left(event))); });
  picture.addEventListener("pointerleave", () => { said.textContent = at === null ? "" : text(at); });
  picture.addEventListener("click", (event) => choose(barAt(left(event))));
  choice?.addEventListener("change", () => {
    const bar = first.findIndex((step, place) => step <= choice.value && choice.value <= last[place]);
    if (bar >= 0 && bar !== at) read(bar);
  });
  for (const { name, colour } of parts) explain(legend, name, "sample", colour);
  if (data.notes.some(Boolean))
    explain(legend, "\u25b8 the time of an outlier, or of a bar that is cut there; of near neighbours from the least to the most");
  if (choice) explain(legend, "underlined steps can be opened in the timeline");
  new ResizeObserver(draw).observe(picture);
  draw();
})();
