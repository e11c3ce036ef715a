// The loops explorer: an order of three loops, or tiles, and what one cache holds meanwhile.
(() => {
  "use strict";
  const { box, text, picture } = Explore;
  const LOOK = { A: "a", B: "b", C: "c" };

  // A is left of C and B above it, as everywhere; the cache is right of them, or below.
  const draw = (found, { M, N, K, line, sets, ways }, wide) => {
    const { cache, starts, fetched, last } = found;
    const gap = 20;
    const narrow = wide < 480;
    const room = narrow ? wide - gap - 2 : wide * 0.58;
    const cell = Math.min(20, room / (K + N), 300 / (K + M));
    const shapes = { A: [M, K, 0, K * cell + gap], B: [K, N, K * cell + gap, 0], C: [M, N, K * cell + gap, K * cell + gap] };
    const held = new Set(cache.flat());
    const been = new Set(fetched);
    const parts = [];
    const top = 14;
    for (const [name, [rows, columns, x, y]] of Object.entries(shapes)) {
      parts.push(text(x + (columns * cell) / 2, top + y - 4, name, "muted"));
      for (let at = 0; at < rows * columns; at++) {
        const number = Math.floor((starts[name] + at) / line);
        const [row, column] = [Math.floor(at / columns), at % columns];
        const [left, up] = [x + column * cell, top + y + row * cell];
        const state = held.has(number) ? "in the cache" : been.has(number) ? "no longer in the cache" : "not fetched yet";
        const look = held.has(number) ? `of-${LOOK[name]}` : been.has(number) ? `strip ${LOOK[name]}` : "none";
        parts.push(box(left + 0.5, up + 0.5, cell - 1, cell - 1, look, `${name}[${row}, ${column}]: ${state}`));
      }
      for (const { matrix, element, missed } of last) {
        if (matrix !== name) continue;
        const [left, up] = [x + (element % columns) * cell, top + y + Math.floor(element / columns) * cell];
        parts.push(box(left - 1, up - 1, cell + 2, cell + 2, missed ? "missed" : "focus"));
        if (missed) parts.push(text(left + cell / 2, up + cell / 2 + 4, "×", name === "B" ? "ink" : "on"));
      }
    }
    const [x, y] = narrow ? [44, top + (K + M) * cell + gap + 30] : [(K + N) * cell + gap + 70, top];
    const slot = Math.min(26, (wide - x - 2) / ways);
    parts.push(text(x + (ways * slot) / 2, y - 4, "the cache, newest line first", "muted"));
    cache.forEach((one, set) => {
      parts.push(text(x - 6, y + set * 20 + 14, `set ${set}`, "", "end"));
      for (let way = 0; way < ways; way++) {
        const number = one[way];
        const name = number === undefined ? null : number * line >= starts.C ? "C" : number * line >= starts.B ? "B" : "A";
        const first = name && number * line - starts[name];
        const columns = name && shapes[name][1];
        const title = name ? `a line of ${name} that begins at [${Math.floor(first / columns)}, ${first % columns}]` : "empty";
        parts.push(box(x + way * slot + 1, y + set * 20 + 1, slot - 2, 18, name ? `of-${LOOK[name]}` : "none", title));
        if (name) parts.push(text(x + way * slot + slot / 2, y + set * 20 + 14, name, name === "B" ? "ink" : "on"));
      }
    });
    const high = Math.max(top + (K + M) * cell + gap, y + sets * 20);
    return picture(wide, high + 4, parts);
  };

  Explore.define("loops", {
    controls: {
      order: { label: "Order of the loops", options: ["ijk", "ikj", "jik", "jki", "kij", "kji"] },
      tile: { label: "Tile (0: none)", min: 0, max: 16 },
      turn: { label: "Turn", min: 0, max: 4096 },
      M: { label: "M", min: 1, max: 16, more: true },
      N: { label: "N", min: 1, max: 16, more: true },
      K: { label: "K", min: 1, max: 16, more: true },
      line: { label: "Elements in a line", options: [1, 2, 4, 8], more: true },
      sets: { label: "Sets", min: 1, max: 16, more: true },
      ways: { label: "Lines in a set", min: 1, max: 8, more: true },
    },
    defaults: { order: "ijk", tile: 0, turn: 4096, M: 8, N: 8, K: 8, line: 4, sets: 4, ways: 3 },
    examples: {
      "down the columns of B": { turn: 100 },
      "along the rows: ikj": { order: "ikj", turn: 100 },
      "the worst order: jki": { order: "jki", turn: 100 },
      "tiles of 4": { order: "ikj", tile: 4, turn: 200 },
      "a row of 16 elements: one set for a column": { N: 16, turn: 200 },
      "a row of 15 elements": { N: 15, turn: 200 },
      "one set of all lines": { sets: 1, ways: 8, turn: 100 },
    },
    steps: { field: "turn", last: (found) => found.turns, every: 150 },
    model: Models.loops,
    draw,
    say: (found) => {
      const { at, turns, place, seen, misses, accesses, lines, last } = found;
      const sum = ({ A, B, C }) => A + B + C;
      const each = ({ A, B, C }) => `A ${A}, B ${B}, C ${C}`;
      const missed = last.filter((one) => one.missed).map((one) => one.matrix);
      const now = place
        ? `Turn ${at} of ${turns}, i = ${place.i}, j = ${place.j}, k = ${place.k}: ` +
          (missed.length ? `${missed.join(" and ")} ${missed.length > 1 ? "miss" : "misses"}` : "no miss") +
          `; ${sum(seen)} ${sum(seen) === 1 ? "miss" : "misses"} so far. `
        : "Nothing has run yet. ";
      return (
        now + `Of all ${accesses} accesses ${sum(misses)} miss (${each(misses)}). ` +
        `With a cache that holds everything it would be ${lines}: each line once.`
      );
    },
  });
})();
