// The fragment explorer: which elements of a matrix each lane of a warp holds in its registers.
(() => {
  "use strict";
  const { box, text, picture, plural } = Explore;
  const LOOKS = { A: "of-a", B: "of-b", C: "of-c", "sums of wgmma": "of-c" };

  const draw = ({ rows, columns, all, mine }, { operand, lane }, wide) => {
    const cell = Math.max(4, Math.min(34, (wide - 30) / columns, 660 / rows));
    const left = 26;
    const owner = new Map();
    all.forEach((held, one) => held.forEach(([r, c], place) => owner.set(r * columns + c, [one, place])));
    const parts = [];
    const labelled = cell > 17;
    for (let row = 0; row < rows; row++) {
      if (row % (cell > 10 ? 1 : 4) === 0) {
        parts.push(text(left - 5, 18 + row * cell + cell / 2 + 4, row, "muted", "end"));
      }
      for (let column = 0; column < columns; column++) {
        const [one, place] = owner.get(row * columns + column);
        const own = one === lane;
        const [x, y] = [left + column * cell, 18 + row * cell];
        const look = own ? LOOKS[operand] : one % 32 >> 2 === lane % 32 >> 2 && one >> 5 === lane >> 5 ? "past" : "none";
        const name = `row ${row}, column ${column}: lane ${one}, register ${place}`;
        parts.push(box(x + 0.5, y + 0.5, cell - 1, cell - 1, look, name, `lane=${one}`));
        if (labelled) {
          const words = own ? `r${place}` : one;
          parts.push(text(x + cell / 2, y + cell / 2 + 4, words, own ? "on" : "muted"));
        }
      }
    }
    for (let column = 0; column < columns; column += cell > 17 ? 1 : 8) {
      parts.push(text(left + (column + 0.5) * cell, 12, column, "muted"));
    }
    return picture(wide, 20 + rows * cell, parts);
  };

  Explore.define("fragments", {
    controls: {
      operand: { label: "Matrix", options: ["A", "B", "C", "sums of wgmma"] },
      lane: { label: "Lane", min: 0, max: 127 },
      columns: { label: "N of wgmma", options: [8, 16, 32, 64] },
    },
    defaults: { operand: "A", lane: 5, columns: 16 },
    examples: {
      "A, lane 5": {},
      "A, its neighbour": { lane: 6 },
      "B, lane 5": { operand: "B" },
      "C, lane 5": { operand: "C" },
      "C, the last lane": { operand: "C", lane: 31 },
      "wgmma, a thread of the third warp": { operand: "sums of wgmma", lane: 69 },
    },
    steps: { field: "lane", last: (found) => found.all.length - 1, every: 400 },
    model: Models.fragments,
    draw,
    say: ({ rows, columns, mine }, { operand, lane }) => {
      const places = mine.slice(0, 8).map(([r, c]) => `(${r}, ${c})`).join(", ");
      const who = operand === "sums of wgmma" ? `Thread ${lane}` : `Lane ${lane}`;
      const what = operand === "sums of wgmma" ? `the ${rows} × ${columns} sums` : `${operand}’s ${rows} × ${columns}`;
      return (
        `${who} holds ${plural(mine.length, "element")} of ${what}, in the order of its registers: ` +
        `${places}${mine.length > 8 ? " …" : ""}.`
      );
    },
  });
})();
