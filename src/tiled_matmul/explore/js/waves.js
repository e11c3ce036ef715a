// The wave explorer: how many waves a launch takes, and how much of the last one is idle.
(() => {
  "use strict";
  const { box, text, picture, plural } = Explore;
  const percent = (share) => `${Math.round(100 * share)}%`;

  // A column for each wave, a cell for each multiprocessor; long launches show their ends.
  const draw = (found, { sms }, wide) => {
    const most = Math.floor(wide / 34);
    const shown = found.count <= most ? found.count : most - 1;
    const waves = Array.from({ length: shown }, (_, i) => i);
    if (shown < found.count) waves[shown - 1] = found.count - 1;
    const columns = Math.ceil(Math.sqrt(sms / 3));
    const rows = Math.ceil(sms / columns);
    const room = Math.min(150, wide / shown);
    const cell = Math.max(2, Math.min(12, (room - 8) / columns));
    const parts = [];
    waves.forEach((wave, place) => {
      const x = place * room;
      const busy = wave === found.count - 1 ? found.last : sms;
      for (let one = 0; one < sms; one++) {
        const [left, top] = [x + (one % columns) * cell, Math.floor(one / columns) * cell];
        parts.push(box(left, top, cell - 1, cell - 1, one < busy ? "now" : "lost"));
      }
      const gap = shown < found.count && place === shown - 1;
      parts.push(text(x + (columns * cell) / 2, rows * cell + 14, `${gap ? "… " : ""}${wave + 1}`));
    });
    return picture(wide, rows * cell + 20, parts);
  };

  Explore.define("waves", {
    controls: {
      M: { label: "M", min: 1, max: 65536 },
      N: { label: "N", min: 1, max: 65536 },
      K: { label: "K", min: 1, max: 65536 },
      blockM: { label: "BLOCK_M", options: [16, 32, 64, 128, 192, 256] },
      blockN: { label: "BLOCK_N", options: [16, 32, 64, 128, 192, 256] },
      second: { label: "Second width", options: [0, 32, 64, 128] },
      splits: { label: "Parts of K", min: 1, max: 64 },
      sms: { label: "Multiprocessors", min: 1, max: 300 },
    },
    defaults: { M: 4096, N: 4096, K: 4096, blockM: 128, blockN: 256, second: 0, splits: 1, sms: 132 },
    examples: {
      "4096 on an H200": { M: 4096, N: 4096 },
      "exactly one wave": { M: 1536, N: 2816 },
      "one tile too many": { M: 896, N: 4864 },
      "few tiles": { M: 512, N: 512, blockN: 128 },
      "few tiles, K in 8 parts": { M: 512, N: 512, blockN: 128, splits: 8 },
      "two widths": { M: 2048, N: 2048, K: 2048, blockM: 64, blockN: 256, second: 64 },
      "smaller tiles": { M: 4096, N: 4096, blockM: 64, blockN: 64 },
      "4000 on an H200": { M: 4000, N: 4000 },
      "4096 on a T4": { sms: 40, blockM: 64, blockN: 64 },
    },
    model: Models.waves,
    draw,
    say: (found, { sms }) => {
      const { clocks, picked } = found;
      const thousand = (value) => `${Math.round(value / 1000).toLocaleString("en")},000`;
      const shape = picked && `${picked.rows} × ${picked.widths.join(" + ")}` +
        `${picked.splits > 1 ? ` and K in ${picked.splits} parts` : ""}` +
        `${picked.down ? ", widths along M" : ""}`;
      const model =
        (clocks === null ? "" : ` By chapter 14’s model that takes about ${thousand(clocks)} clocks.`) +
        (picked ? ` The rule picks tiles of ${shape}: about ${thousand(picked.clocks)}.` : "");
      const idle = sms - found.last;
      const end = idle
        ? `; in the last one ${plural(idle, "multiprocessor")} of ${sms} have nothing to do`
        : ", and the last one is full";
      return (
        `${plural(found.tiles, "tile")} in ${plural(found.count, "wave")}${end}. Multiprocessors ` +
        `have a tile ${percent(found.fill)} of the time. Counting only elements that exist, ` +
        `${percent(found.useful)} of the work is useful.${model}`
      );
    },
  });
})();
