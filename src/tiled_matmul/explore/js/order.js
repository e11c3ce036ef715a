// The program-order explorer: which tiles of C are computed together, and what the L2 cache saves.
(() => {
  "use strict";
  const { box, text, picture, plural } = Explore;
  const megabytes = (bytes) =>
    `${(bytes / 1e6).toLocaleString("en", { maximumSignificantDigits: 3 })} MB`;

  // C in the middle, A's tile rows left of it and B's tile columns above it.
  const draw = (found, { wave }, wide) => {
    const { tilesM, tilesN, waves } = found;
    const at = Math.min(wave, waves.length) - 1;
    const [strip, gap] = [18, 6];
    const cell = Math.max(2, Math.min(26, (wide - strip - gap - 18) / tilesN, 460 / tilesM));
    const edge = cell > 5 ? 1 : 0;
    const [left, top] = [strip + gap, strip + gap];
    const parts = [];
    const when = new Map();
    waves.forEach((one, number) => one.tiles.forEach(([r, c]) => when.set(r * tilesN + c, number)));
    for (let row = 0; row < tilesM; row++) {
      for (let column = 0; column < tilesN; column++) {
        const turn = when.get(row * tilesN + column);
        const look = turn === at ? "now" : turn < at ? "past" : "none";
        const [x, y] = [left + column * cell, top + row * cell];
        if (look !== "none" || cell > 5) {
          parts.push(box(x, y, cell - edge, cell - edge, look, `C ${row}, ${column}: wave ${turn + 1}`));
        }
      }
    }
    const { rows, columns } = waves[at];
    for (const row of rows) {
      parts.push(box(0, top + row * cell, strip, cell - edge, "of-a", `row ${row} of A`));
    }
    for (const column of columns) {
      parts.push(box(left + column * cell, 0, cell - edge, strip, "of-b", `column ${column} of B`));
    }
    parts.push(text(strip / 2, top - 6, "A"));
    parts.push(text(left + tilesN * cell + 6, strip - 4, "B", "", "start"));
    return picture(wide, top + tilesM * cell + 2, parts);
  };

  Explore.define("order", {
    controls: {
      M: { label: "M", min: 1, max: 16384 },
      N: { label: "N", min: 1, max: 16384 },
      K: { label: "K", min: 1, max: 16384 },
      blockM: { label: "BLOCK_M", options: [32, 64, 128, 256] },
      blockN: { label: "BLOCK_N", options: [32, 64, 128, 256] },
      blockK: { label: "BLOCK_K", options: [32, 64, 128] },
      group: { label: "GROUP_M (0: Hilbert)", min: 0, max: 512 },
      alive: { label: "Programs at once", min: 1, max: 1000 },
      l2: { label: "L2, MB", min: 1, max: 256 },
      wave: { label: "Wave", min: 1, max: 9999 },
    },
    defaults: {
      M: 4096, N: 4096, K: 4096, blockM: 128, blockN: 256, blockK: 64,
      group: 1, alive: 132, l2: 30, wave: 1,
    },
    examples: {
      "row by row": { group: 1, wave: 2 },
      "groups of 8 rows": { group: 8, wave: 2 },
      "column by column": { group: 32, wave: 2 },
      "along Hilbert’s curve": { group: 0, wave: 2 },
      "a small cache": { group: 1, l2: 4, wave: 2 },
      "a T4, row by row": { blockM: 64, blockN: 64, alive: 80, l2: 4, wave: 3 },
      "a T4, groups of 8": { blockM: 64, blockN: 64, alive: 80, l2: 4, group: 8, wave: 3 },
    },
    steps: { field: "wave", last: (found) => found.waves.length },
    model: (now) => Models.order({ ...now, l2: now.l2 * 1e6 }),
    draw,
    say: (found, { wave }) => {
      const at = Math.min(wave, found.waves.length);
      const { tiles, rows, columns } = found.waves[at - 1];
      const missed = found.missed.A + found.missed.B;
      return (
        `Wave ${at} of ${found.waves.length}: ${plural(tiles.length, "program")} together want ` +
        `${plural(rows.length, "tile row")} of A and ${plural(columns.length, "tile column")} of B. ` +
        `All programs ask for ${megabytes(found.asked)}; by the cache model ${megabytes(missed)} ` +
        `come from memory, ${(missed / found.compulsory).toFixed(2)} times A and B.`
      );
    },
  });
})();
