"use strict";
/* Draws the timeline of a run, ranks x time (plots/timeline.py has the data's format), on one canvas.

   A row is a rank or one of its GPUs. Where single calls are in the page, and neither they nor rows are smaller than a pixel, they are drawn; elsewhere
   the shares of the bins: stacked, or mixed in a low row. Wheel, + and -, or two fingers zoom; dragging or the arrow keys move, 0 shows the whole
   run; Shift and the wheel, or [ and ], make rows higher. The mouse, or . and , name a call, and Enter shows the named one at close range. */
(() => {
  const data = JSON.parse(document.getElementById("timeline-data").textContent);
  const canvas = document.getElementById("timeline");
  const choice = document.getElementById("timeline-step");
  const [pathBox, messagesBox, gpusBox] = ["path", "messages", "gpus"].map((name) => document.getElementById(`timeline-${name}`));
  const said = document.getElementById("timeline-said");
  const legend = document.getElementById("timeline-legend");
  const pen = canvas.getContext("2d");

  const [OUTSIDE, WAITING, UNSEEN, ABSENT] = ["outside MPI", "waiting", "not sampled", "not running"].map((name) => data.classes.indexOf(name));
  const FIRST_OF_GPU = data.classes.indexOf("computing");
  // from the bottom of a bin: waiting, and what remains last
  const STACKED = data.classes.map((_, one) => one).sort((one, other) => (other === WAITING) - (one === WAITING) || (one === OUTSIDE) - (other === OUTSIDE));
  const LEFT = 78, TOP = 42, TALLEST = 36, HIGHEST = 72, MOST_HEIGHT = 720, NEAREST_NS = 200, LABEL = 14, STACKED_FROM = 6, SPLIT_FROM = 16;
  const MOST_ARROWS = 500, ARROWS_FROM = 5, DEPTH = 3, BAR = 3, STEP_LABEL = 54, NARROWEST_STEP = 30;

  const gap = (high) => (high > 6 ? 3 : high > 3 ? 1 : 0);
  const ranks = data.ranks.map(unpack);
  const arrows = [];
  for (let first = 0; first < data.messages.length; first += 4) {
    const [sender, receiver, begin, time] = data.messages.slice(first, first + 4);
    arrows.push({ sender, receiver, begin, end: begin + time });
  }
  const lanes = ranks.flatMap((lane) => [lane, ...lane.gpus]);
  const windows = data.windows.map(([begin, end]) => ({
    begin, end, most: Math.max(...ranks.map(({ pieces }) => shown(pieces, begin, end).length)) }));
  let rows = [], rowOf = new Map(), from = 0, until = data.span, top = 0, high = 1, named = null, names = [];

  function unpack(packed) {
    const lane = { ...packed, cells: places(packed.cells) };
    lane.pieces = consecutive(packed.pieces, 6, "end", ([state, call, waitsFor, detail]) => ({ lane, state, call, waitsFor, detail }));
    lane.inFlight = consecutive(packed.inFlight, 4, "begin", ([call, detail]) => ({ lane, call, detail }));
    const free = [];
    for (const one of lane.inFlight) { // the first free level, else the last
      one.level = Math.min(DEPTH - 1, [...free, 0].findIndex((end) => !end || end <= one.begin));
      free[one.level] = Math.max(free[one.level] || 0, one.end);
    }
    lane.depth = free.length;
    lane.named = [...lane.pieces, ...lane.inFlight].sort((one, other) => one.begin - other.begin);
    lane.gpus = packed.gpus.map(({ number, cells }) => (
      { rank: packed.rank, host: packed.host, number, begin: 0, end: data.span, cells: places(cells), inFlight: [], named: [], depth: 0 }));
    return lane;
  }

  /* Of each bin its place in the palette. */
  function places(text) {
    const { width, digits } = data, found = new Uint32Array(text.length / width);
    for (let place = text.length - 1; place >= 0; place--) {
      const bin = Math.floor(place / width);
      found[bin] = found[bin] * digits.length + digits.indexOf(text[place]);
    }
    return found;
  }

  /* Of each one: the time since an edge of the one before, its duration, and what `rest` makes of the others. */
  function consecutive(numbers, each, edge, rest) {
    const found = [];
    for (let first = 0, at = 0; first < numbers.length; first += each) {
      const [since, time, ...others] = numbers.slice(first, first + each);
      found.push({ begin: at + since, end: at + since + time, ...rest(others) });
      at = found.at(-1)[edge];
    }
    return found;
  }

  /* Those of consecutive pieces that overlap a time. */
  function shown(pieces, begin, end) {
    const first = (at, edge) => {
      let low = 0, above = pieces.length;
      while (low < above) {
        const middle = (low + above) >> 1;
        if (pieces[middle][edge] > at) above = middle;
        else low = middle + 1;
      }
      return low;
    };
    return pieces.slice(first(begin, "end"), first(end, "begin"));
  }

  function arrange() {
    rows = gpusBox.checked ? lanes : ranks;
    rowOf = new Map(rows.map((lane, row) => [lane, row]));
    for (const lane of ranks) rowOf.set(lane.rank, rowOf.get(lane));
    high = lowest();
    named = null;
    said.textContent = "";
    move(0, 0);
  }

  /* The height of rows that are all in the picture. */
  function lowest() {
    const fitting = MOST_HEIGHT / rows.length;
    return Math.min(TALLEST, fitting < 1 ? fitting : Math.floor(fitting));
  }

  const root = getComputedStyle(document.documentElement);
  const cached = new Map(); // until the colours change
  const style = (name) => once(name, () => root.getPropertyValue(name).trim());
  const valueOf = (colour) => style(colour.slice("var(".length, -1));
  const width = () => canvas.clientWidth;
  const height = () => Math.round(Math.min(MOST_HEIGHT, rows.length * high));
  const inRow = () => high - gap(high);
  const x = (ns) => LEFT + (ns - from) / (until - from) * (width() - LEFT);
  const y = (row) => TOP + (row - top) * high;
  const timeAt = (left) => from + (left - LEFT) / (width() - LEFT) * (until - from);
  const isGpu = (lane) => lane.number !== undefined;
  const isClose = ({ begin, end, most }) => high >= 1 && begin < until && end > from && x(end) - x(begin) >= most;

  function draw() {
    const whole = TOP + height() + 2, ratio = window.devicePixelRatio || 1;
    canvas.style.height = `${whole}px`;
    canvas.style.touchAction = rows.length * high > MOST_HEIGHT + 1 ? "none" : "pan-y";
    canvas.width = Math.round(width() * ratio);
    canvas.height = Math.round(whole * ratio);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.font = "12px system-ui, sans-serif";
    drawTicks(whole);
    drawSteps();
    const seen = rows.map((lane, row) => [lane, row]).slice(Math.floor(top), Math.ceil(top + height() / high));
    drawLabels(seen);
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, TOP, width() - LEFT, whole - TOP);
    pen.clip();
    names = [];
    const close = windows.filter(isClose);
    const isCovered = close.some(({ begin, end }) => begin <= from && end >= until);
    if (gpusBox.checked || !isCovered) drawBins(seen);
    const calling = seen.filter(([lane]) => !isGpu(lane));
    for (const one of close) for (const [lane, row] of calling) drawCalls(one, lane, row);
    if (close.length) {
      for (const [lane, row] of seen) drawInFlight(lane, row);
      if (messagesBox.checked) drawMessages();
    }
    for (const step of data.steps) if (x(step.end) - x(step.begin) >= NARROWEST_STEP && step.begin < until && step.end > from) drawStep(step);
    drawNames();
    if (named) drawNamed();
    pen.restore();
  }

  function drawTicks(bottom) {
    const tick = nice((until - from) / Math.max(2, (width() - LEFT) / 110)), show = units.at(until, tick);
    pen.fillStyle = style("--soft");
    pen.strokeStyle = style("--line");
    pen.textAlign = "center"; // a label that would be cut is left out
    for (let at = Math.ceil(from / tick) * tick; at <= until; at += tick) {
      if (x(at) < width() - 30) pen.fillText(show(at), Math.max(LEFT + 4, x(at)), 12);
      pen.beginPath();
      pen.moveTo(x(at), 16);
      pen.lineTo(x(at), bottom);
      pen.stroke();
    }
  }

  /* When steps begin, and where single calls are in the page. */
  function drawSteps() {
    const seen = data.marks.filter(([, begin, end]) => begin < until && end > from);
    const each = nice(Math.max(1, seen.length * STEP_LABEL / (width() - LEFT)));
    pen.textAlign = "left";
    let free = LEFT; // right of the last label
    for (const [step, begin, end] of seen) {
      const left = Math.max(LEFT, x(begin));
      if (step % each || left < free) continue;
      if (begin > from) fill(style("--soft"), left, 20, 1, 13);
      if ((begin <= from && x(end) < left + STEP_LABEL) || left > width() - STEP_LABEL) continue;
      pen.fillStyle = style("--soft");
      pen.fillText(`step ${step}`, left + 4, 31);
      free = left + STEP_LABEL + 8;
    }
    for (const { begin, end } of windows) {
      const left = Math.max(LEFT, x(begin));
      if (begin < until && end > from) fill(style("--soft"), left, TOP - 6, Math.max(1, Math.min(width(), x(end)) - left), 3);
    }
  }

  function drawLabels(seen) {
    pen.fillStyle = style("--soft");
    pen.textAlign = "right";
    let free = 0; // below the last label
    for (const [lane, row] of seen) {
      if (y(row) < free || y(row) < TOP - high / 2 || (isGpu(lane) && high < LABEL)) continue;
      pen.fillText(isGpu(lane) ? `GPU ${lane.number}` : `rank ${lane.rank}`, LEFT - 6, y(row) + Math.min(high, LABEL + 6) / 2 + 4);
      free = y(row) + LABEL;
    }
  }

  /* Pixel by pixel. A pixel that stays transparent shows the hatching beneath. */
  const tile = document.createElement("canvas");
  function drawBins(seen) {
    const wide = Math.max(1, Math.round(width() - LEFT)), tall = height();
    Object.assign(tile, { width: wide, height: tall });
    const brush = tile.getContext("2d"), image = brush.createImageData(wide, tall), pixels = new Uint32Array(image.data.buffer);
    pixels.fill(number(style("--paper")));
    const bin = Array.from({ length: wide }, (_, at) => binAt(timeAt(LEFT + at + 0.5)));
    if (high >= 1) {
      const looks = columns(Math.max(1, Math.round(inRow())));
      for (const [lane, row] of seen) {
        const first = Math.round(y(row) - TOP);
        for (let at = 0; at < wide; at++) {
          const look = looks[lane.cells[bin[at]]];
          for (let line = Math.max(0, -first); line < look.length && first + line < tall; line++) pixels[(first + line) * wide + at] = look[line];
        }
      }
    } else drawMeans(pixels, bin, wide, tall);
    brush.putImageData(image, 0, 0);
    fill(hatched(style("--soft")), LEFT, TOP, wide, tall);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(tile, LEFT, TOP);
  }

  function once(key, make) {
    if (!cached.has(key)) cached.set(key, make());
    return cached.get(key);
  }

  const parse = (colour) => [1, 3, 5].map((place) => parseInt(colour.slice(place, place + 2), 16));
  const number = (colour) => {
    const [red, green, blue] = typeof colour === "string" ? parse(colour) : colour;
    return (255 << 24 | blue << 16 | green << 8 | red) >>> 0;
  };
  const colourOf = (one) => (one === ABSENT ? style("--paper") : valueOf(data.classColours[one]));
  const mean = (weighted) => {
    const sum = weighted.reduce((all, [, weight]) => all + weight, 0);
    return [0, 1, 2].map((part) => Math.round(weighted.reduce((all, [colour, weight]) => all + colour[part] * weight, 0) / sum));
  };
  const pairs = (entry) => entry.flatMap((one, place) => (place % 2 ? [] : [[one, entry[place + 1]]]));
  const inStack = (entry) => pairs(entry).sort(([one], [other]) => STACKED.indexOf(one) - STACKED.indexOf(other));

  const bins = ranks[0].cells.length;
  const binAt = (time) => Math.min(bins - 1, Math.max(0, Math.floor(time / data.span * bins)));

  /* Of rows that share a line of pixels. */
  function drawMeans(pixels, bin, wide, tall) {
    for (let line = 0; line < tall; line++) {
      const own = rows.slice(Math.floor(top + line / high), Math.floor(top + (line + 1) / high));
      for (let at = 0; at < wide; at++) {
        const place = line * wide + at, entries = own.map(({ cells }) => cells[bin[at]]);
        if (at && bin[at] === bin[at - 1]) pixels[place] = pixels[place - 1];
        else pixels[place] = entries.every((one) => isUnseen(data.palette[one])) ? 0 : number(mean(entries.map((one) => [mixed()[one], 1])));
      }
    }
  }

  /* Of each entry of the palette its mean colour. */
  const mixed = () => once("mixed", () => {
    const hatching = mean([[parse(style("--paper")), 3], [parse(style("--soft")), 1]]);
    return data.palette.map((entry) => mean(pairs(entry).map(([one, parts]) => [one === UNSEEN ? hatching : parse(colourOf(one)), parts])));
  });
  const isUnseen = (entry) => entry[0] === UNSEEN && entry[1] === data.parts;

  /* Of each entry of the palette its pixels, from the top. */
  const columns = (tall) => once(`columns ${tall}`, () => data.palette.map((entry, place) => {
    if (tall < STACKED_FROM) return new Uint32Array(tall).fill(isUnseen(entry) ? 0 : number(mixed()[place]));
    const look = new Uint32Array(tall);
    let below = 0;
    for (const [one, parts] of inStack(entry)) {
      const [start, stop] = [below, below += parts].map((sum) => Math.round(tall * sum / data.parts));
      look.fill(one === UNSEEN ? 0 : number(colourOf(one)), tall - stop, tall - start);
    }
    return look;
  }));

  function drawCalls({ begin, end }, lane, row) {
    const [first, last] = [Math.max(begin, lane.begin), Math.min(end, lane.end)], tall = barHeight(lane);
    fill(style("--paper"), x(begin), y(row), x(end) - x(begin), high);
    if (last <= first) return;
    fill(colourOf(OUTSIDE), x(first), y(row), x(last) - x(first), tall);
    for (const piece of shown(lane.pieces, Math.max(from, begin), Math.min(until, end))) drawPiece(piece, y(row), tall);
  }

  const barHeight = (lane) => inRow() - (high >= SPLIT_FROM ? BAR * lane.depth : 0);

  function drawPiece({ begin, end, state, call }, above, tall) {
    const left = Math.max(x(begin), LEFT - 1), wide = Math.max(0.5, Math.min(x(end), width() + 1) - left), colour = colourOf(state);
    fill(state === UNSEEN ? hatched(style("--soft")) : colour, left, above, wide - (wide > 4 ? 0.7 : 0), tall);
    if (tall < LABEL - 2 || wide < 30 || !call) return;
    const name = data.names[call].replace("MPI_", "");
    if (once(`width ${name}`, () => pen.measureText(name).width) > wide - 8) return;
    const [red, green, blue] = parse(colour), ink = red * 0.3 + green * 0.59 + blue * 0.11 > 130 ? "#1c2733" : "#ffffff";
    names.push([ink, name, left + 4, above + tall / 2 + 3]);
  }

  function drawNames() {
    pen.textAlign = "left";
    for (const [ink, ...text] of names) {
      pen.fillStyle = ink;
      pen.fillText(...text);
    }
  }

  function drawInFlight(lane, row) {
    if (high < SPLIT_FROM) return;
    for (const one of lane.inFlight) {
      if (one.begin >= until || one.end <= from) continue;
      fill(valueOf(data.colours[one.call]), x(one.begin), levelTop(one, row), Math.max(1, x(one.end) - x(one.begin)), BAR - 1);
    }
  }

  const levelTop = ({ lane, level }, row) => y(row) + barHeight(lane) + 1 + BAR * level;

  function drawMessages() {
    const seen = arrows.filter(({ begin, end, sender, receiver }) => begin < until && end > from && rowOf.has(sender) && rowOf.has(receiver));
    if (high < ARROWS_FROM || seen.length > MOST_ARROWS) return;
    for (const { sender, receiver, begin, end } of seen) drawArrow(begin, middleOf(rowOf.get(sender)), end, middleOf(rowOf.get(receiver)), 1, "--soft");
  }

  const middleOf = (row) => y(row) + barHeight(rows[row]) / 2;

  function drawArrow(begin, start, end, stop, thick, colour) {
    const [left, right] = [x(begin), x(end)], long = Math.hypot(right - left, stop - start) || 1;
    const [along, across] = [(right - left) / long, (stop - start) / long], size = 4 + 2 * thick;
    pen.strokeStyle = pen.fillStyle = style(colour);
    pen.lineWidth = thick;
    pen.beginPath();
    pen.moveTo(left, start);
    pen.lineTo(right - along * size, stop - across * size);
    pen.stroke();
    pen.beginPath();
    pen.moveTo(right, stop);
    for (const side of [-0.4, 0.4]) pen.lineTo(right - size * (along - side * across), stop - size * (across + side * along));
    pen.fill();
  }

  function fill(colour, ...box) {
    pen.fillStyle = colour;
    pen.fillRect(...box);
  }

  const hatched = (colour) => once("hatched", () => {
    const own = Object.assign(document.createElement("canvas"), { width: 6, height: 6 }), brush = own.getContext("2d");
    brush.fillStyle = style("--paper");
    brush.fillRect(0, 0, 6, 6);
    brush.strokeStyle = colour;
    brush.globalAlpha = 0.7;
    for (const shift of [-6, 0, 6]) {
      brush.beginPath();
      brush.moveTo(shift - 1, 7);
      brush.lineTo(shift + 7, -1);
      brush.stroke();
    }
    return pen.createPattern(own, "repeat");
  });

  /* When it begins and ends on each rank; its critical path, the latest part first, below the names of calls. */
  function drawStep({ times, path }) {
    if (high >= ARROWS_FROM)
      for (const [rank, ...edges] of times)
        for (const edge of edges) if (rowOf.has(rank)) fill(style("--ink"), x(edge) - 0.5, y(rowOf.get(rank)), 1, inRow());
    if (!pathBox.checked || !path.length) return;
    pen.strokeStyle = style("--path");
    pen.lineWidth = 2;
    pen.beginPath();
    for (const [rank, begin, end] of path) {
      const row = rowOf.get(rank) ?? 0, edge = y(row) + barHeight(rows[row]) * 0.88;
      pen.lineTo(x(end), edge);
      pen.lineTo(x(begin), edge);
    }
    pen.stroke();
  }

  function drawNamed() {
    const { lane, begin, end, waitsFor, level } = named, row = rowOf.get(lane), other = rowOf.get(waitsFor);
    pen.strokeStyle = style("--ink");
    pen.lineWidth = 1.5;
    const [above, tall] = level === undefined ? [y(row), Math.max(2, barHeight(lane))] : [levelTop(named, row), BAR];
    pen.strokeRect(x(begin), above, Math.max(1, x(end) - x(begin)), tall);
    if (other !== undefined && other !== row) drawArrow(end, middleOf(other), end, middleOf(row), 1.5, "--ink");
  }

  function text({ lane, begin, end, state, call, waitsFor, detail, entry }) {
    const host = data.hosts.length > 1 && data.hosts[lane.host] ? ` on ${data.hosts[lane.host]}` : "";
    const whose = [`rank ${lane.rank}${host}`, isGpu(lane) ? `GPU ${lane.number}` : ""];
    const of = [data.names[call], data.names[detail]].filter(Boolean).join(", ");
    if (entry) {
      const show = units.at(until, (end - begin) / 10);
      const words = (one) => (one === OUTSIDE && isGpu(lane) ? "idle" : data.classes[one]);
      const shares = inStack(entry).map(([one, parts]) => `${words(one)} ${Math.round(100 * parts / data.parts)} %`);
      whose.push(`${show(begin)} to ${show(end)}`, shares.join(", "));
    } else {
      const what = state === undefined ? "in flight" : state === WAITING ? `waiting for ${waitsFor < 0 ? "others" : `rank ${waitsFor}`}` : data.classes[state];
      whose.push(of, what, units.duration(end - begin));
    }
    return whose.filter(Boolean).join(" · ");
  }

  function name(piece) {
    if (piece === named || (piece && named && piece.entry && piece.begin === named.begin && piece.lane === named.lane)) return;
    named = piece;
    said.textContent = piece ? text(piece) : "";
    draw();
  }

  /* A call or operation in flight near a place, else the bin. */
  function pieceAt(left, above) {
    const row = Math.floor(top + (above - TOP) / high), lane = rows[row], time = timeAt(left), near = 2 * (until - from) / width();
    if (left < LEFT || above < TOP || !lane) return null;
    if (!isGpu(lane) && windows.some((one) => isClose(one) && one.begin <= time && time <= one.end)) {
      const below = above - levelTop({ lane, level: 0 }, row), isBelow = high >= SPLIT_FROM && lane.depth && below >= 0;
      const at = Math.min(lane.depth - 1, Math.floor(below / BAR));
      const found = isBelow ? lane.inFlight.filter(({ level }) => level === at) : shown(lane.pieces, time - near, time + near);
      const distance = ({ begin, end }) => Math.max(begin - time, time - end);
      return found.filter((one) => distance(one) <= near).sort((one, other) => distance(one) - distance(other))[0] || null;
    }
    const bin = binAt(time);
    return { lane, entry: data.palette[lane.cells[bin]], begin: bin * data.span / bins, end: (bin + 1) * data.span / bins };
  }

  function zoom(factor, around) {
    const span = Math.min(data.span, Math.max(NEAREST_NS, (until - from) * factor));
    show(around - (around - from) / (until - from) * span, span);
  }

  function show(begin, span) {
    from = Math.max(0, Math.min(begin, data.span - span));
    until = Math.min(data.span, from + span);
    draw();
  }

  /* By a part of what is in the picture, and by rows. */
  function move(part, down) {
    top = Math.max(0, Math.min(top + down, rows.length - height() / high));
    show(from + part * (until - from), until - from);
  }

  function zoomRows(factor, above) {
    const row = top + (above - TOP) / high;
    high = Math.max(lowest(), Math.min(HIGHEST, high * factor));
    if (high > 1) high = Math.round(high + (factor > 1 ? 0.4 : -0.4));
    top = row - (above - TOP) / high;
    move(0, 0);
  }

  /* The next thing in the picture that can be named, row by row. */
  function next(direction) {
    let row = named && !named.entry ? rowOf.get(named.lane) : Math.ceil(top);
    const ownNow = () => rows[row].named.filter(({ begin, end }) => begin <= until && end >= from);
    let own = ownNow(), at = own.indexOf(named) + direction;
    while (!own[at] && rows[row + direction]) {
      row += direction;
      own = ownNow();
      at = direction > 0 ? 0 : own.length - 1;
    }
    if (!own[at]) return;
    const seen = Math.floor(height() / high);
    if (row < top || row >= top + seen) top = Math.max(0, Math.min(row, rows.length - seen));
    name(own[at]);
  }

  function choose(place) {
    const step = data.steps[place - 1];
    if (step) show(step.begin, step.end - step.begin);
    else show(0, data.span);
  }

  const middle = () => (from + until) / 2;
  onKeys(canvas, {
    "+": () => zoom(0.5, middle()),
    "-": () => zoom(2, middle()),
    "0": () => {
      high = lowest();
      top = 0;
      show(0, data.span);
    },
    "[": () => zoomRows(1 / 1.5, TOP),
    "]": () => zoomRows(1.5, TOP),
    ArrowLeft: () => move(-1 / 8, 0),
    ArrowRight: () => move(1 / 8, 0),
    ArrowUp: () => move(0, -Math.ceil(height() / high / 8)),
    ArrowDown: () => move(0, Math.ceil(height() / high / 8)),
    ".": () => next(1),
    ",": () => next(-1),
    Enter: () => { if (named) show(named.begin - 2 * (named.end - named.begin), Math.max(NEAREST_NS, 5 * (named.end - named.begin))); },
  });

  canvas.addEventListener("wheel", (event) => {
    const { deltaX, deltaY, shiftKey, offsetX, offsetY } = event, isOut = (deltaY || deltaX) > 0;
    if (!shiftKey && isOut && Math.abs(deltaY) >= Math.abs(deltaX) && until - from >= data.span) return; // the page scrolls
    event.preventDefault();
    if (shiftKey) zoomRows(isOut ? 0.8 : 1.25, offsetY);
    else if (Math.abs(deltaX) > Math.abs(deltaY)) move(deltaX / width(), 0);
    else zoom(isOut ? 1.25 : 0.8, timeAt(Math.max(LEFT, offsetX)));
  }, { passive: false });

  const pressed = new Map(); // places of buttons and fingers
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pressed.set(event.pointerId, [event.offsetX, event.offsetY]);
    name(pieceAt(event.offsetX, event.offsetY));
  });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, ({ pointerId }) => pressed.delete(pointerId));
  canvas.addEventListener("pointermove", ({ pointerId, offsetX, offsetY }) => {
    const before = pressed.get(pointerId);
    if (!before) return name(pieceAt(offsetX, offsetY));
    pressed.set(pointerId, [offsetX, offsetY]);
    const other = [...pressed.entries()].find(([one]) => one !== pointerId)?.[1];
    if (!other) return move((before[0] - offsetX) / (width() - LEFT), (before[1] - offsetY) / high);
    const [was, is] = [before, [offsetX, offsetY]].map((place) => place.map((one, axis) => Math.abs(one - other[axis]) + 1));
    if (is[0] >= is[1]) zoom(was[0] / is[0], timeAt((offsetX + other[0]) / 2));
    else zoomRows(is[1] / was[1], (offsetY + other[1]) / 2);
  });
  canvas.addEventListener("dblclick", (event) => zoom(0.25, timeAt(event.offsetX)));
  choice.addEventListener("change", () => choose(choice.selectedIndex));
  for (const box of [pathBox, messagesBox]) box.addEventListener("change", draw);
  gpusBox.addEventListener("change", arrange);
  new ResizeObserver(draw).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    cached.clear();
    draw();
  });

  choice.append(new Option("the whole run", "run"));
  data.steps.forEach(({ title, step }) => choice.append(new Option(title, step)));
  pathBox.parentElement.hidden = !data.steps.some(({ path }) => path.length);
  messagesBox.parentElement.hidden = !arrows.length;
  gpusBox.parentElement.hidden = !ranks.some(({ gpus }) => gpus.length);
  const used = new Set([...data.palette.flatMap((entry) => pairs(entry).map(([one]) => one)), ...ranks.flatMap(({ pieces }) => pieces.map(({ state }) => state))]);
  data.classes.forEach((words, one) => {
    if (!used.has(one) || one === ABSENT) return;
    explain(legend, one < FIRST_OF_GPU ? words : `GPU ${words}`, one === UNSEEN ? "sample hatch" : "sample", data.classColours[one]);
  });
  const flying = new Set(ranks.flatMap(({ inFlight }) => inFlight.map(({ call }) => call)));
  for (const call of flying) explain(legend, `${data.names[call]} in flight`, "sample thin", data.colours[call]);
  document.getElementById("timeline-note").textContent = data.note;
  arrange();
})();
