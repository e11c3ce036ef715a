// The climb: each idea a step, with its picture, what it adds to the kernel, and its speed.
(() => {
  "use strict";
  const { box, text, picture, plural, rounded, escaped } = Explore;
  const ideas = Data.climb;
  const WITHOUT = "This book was built without Triton, so these lines are not known.";
  const LOOKS = ["of-a", "of-b", "of-c"], FRAMES = ["paper a", "paper b", "paper c"];
  const percent = (share) => (share < 0.01 ? `${rounded(100 * share)}%` : `${Math.round(100 * share)}%`);

  // Which parts of A (left), B (above) and C one worker uses at a time.
  const parts_of = ({ parts }, x, y, cell) => {
    const [side, gap] = [4 * cell, cell / 2];
    const places = [[x, y + side + gap], [x + side + gap, y], [x + side + gap, y + side + gap]];
    return places.flatMap(([left, top], which) => [
      box(left, top, side, side, FRAMES[which]),
      ...parts[which].map(([row, column, rows, columns, opacity]) =>
        box(left + column * cell, top + row * cell, columns * cell, rows * cell,
          `${LOOKS[which]}${opacity < 0.5 ? " pale" : ""}`),
      ),
      text(left + 3, top + side - 4, "ABC"[which], "", "start"),
    ]);
  };

  const draw = (now, { step }, wide) => {
    const narrow = wide < 560;
    const [cell, high] = [17, 24];
    const side = 9 * cell;
    const left = narrow ? 0 : side + 24;
    const room = wide - left;
    const [low, top] = [Math.log10(ideas[0].tflops), Math.log10(1000)];
    const share = (value) => Math.max(0.01, (Math.log10(value) - low) / (top - low));
    const y0 = narrow ? side + 16 : 0;
    const shapes = parts_of(now, 2, 2, cell);
    ideas.forEach((one, number) => {
      const y = y0 + number * high;
      const look = number + 1 === step ? "now" : number + 1 < step ? "past" : "none";
      const name = `${one.text}: ${rounded(one.tflops)} TFLOP/s`;
      shapes.push(box(left + 22, y + 2, share(one.tflops) * (room - 110), high - 6, look));
      shapes.push(text(left + 16, y + 15, number + 1, "muted", "end"));
      const end = left + 28 + share(one.tflops) * (room - 110);
      const speed = one.tflops < 1 ? `${rounded(1000 * one.tflops)} GFLOP/s` : `${rounded(one.tflops)} TFLOP/s`;
      shapes.push(text(end, y + 15, speed, number + 1 === step ? "" : "muted", "start"));
      shapes.push(box(left, y, room, high, "row", name, `step=${number + 1}`)); // what one points at
    });
    const rows = y0 + ideas.length * high + 4;
    const svg = picture(wide, Math.max(rows, side + 6), shapes);
    const more = now.more ? `\n    … and ${plural(now.more, "more line")}` : "";
    return (
      `${svg}<pre class="explore-code">${escaped(now.code ? now.code + more : WITHOUT)}</pre>` +
      `<p class="explore-way"><a href="${now.page}">Chapter ${now.chapter} derives it</a></p>`
    );
  };

  Explore.define("climb", {
    controls: { step: { label: "Step", min: 1, max: ideas.length } },
    defaults: { step: 1 },
    choice: "Idea",
    examples: Object.fromEntries(ideas.map((one, number) => [one.text, { step: number + 1 }])),
    steps: { field: "step", last: () => ideas.length, every: 2500 },
    model: ({ step }) => ideas[step - 1],
    draw,
    say: (now, { step }) =>
      `Step ${step} of ${ideas.length}. ${now.text}: ${now.dtype} on ${now.where}, ` +
      `${percent(now.ratio)} of ${now.library}. What is new in the kernel stands below the picture.`,
  });
})();
