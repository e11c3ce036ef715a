// The swizzle explorer: where the 16-byte chunks of a tile lie, and which banks 8 lanes meet.
(() => {
  "use strict";
  const { box, text, picture, plural } = Explore;

  const draw = ({ chunks, lanes, groups }, now, wide) => {
    const cell = Math.min(64, (wide - 60) / 8);
    const high = Math.min(26, cell);
    const left = 56;
    const rows = Math.max(...chunks.map((one) => Math.floor(one.place / 128))) + 1;
    const wanted = new Map(lanes.map((one, lane) => [one, lane]));
    const often = new Map();
    for (const one of lanes) {
      const group = Math.floor(chunks[one].place / 16) % 8;
      often.set(group, (often.get(group) ?? 0) + 1);
    }
    const parts = [text(left + 4 * cell, 11, cell < 36 ? "first of four banks" : "banks, four to a column", "muted")];
    for (let group = 0; group < 8; group++) {
      const four = cell < 36 ? 4 * group : `${4 * group}–${4 * group + 3}`;
      parts.push(text(left + (group + 0.5) * cell, 26, four, "muted"));
    }
    for (let row = 0; row < rows; row++) {
      parts.push(text(left - 5, 32 + row * high + high / 2 + 4, `byte ${128 * row}`, "muted", "end"));
    }
    chunks.forEach(({ row, chunk, place }, number) => {
      const group = Math.floor(place / 16) % 8;
      const [x, y] = [left + group * cell, 32 + Math.floor(place / 128) * high];
      const lane = wanted.get(number);
      const look = lane === undefined ? "none" : often.get(group) > 1 ? "crowded" : "asked";
      const name = `row ${row}, chunk ${chunk}${lane === undefined ? "" : `: lane ${lane}`}`;
      parts.push(box(x + 0.5, y + 0.5, cell - 1, high - 1, look, name));
      const words = cell > 50 ? `${row}, ${chunk}` : `${row},${chunk}`;
      parts.push(text(x + cell / 2, y + high / 2 + 4, words, lane === undefined ? "" : "on"));
    });
    return picture(wide, 34 + rows * high, parts);
  };

  Explore.define("swizzle", {
    controls: {
      bits: { label: "Bits", min: 0, max: 3 },
      base: { label: "Base", min: 4, max: 7 },
      shift: { label: "Shift", min: 0, max: 4 },
      pitch: { label: "Bytes of a row", options: [16, 32, 64, 128, 256, 144] },
      access: { label: "8 lanes load", options: ["a row", "a column"] },
      column: { label: "Which column", min: 0, max: 15 },
    },
    defaults: { bits: 3, base: 4, shift: 3, pitch: 128, access: "a column", column: 0 },
    examples: {
      "128 bytes, no swizzle": { bits: 0 },
      "128-byte swizzle": {},
      "128-byte swizzle, along a row": { access: "a row" },
      "64 bytes, no swizzle": { bits: 0, pitch: 64 },
      "64-byte swizzle": { bits: 2, pitch: 64 },
      "32-byte swizzle": { bits: 1, pitch: 32 },
      "too few bits": { bits: 2, base: 4, shift: 3 },
      "a pad of 16 bytes instead": { bits: 0, pitch: 144 },
    },
    model: Models.swizzle,
    draw,
    say: ({ wavefronts, groups }, { access, bits, pitch }) =>
      `Rows of ${pitch} bytes. ${bits ? `Swizzled by ${plural(bits, "bit")}` : "Without a swizzle"}, the 8 chunks of ${access} lie in ` +
      `${plural(groups, "group")} of four banks, so the load takes ` +
      `${plural(wavefronts, "wavefront")}` +
      `${wavefronts === 1 ? ", the least there is." : `: ${wavefronts - 1} more than it needs.`}`,
  });
})();
