"use strict";
/* Draws the timelines of some steps, ranks x time (plots/timeline.py has the data's format), on one canvas.

   Wheel or + and - zoom, dragging or the arrow keys move, 0 shows the whole step, the mouse or Tab's focus with , and . names a piece. A row is
   a rank, or a folded host: then that rank of it is drawn that waited least, for which the others may have waited. Beneath a rank are its GPUs,
   where it is known what they did. */
(() => {
  const data = JSON.parse(document.getElementById("timeline-data").textContent);
  const canvas = document.getElementById("timeline");
  const choice = document.getElementById("timeline-step");
  const pathBox = document.getElementById("timeline-path");
  const foldBox = document.getElementById("timeline-fold");
  const gpusBox = document.getElementById("timeline-gpus");
  const said = document.getElementById("timeline-said");
  const legend = document.getElementById("timeline-legend");
  const pen = canvas.getContext("2d");

  const [WAITING, UNSPLIT, UNSEEN] = ["waiting", "in MPI, not split", "not sampled"].map((name) => data.states.indexOf(name));
  const COMPUTING = 1, COMMUNICATING = 2;
  const LEFT = 96, TOP = 26, TALLEST = 22, SHORTEST = 2, MOST_HEIGHT = 720, NEAREST_NS = 200, MOST_UNFOLDED = 64, LONGEST_NAME = 13, LABEL = 14, LEAST_STRIPS = 6;

  const views = data.views.map(unpack);
  const calls = callsByTime();
  const unfolded = new Set(); // hosts
  let view = views[0], from = 0, until = view.span, named = null, rows = [];

  function unpack(packed) {
    const ranks = packed.ranks.map(({ rank, host, begin, end, pieces, gpus }) => {
      const lane = { rank, host, begin, end, waited: 0 };
      lane.pieces = consecutive(pieces, 6, ([state, call, waitsFor, detail]) => ({ lane, state, call, waitsFor, detail }));
      for (const piece of lane.pieces)
        if (piece.state === WAITING) lane.waited += piece.end - piece.begin;
      lane.gpus = gpus.map(({ number, pieces: ofGpu }) => {
        const own = { rank, host, number, begin: 0, end: packed.span };
        own.pieces = consecutive(ofGpu, 3, ([states]) => ({ lane: own, states }));
        return own;
      });
      return lane;
    });
    return { ...packed, ranks };
  }

  /* Of each piece: the time since the piece before, its duration, and what `rest` makes of the others. */
  function consecutive(numbers, each, rest) {
    const found = [];
    for (let first = 0, at = 0; first < numbers.length; first += each) {
      const [gap, time, ...others] = numbers.slice(first, first + each);
      found.push({ begin: at + gap, end: at + gap + time, ...rest(others) });
      at += gap + time;
    }
    return found;
  }

  /* Of the chosen step: each row's ranks and the lane that is drawn. */
  function arrange() {
    const folds = foldBox.checked, byHost = new Map();
    rows = [];
    for (const one of view.ranks) {
      const isFolded = folds && !unfolded.has(one.host);
      const row = (isFolded && byHost.get(one.host)) || { host: one.host, isFolded, ranks: [] };
      if (!row.ranks.length) rows.push(row);
      byHost.set(one.host, row);
      row.ranks.push(one);
      if (!isFolded && gpusBox.checked) rows.push(...one.gpus.map((lane) => ({ host: one.host, isFolded, ranks: [], lane })));
    }
    rows.forEach((row, place) => {
      row.lane ||= row.ranks.reduce((least, one) => (one.waited < least.waited ? one : least));
      for (const one of [row.lane, ...row.ranks]) one.row = place;
    });
    name(null);
  }

  const rowOf = (rank) => view.ranks.find((one) => one.rank === rank)?.row;

  function callsByTime() {
    const spent = new Map();
    for (const { ranks } of views)
      for (const { pieces } of ranks)
        for (const { call, begin, end } of pieces)
          if (call) spent.set(call, (spent.get(call) || 0) + end - begin);
    return [...spent.keys()].sort((one, other) => spent.get(other) - spent.get(one));
  }

  const root = getComputedStyle(document.documentElement);
  const style = (name) => root.getPropertyValue(name);
  const valueOf = (colour) => style(colour.slice("var(".length, -1));
  const width = () => canvas.clientWidth;
  const rowHeight = () => Math.max(SHORTEST, Math.min(TALLEST, Math.floor(MOST_HEIGHT / rows.length)));
  const x = (ns) => LEFT + (ns - from) / (until - from) * (width() - LEFT);
  const y = (row) => TOP + row * rowHeight();
  const timeAt = (left) => from + (left - LEFT) / (width() - LEFT) * (until - from);

  function draw() {
    const height = TOP + rows.length * rowHeight() + 2, ratio = window.devicePixelRatio || 1;
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width() * ratio);
    canvas.height = Math.round(height * ratio);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width(), height);
    drawAxis(height);
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, TOP, width() - LEFT, height);
    pen.clip();
    rows.forEach(({ lane }, row) => drawRow(lane, row));
    if (pathBox.checked) drawPath();
    if (named) drawNamed();
    pen.restore();
  }

  function drawAxis(height) {
    pen.font = "12px system-ui, sans-serif";
    pen.fillStyle = style("--soft");
    pen.strokeStyle = style("--line");
    const tick = nice((until - from) / Math.max(2, (width() - LEFT) / 110));
    const zero = Math.min(...view.ranks.map(({ begin }) => begin));
    pen.textAlign = "center"; // a label that would be cut is left out
    for (let at = Math.ceil((from - zero) / tick) * tick + zero; at <= until; at += tick) {
      if (x(at) < width() - 30) pen.fillText(at === zero ? "0" : units.tick(at - zero), x(at), 12);
      pen.beginPath();
      pen.moveTo(x(at), TOP - 8);
      pen.lineTo(x(at), height);
      pen.stroke();
    }
    pen.textAlign = "right";
    let free = 0; // below the last label
    rows.forEach((one, row) => {
      if (y(row) < free || (isGpu(one.lane) && rowHeight() < LABEL)) return;
      pen.fillText(label(one), LEFT - 6, y(row) + rowHeight() / 2 + 4);
      free = y(row) + LABEL;
    });
  }

  const isGpu = (lane) => lane.number !== undefined;

  function label({ host, isFolded, lane }) {
    const name = data.hosts[host];
    if (isFolded) return name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME - 1)}…` : name;
    return isGpu(lane) ? `GPU ${lane.number}` : `rank ${lane.rank}`;
  }

  function drawRow(lane, row) {
    const { begin, end, pieces } = lane, drawn = isGpu(lane) ? drawGpu : drawPiece;
    const high = Math.max(1, rowHeight() - (rowHeight() > 6 ? 3 : 0));
    fill(style("--outside"), x(begin), y(row), x(end) - x(begin), high);
    for (const piece of pieces)
      if (piece.end >= from && piece.begin <= until) drawn(piece, y(row), high);
    if (!isGpu(lane)) for (const edge of [begin, end]) fill(style("--ink"), x(edge) - 1, y(row) - 1, 2, high + 2); // of the rank's step
  }

  function drawPiece({ begin, end, state, call }, top, high) {
    const left = x(begin), wide = Math.max(0.5, x(end) - left), colour = valueOf(data.colours[call]);
    pen.globalAlpha = state === UNSPLIT ? 0.45 : 1;
    fill(state === WAITING ? hatched(colour) : state === UNSEEN ? hatched(style("--soft")) : colour, left, top, wide, high);
    pen.globalAlpha = 1;
  }

  /* A strip for each of its states; in a low row the first state alone, so that computing hides the communication beside it. */
  function drawGpu({ begin, end, states }, top, high) {
    const left = x(begin), wide = Math.max(0.5, x(end) - left), strips = high < LEAST_STRIPS ? 1 : data.gpuStates.length;
    const running = data.gpuStates.map((_, state) => state).filter((state) => states >> state & 1);
    if (!states) fill(hatched(style("--soft")), left, top, wide, high);
    for (const state of strips === 1 ? running.slice(0, 1) : running)
      fill(valueOf(data.gpuColours[state]), left, top + (strips === 1 ? 0 : state) * high / strips, wide, high / strips);
  }

  function fill(colour, ...box) {
    pen.fillStyle = colour;
    pen.fillRect(...box);
  }

  const hatches = new Map();
  function hatched(colour) {
    const paper = style("--paper"), key = colour + paper;
    if (!hatches.has(key)) {
      const tile = Object.assign(document.createElement("canvas"), { width: 6, height: 6 }), brush = tile.getContext("2d");
      brush.fillStyle = paper;
      brush.fillRect(0, 0, 6, 6);
      brush.strokeStyle = colour;
      brush.lineWidth = 1.6;
      for (const shift of [-6, 0, 6]) {
        brush.beginPath();
        brush.moveTo(shift - 1, 7);
        brush.lineTo(shift + 7, -1);
        brush.stroke();
      }
      hatches.set(key, pen.createPattern(tile, "repeat"));
    }
    return hatches.get(key);
  }

  /* The latest part first: from the end of the step to its begin. */
  function drawPath() {
    pen.strokeStyle = style("--path");
    pen.lineWidth = 2;
    pen.beginPath();
    view.path.forEach(([rank, begin, end], place) => {
      const middle = y(rowOf(rank)) + rowHeight() / 2;
      if (place) pen.lineTo(x(end), middle);
      else pen.moveTo(x(end), middle);
      pen.lineTo(x(begin), middle);
    });
    pen.stroke();
  }

  function drawNamed() {
    const { lane: { row }, begin, end, waitsFor } = named, high = rowHeight(), other = rowOf(waitsFor);
    pen.strokeStyle = style("--ink");
    pen.lineWidth = 1.5;
    pen.strokeRect(x(begin), y(row), Math.max(1, x(end) - x(begin)), Math.max(2, high - 3));
    if (other === undefined || other === row) return;
    const [start, stop] = [other, row].map((one) => y(one) + high / 2);
    const down = stop > start ? 1 : -1;
    pen.fillStyle = style("--ink");
    pen.beginPath();
    pen.moveTo(x(end), start);
    pen.lineTo(x(end), stop - 6 * down);
    pen.stroke();
    pen.beginPath();
    pen.moveTo(x(end), stop);
    pen.lineTo(x(end) - 4, stop - 8 * down);
    pen.lineTo(x(end) + 4, stop - 8 * down);
    pen.fill();
  }

  function text({ lane, begin, end, states, state, call, waitsFor, detail }) {
    const of = [data.names[call], data.names[detail]].filter(Boolean).join(", ");
    const what = state === WAITING ? `waiting for ${waitsFor < 0 ? "others" : `rank ${waitsFor}`}` : data.states[state];
    const parts = isGpu(lane) ? [`GPU ${lane.number}`, gpuText(states)] : [of, what];
    return [`rank ${lane.rank}`, ...parts, units.duration(end - begin)].filter(Boolean).join(" · ");
  }

  function gpuText(states) {
    const running = data.gpuStates.filter((_, state) => states >> state & 1);
    const isExposed = states & COMMUNICATING && !(states & COMPUTING);
    return running.length ? running.join(", ") + (isExposed ? ": communication is exposed" : "") : data.states[UNSEEN];
  }

  function name(piece) {
    named = piece;
    said.textContent = piece ? text(piece) : "";
    draw();
  }

  function pieceAt(left, top) {
    const row = Math.floor((top - TOP) / rowHeight()), time = timeAt(left), near = (until - from) / width();
    if (left < LEFT || !rows[row]) return null;
    return rows[row].lane.pieces.find(({ begin, end }) => begin - near <= time && time <= end + near) || null;
  }

  function zoom(factor, around) {
    const span = Math.min(view.span, Math.max(NEAREST_NS, (until - from) * factor));
    const share = (around - from) / (until - from);
    show(around - share * span, span);
  }

  function show(begin, span) {
    from = Math.max(0, Math.min(begin, view.span - span));
    until = from + span;
    draw();
  }

  function next(direction) {
    const row = named ? named.lane.row : 0, own = rows[row].lane.pieces, at = named ? own.indexOf(named) + direction : 0;
    if (own[at]) name(own[at]);
    else if (rows[row + direction]) name(rows[row + direction].lane.pieces.at(direction > 0 ? 0 : -1) || null);
  }

  function choose(place) {
    view = views[place];
    document.getElementById("timeline-note").textContent = view.note;
    [from, until] = [0, view.span];
    arrange();
  }

  function toggle(host) {
    if (!unfolded.delete(host)) unfolded.add(host);
    arrange();
  }

  const middle = () => (from + until) / 2;
  onKeys(canvas, {
    "+": () => zoom(0.5, middle()),
    "-": () => zoom(2, middle()),
    "0": () => show(0, view.span),
    ArrowLeft: () => show(from - (until - from) / 8, until - from),
    ArrowRight: () => show(from + (until - from) / 8, until - from),
    ".": () => next(1),
    ",": () => next(-1),
    Enter: () => { if (named && foldBox.checked) toggle(named.lane.host); },
  });

  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(event.deltaY < 0 ? 0.8 : 1.25, timeAt(Math.max(LEFT, event.offsetX)));
  }, { passive: false });
  canvas.addEventListener("pointermove", (event) => {
    if (event.buttons & 1) show(from - event.movementX / (width() - LEFT) * (until - from), until - from);
    else name(pieceAt(event.offsetX, event.offsetY));
  });
  canvas.addEventListener("click", (event) => {
    const row = rows[Math.floor((event.offsetY - TOP) / rowHeight())];
    if (event.offsetX < LEFT && row && foldBox.checked) toggle(row.host);
  });
  choice.addEventListener("change", () => choose(choice.selectedIndex));
  pathBox.addEventListener("change", draw);
  gpusBox.addEventListener("change", arrange);
  foldBox.addEventListener("change", () => {
    unfolded.clear();
    arrange();
  });
  new ResizeObserver(draw).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

  views.forEach(({ title, step }) => choice.append(new Option(title, step)));
  for (const call of calls) explain(legend, data.names[call], "sample", data.colours[call]);
  gpusBox.parentElement.hidden = !views.some(({ ranks }) => ranks.some(({ gpus }) => gpus.length));
  if (!gpusBox.parentElement.hidden) data.gpuStates.forEach((state, place) => explain(legend, `GPU ${state}`, "sample", data.gpuColours[place]));
  foldBox.parentElement.hidden = data.hosts.length < 2 || data.hosts.length === view.ranks.length;
  foldBox.checked = !foldBox.parentElement.hidden && view.ranks.length > MOST_UNFOLDED;
  choose(0);
})();
