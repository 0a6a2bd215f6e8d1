"use strict";
/* Numbers as the reports write them (base/units.py). */
const units = (() => {
  const TIMES = [[120e9, 60e9, "min"], [0.9995e9, 1e9, "s"], [0.9995e6, 1e6, "ms"], [0.9995e3, 1e3, "µs"]];
  const SHORT = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];

  /* Halves to the even digit, as Python rounds. */
  function fixed(value, digits) {
    const factor = 10 ** digits, isHalf = value * 2 ** (digits + 1) % 2 === 1, low = Math.floor(value * factor);
    return isHalf && low % 2 === 0 ? (low / factor).toFixed(digits) : value.toFixed(digits);
  }

  function duration(ns) {
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

  function share(part) {
    const percent = 100 * part;
    return percent > 0 && percent < 0.01 ? "< 0.01 %" : `${fixed(percent, percent < 1 ? 2 : 1)} %`;
  }

  function calls(count) {
    return `${count.toLocaleString("en")} call${count === 1 ? "" : "s"}`;
  }

  return { duration, tick, share, calls };
})();
