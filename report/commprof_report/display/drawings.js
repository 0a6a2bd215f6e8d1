"use strict";
/* What the drawings have in common: numbers as the reports write them (base/units.py), elements, ticks, keys, legends. */
const units = (() => {
  const TIMES = [[120e9, 60e9, "min"], [0.9995e9, 1e9, "s"], [0.9995e6, 1e6, "ms"], [0.9995e3, 1e3, "µs"]];
  const LONG = [[86400e9, "d", 3600e9, "h"], [3600e9, "h", 60e9, "min"]];
  const SHORT = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];

  /* Halves to the even digit, as Python rounds. */
  function fixed(value, digits) {
    const factor = 10 ** digits, isHalf = value * 2 ** (digits + 1) % 2 === 1, low = Math.floor(value * factor);
    return isHalf && low % 2 === 0 ? (low / factor).toFixed(digits) : value.toFixed(digits);
  }

  function duration(ns) {
    const long = LONG.find(([least]) => ns >= 2 * least);
    if (long) {
      const parts = Number(fixed(ns / long[2], 0)), whole = Math.round(long[0] / long[2]);
      return `${Math.floor(parts / whole)} ${long[1]} ${parts % whole} ${long[3]}`;
    }
    const found = TIMES.find(([least]) => ns >= least);
    if (!found) return `${fixed(ns, 0)} ns`;
    const value = ns / found[1];
    return `${fixed(value, value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2)} ${found[2]}`;
  }

  /* Of a tick: 20 µs. */
  function tick(ns) {
    const [factor, unit] = SHORT.find(([least]) => ns >= least) || SHORT.at(-1);
    return `${Number((ns / factor).toPrecision(3))} ${unit}`;
  }

  /* Writes times of up to `most` so that those a tick apart differ: 12.340 s. */
  function at(most, tick) {
    const [factor, unit] = SHORT.find(([least]) => most >= least) || SHORT.at(-1);
    const digits = Math.max(0, Math.ceil(Math.log10(factor / tick) - 1e-9));
    return (ns) => (ns ? `${(ns / factor).toFixed(digits)} ${unit}` : "0");
  }

  function share(part) {
    const percent = 100 * part;
    return percent > 0 && percent < 0.01 ? "< 0.01 %" : `${fixed(percent, percent < 1 ? 2 : 1)} %`;
  }

  function calls(count) {
    return `${count.toLocaleString("en")} call${count === 1 ? "" : "s"}`;
  }

  return { duration, tick, at, share, calls };
})();

/* Empties a drawing, and returns what adds an element to it. Paper is narrower, and is not drawn anew. */
function cleared(picture, height) {
  picture.replaceChildren();
  picture.setAttribute("height", height);
  picture.setAttribute("viewBox", `0 0 ${picture.clientWidth} ${height}`);
  return (tag, attributes, text = "") => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.textContent = text;
    picture.append(made);
  };
}

/* 1, 2 or 5 times a power of ten. */
function nice(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= least);
}

/* keys: what they do while the element has the focus. */
function onKeys(element, keys) {
  element.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    keys[event.key]();
  });
}

/* The arrow keys go from place to place; at(): the current one, or null. */
function onArrows(element, at, last, go) {
  onKeys(element, {
    ArrowRight: () => go(at() === null ? 0 : at() + 1),
    ArrowLeft: () => go(at() === null ? last() : at() - 1),
    Home: () => go(0),
    End: () => go(last()),
  });
}

/* Adds to a legend. look: the class of the sample; without it there is none. */
function explain(legend, words, look, colour = "") {
  const item = document.createElement("li"), sample = document.createElement("span");
  sample.className = look;
  sample.style.color = colour;
  item.append(...(look ? [sample] : []), words);
  legend.append(item);
}
