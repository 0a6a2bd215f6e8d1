"use strict";
/* Overlays histograms of durations (plots/histograms.py has the data's format): calls per octave above, the share up to a duration below.

   The mouse or the arrow keys read a bucket off: its calls, and the share of calls up to its end. */
(() => {
  const data = JSON.parse(document.getElementById("histograms-data").textContent);
  const [picture, said, legend, choices] = ["picture", "said", "legend", "choices"].map((name) => document.getElementById(`histograms-${name}`));
  const LEFT = 58, RIGHT = 14, TOP = 22, DENSITY = 190, GAP = 34, SHARES = 120, BOTTOM = TOP + DENSITY + GAP + SHARES, NEAREST_TICKS = 64;
  const TENTHS = Array.from({ length: 90 }, (_, place) => 1 + place / 10);
  const TICKS = [TENTHS, TENTHS.filter((_, place) => place % 5 === 0), [1, 1.5, 2, 3, 5, 7], [1, 2, 5], [1]]; // within a power of ten

  const curves = data.curves.map(unpack);
  let add, shown = [], bounds = [], at = null;

  function unpack({ name, note, buckets, colour }) {
    const rows = [];
    let calls = 0;
    for (let place = 0; place < buckets.length; place += 3) {
      const [low, high, count] = buckets.slice(place, place + 3);
      calls += count;
      rows.push({ low, high, count, below: calls });
    }
    for (const row of rows) row.density = row.count / calls / Math.log2(row.high / row.low);
    return { name, note, rows, calls, colour };
  }

  /* A call's own; of a second curve of it, and of the sides of a comparison, one that no call has. */
  function colour(place) {
    const own = shown[place].colour;
    if (!own) return `var(--${["first", "second", "third", "fourth"][place % 4]})`;
    return shown.findIndex((one) => one.colour === own) < place ? "var(--ink)" : own;
  }

  const width = () => picture.clientWidth;
  const from = () => Math.min(...shown.flatMap(({ rows }) => rows.map(({ low }) => low)));
  const until = () => bounds.at(-1);
  const x = (ns) => LEFT + Math.log(ns / from()) / Math.log(until() / from()) * (width() - LEFT - RIGHT);
  const timeAt = (left) => from() * (until() / from()) ** ((left - LEFT) / (width() - LEFT - RIGHT));
  const yShare = (share) => BOTTOM - share * SHARES;

  function draw() {
    add = cleared(picture, BOTTOM + 24);
    if (!bounds.length) return;
    const most = Math.max(...shown.flatMap(({ rows }) => rows.map(({ density }) => density)));
    const yDensity = (density) => TOP + DENSITY * (1 - density / most);
    add("text", { x: 4, y: 12 }, "density: share of calls per octave (doubling of the duration)");
    add("text", { x: 4, y: TOP + DENSITY + GAP - 10 }, "share of calls up to here");
    drawTimes();
    for (const share of [0, 0.25, 0.5, 0.75, 1]) drawLevel(yShare(share), share);
    for (let density = 0; density <= most; density += nice(most / 4)) drawLevel(yDensity(density), density);
    shown.forEach(({ rows, calls }, place) => {
      add("path", { class: `density curve-${place % 4}`, color: colour(place), d: steps(rows, yDensity) });
      const points = rows.flatMap(({ low, high, count, below }) => [[low, below - count], [high, below]]);
      const places = [...points, [until(), calls]].map(([ns, under]) => `${x(ns)},${yShare(under / calls)}`);
      if (rows.length) add("path", { class: `curve curve-${place % 4}`, color: colour(place), d: `M${places.join("L")}` });
    });
    if (at !== null) drawCursor();
  }

  function steps(rows, yDensity) {
    let path = "", end = null;
    for (const { low, high, density } of rows) {
      if (end !== low) path += `${end === null ? "" : `V${yDensity(0)}`}M${x(low)},${yDensity(0)}`;
      path += `V${yDensity(density)}H${x(high)}`;
      end = high;
    }
    return path && `${path}V${yDensity(0)}`;
  }

  function drawTimes() {
    for (const tick of TICKS.map(within).find(areApart) || []) {
      for (const [top, bottom] of [[TOP, TOP + DENSITY], [BOTTOM - SHARES, BOTTOM]])
        add("line", { class: "grid", x1: x(tick), x2: x(tick), y1: top, y2: bottom });
      if (x(tick) < width() - 24) add("text", { x: x(tick), y: BOTTOM + 17, "text-anchor": "middle" }, units.tick(tick));
    }
  }

  function within(parts) {
    const [low, high] = [from(), until()].map((ns) => Math.floor(Math.log10(ns)));
    const powers = Array.from({ length: high - low + 1 }, (_, place) => 10 ** (low + place));
    return powers.flatMap((power) => parts.map((part) => part * power)).filter((tick) => from() <= tick && tick <= until());
  }

  const areApart = (ticks) => ticks.every((tick, place) => !place || x(tick) - x(ticks[place - 1]) >= NEAREST_TICKS);

  function drawLevel(y, share) {
    add("line", { class: "grid", x1: LEFT, x2: width() - RIGHT, y1: y, y2: y });
    add("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, `${Number((100 * share).toPrecision(3))} %`);
  }

  function drawCursor() {
    const { low, high } = bucket();
    const [left, right] = [x(low), x(high)];
    add("rect", { class: "cursor", x: left, y: TOP, width: Math.max(1, right - left), height: BOTTOM - TOP });
    shown.forEach((curve, place) => {
      if (curve.calls) add("circle", { class: `point curve-${place % 4}`, color: colour(place), cx: right, cy: yShare(below(curve, high) / curve.calls), r: 4 });
    });
  }

  /* Of any curve: they have their bounds in common. */
  const bucket = () => shown.flatMap(({ rows }) => rows).find(({ high }) => high === bounds[at]);
  const below = ({ rows }, high) => rows.reduce((found, row) => row.high <= high ? row.below : found, 0);

  function text() {
    const { low, high } = bucket();
    const each = shown.filter(({ calls }) => calls).map((curve) => {
      const own = curve.rows.find((row) => row.high === high);
      return `${curve.name} ${units.calls(own ? own.count : 0)}, ${units.share(below(curve, high) / curve.calls)} up to here`;
    });
    return `${units.duration(low)} to ${units.duration(high)}: ${each.join("; ")}`;
  }

  function read(place) {
    at = bounds.length ? Math.max(0, Math.min(place, bounds.length - 1)) : null;
    said.textContent = at === null ? "" : text();
    draw();
  }

  function choose() {
    const chosen = [...choices.querySelectorAll("select")].flatMap((list, place) => data.choices[place].options[list.selectedIndex][1]);
    shown = [...new Set(chosen)].map((number) => curves[number]);
    bounds = [...new Set(shown.flatMap(({ rows }) => rows.map(({ high }) => high)))].sort((one, other) => one - other);
    at = null;
    said.textContent = "";
    legend.replaceChildren();
    shown.forEach(({ name, note }, place) => explain(legend, `${name}: ${note}`, `stroke stroke-${place % 4}`, colour(place)));
    draw();
  }

  onArrows(picture, () => at, () => bounds.length - 1, read);
  picture.addEventListener("pointermove", (event) => {
    const time = timeAt(event.clientX - picture.getBoundingClientRect().left), place = bounds.findIndex((high) => time < high);
    read(place < 0 ? bounds.length - 1 : place);
  });
  for (const { label, options } of data.choices) {
    const list = document.createElement("select"), named = document.createElement("label");
    list.append(...options.map(([title]) => new Option(title)));
    list.addEventListener("change", choose);
    named.append(`${label} `, list);
    choices.append(named, " ");
  }
  new ResizeObserver(draw).observe(picture);
  choose();
})();
