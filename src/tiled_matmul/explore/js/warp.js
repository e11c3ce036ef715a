// The warp explorer: which sectors or banks the 32 lanes of a warp want, and what that costs.
(() => {
  "use strict";
  const { box, text, picture, plural } = Explore;
  const LABEL = 64, ROW = 24, GAP = 10, MOST = 12;

  const who = (lanes) => (lanes.length === 1 ? String(lanes[0]) : `${lanes.length}×`);
  const named = (lanes) => (lanes.length === 1 ? `lane ${lanes[0]}` : `lanes ${lanes.join(", ")}`);

  // Memory as rows of 128 bytes, or of 64 or 32 where there is less room; only rows that are wanted.
  const memory = ({ lanes, sectors }, { size }, wide) => {
    const columns = wide < 400 ? 1 : wide < 560 ? 2 : 4;
    const sector = (wide - LABEL - (columns - 1) * 4) / columns;
    const by = new Map();
    for (const one of lanes) by.set(one.element, [...(by.get(one.element) ?? []), one]);
    const rows = [...new Set(sectors.map((s) => Math.floor(s / columns)))];
    const [parts, each] = [[], 32 / size];
    let y = 0;
    rows.slice(0, MOST).forEach((row, number) => {
      if (number && row !== rows[number - 1] + 1) {
        parts.push(text(LABEL / 2, y + 8, "⋮", "muted"));
        y += GAP + 4;
      }
      parts.push(text(LABEL - 6, y + 16, `byte ${row * columns * 32}`, "muted", "end"));
      for (let column = 0; column < columns; column++) {
        const [x, mine] = [LABEL + column * (sector + 4), row * columns + column];
        const moved = sectors.includes(mine);
        parts.push(box(x, y, sector, ROW - 4, moved ? "moved" : "idle", `sector ${mine}`));
        for (let place = 0; place < each; place++) {
          const wanted = by.get(mine * each + place);
          if (!wanted) continue;
          const [left, room] = [x + (place * sector) / each, sector / each];
          const numbers = wanted.map((one) => one.lane);
          parts.push(box(left + 0.5, y + 0.5, room - 1, ROW - 5, "asked", named(numbers)));
          if (room > 15) parts.push(text(left + room / 2, y + 14, who(numbers), "on"));
        }
      }
      y += ROW;
    });
    if (rows.length > MOST) {
      const more = `and ${plural(rows.length - MOST, "row")} of memory more`;
      parts.push(text(LABEL, y + 14, more, "muted", "start"));
      y += ROW;
    }
    return picture(wide, y + 2, parts);
  };

  // A row for each bank that is wanted, with its words in the order in which they are served.
  const queue = ({ queues, wavefronts }, settings, wide) => {
    const used = [...new Set(queues.map((one) => one.bank))].sort((a, b) => a - b);
    const room = Math.min(64, (wide - LABEL - 4) / Math.max(1, wavefronts));
    const start = new Map(); // where each part's wavefronts begin
    let before = 0;
    for (const part of [...new Set(queues.map((one) => one.part))].sort((a, b) => a - b)) {
      start.set(part, before);
      before += Math.max(...queues.filter((q) => q.part === part).map((q) => q.words.length));
    }
    const [parts, high] = [[], used.length > 16 ? 15 : 20];
    used.forEach((bank, row) => {
      const y = row * high;
      parts.push(text(LABEL - 6, y + high - 5, `bank ${bank}`, "muted", "end"));
      for (const { part, words } of queues.filter((one) => one.bank === bank)) {
        words.forEach(({ word, lanes }, turn) => {
          const x = LABEL + (start.get(part) + turn) * room;
          const look = words.length > 1 ? "crowded" : "asked";
          parts.push(box(x + 0.5, y + 0.5, room - 1, high - 2, look, `word ${word}: ${named(lanes)}`));
          if (room > 17) parts.push(text(x + room / 2, y + high - 4.5, who(lanes), "on"));
        });
      }
    });
    return picture(wide, used.length * high + 2, parts);
  };

  Explore.define("warp", {
    controls: {
      index: { label: "Index", text: true },
      P: { label: "P", min: 1, max: 65536 },
      width: { label: "Threads along x", options: [1, 2, 4, 8, 16, 32] },
      size: { label: "Bytes", options: [1, 2, 4, 8, 16] },
      space: { label: "Memory", options: ["global", "shared"] },
      op: { label: "Access", options: ["load", "store"] },
    },
    defaults: { index: "ty * P + tx", P: 64, width: 32, size: 4, space: "global", op: "load" },
    examples: {
      "neighbours side by side": { index: "ty * P + tx", P: 64, width: 32, space: "global", size: 4 },
      "neighbours a row apart": { index: "tx * P + ty", P: 64, width: 32, space: "global", size: 4 },
      "one element for all": { index: "ty * P", P: 64, width: 32, space: "global", size: 4 },
      "every second element": { index: "2 * lane", P: 64, width: 32, space: "global", size: 4 },
      "one element further": { index: "lane + 1", P: 64, width: 32, space: "global", size: 4 },
      "four elements a lane": { index: "lane", P: 64, width: 32, space: "global", size: 16 },
      "a column of a 32-wide tile": { index: "tx * P", P: 32, width: 32, space: "shared", size: 4 },
      "the column with a pad": { index: "tx * P", P: 33, width: 32, space: "shared", size: 4 },
      "the column, swizzled": {
        index: "tx * P + (tx ^ ty)", P: 32, width: 32, space: "shared", size: 4,
      },
      "a 16-wide block's rows": { index: "ty * P + 5", P: 16, width: 16, space: "shared", size: 4 },
    },
    model: Models.warp,
    draw: (found, now, wide) => (now.space === "shared" ? queue : memory)(found, now, wide),
    say: (found, { space, size }) => {
      const elements = plural(found.asked / size, "different element");
      if (space === "shared") {
        const served =
          found.conflicts === 0
            ? `${plural(found.wavefronts, "wavefront")}, no bank conflict`
            : `${plural(found.wavefronts, "wavefront")}, ` +
              plural(found.conflicts, "bank conflict");
        return `The warp wants ${elements}, in ${plural(found.queues.length, "queue")} at banks: ${served}.`;
      }
      const used = Math.round((100 * found.asked) / found.moved);
      return (
        `The warp wants ${elements}, ${found.asked} bytes. They lie in ` +
        `${plural(found.sectors.length, "sector")} of 32 bytes, so ${found.moved} bytes move: ` +
        `${used}% of them are used.`
      );
    },
  });
})();
