// The pipeline explorer: copies into a ring of buffers, products from it, and who waits for whom.
(() => {
  "use strict";
  const { box, line, text, picture, plural } = Explore;
  const LABEL = 66, HIGH = 24;

  const draw = (found, { stages, now }, wide) => {
    const unit = (wide - LABEL - 8) / Math.max(1, found.time);
    const at = (time) => LABEL + time * unit;
    const parts = [];
    const row = (buffer) => buffer * HIGH;
    const below = stages * HIGH + 8;
    const span = (one, y, look, words, name) => {
      const room = (one.end - one.begin) * unit;
      parts.push(box(at(one.begin), y, room - 1, HIGH - 5, look, words));
      if (room > 8 * name.length + 3) {
        const ink = { now: "on", "of-b": "ink" }[look] ?? "";
        parts.push(text(at(one.begin) + room / 2, y + 13, name, ink));
      }
    };
    for (let buffer = 0; buffer < stages; buffer++) {
      parts.push(text(LABEL - 6, row(buffer) + 14, `buffer ${buffer}`, "muted", "end"));
      parts.push(line(LABEL, row(buffer) + HIGH - 3, wide - 8, row(buffer) + HIGH - 3, "line"));
    }
    const until = (one) => `${one.begin} to ${one.end}`;
    for (const one of found.copies) {
      span(one, row(one.buffer), "flying", `copy of tile ${one.tile}, ${until(one)}`, `${one.tile}`);
    }
    parts.push(text(LABEL - 6, below + 14, "products", "muted", "end"));
    let free = 0;
    for (const one of found.work) {
      if (one.begin > free) {
        const wait = { begin: free, end: one.begin };
        span(wait, below, "lost", `nothing to multiply, ${until(wait)}`, "");
      }
      free = one.end;
      if (one.buffer === null) span(one, below, "of-b", `store of C, ${until(one)}`, "C");
      else {
        const words = `product of tile ${one.tile}, ${until(one)}`;
        span(one, row(one.buffer), "past", words, "");
        span(one, below, "now", words, `${one.tile}`);
      }
    }
    const [x, last] = [at(Math.min(now, found.time)), below + HIGH];
    parts.push(line(x, 0, x, last, "hand"), text(LABEL, last + 12, "0", "muted"));
    parts.push(text(wide - 8, last + 12, `${found.time}`, "muted", "end"));
    return picture(wide, last + 18, parts);
  };

  const phases = (flips, now) => flips.map((times) => times.filter((t) => t <= now).length % 2);

  Explore.define("pipeline", {
    controls: {
      stages: { label: "Stages", min: 1, max: 8 },
      copy: { label: "A copy takes", min: 1, max: 20 },
      multiply: { label: "A product takes", min: 1, max: 20 },
      steps: { label: "Tiles along K", more: true, min: 1, max: 12 },
      outputs: { label: "Tiles of C", more: true, min: 1, max: 3 },
      store: { label: "A store takes", more: true, min: 0, max: 12 },
      persistent: { label: "Persistent", more: true, options: ["no", "yes"] },
      now: { label: "Time", min: 0, max: 999 },
    },
    defaults: {
      stages: 3, copy: 4, multiply: 2, steps: 8, outputs: 1, store: 2, persistent: "no", now: 0,
    },
    examples: {
      "one buffer": { stages: 1 },
      "two buffers": { stages: 2 },
      "three buffers": { stages: 3 },
      "enough buffers": { stages: 4 },
      "slow products": { stages: 2, multiply: 5 },
      "two tiles of C": { stages: 4, steps: 4, outputs: 2, store: 4 },
      "two tiles of C, persistent": { stages: 4, steps: 4, outputs: 2, store: 4, persistent: "yes" },
    },
    steps: { field: "now", last: (found) => found.time },
    model: (settings) => Models.pipeline({ ...settings, persistent: settings.persistent === "yes" }),
    draw,
    say: (found, { now, steps, outputs }) => {
      const at = Math.min(now, found.time);
      const list = (flips) => phases(flips, at).join(", ");
      return (
        `${plural(steps * outputs, "tile")} in ${found.time} units of time. The tensor cores multiply ` +
        `for ${found.busy} of them: ${Math.round((100 * found.busy) / found.time)}%. At time ${at} the ` +
        `phases of the full barriers are ${list(found.full)}, of the empty ones ${list(found.empty)}.`
      );
    },
  });
})();
