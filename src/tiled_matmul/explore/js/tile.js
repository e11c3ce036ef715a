// The tile explorer: what the sizes of tiles cost, and where they put a kernel below a GPU's roof.
(() => {
  "use strict";
  const { box, line, text, picture, plural, rounded } = Explore;
  const names = Data.tile.map((one) => one.name);

  // A left of C and B above it, in scale; the tiles of one block are full.
  const matrices = ({ M, N, K, blockM, blockN, blockK }, x, y, room) => {
    const scale = (room - 8) / Math.max(K + N, K + M);
    const [m, n, k] = [M, N, K].map((size) => Math.max(3, size * scale));
    const least = (size) => Math.max(2, size * scale);
    const [left, top] = [x + k + 8, y + k + 8];
    const [row, column] = [Math.floor((M - 1) / blockM / 2), Math.floor((N - 1) / blockN / 2)];
    const [down, right] = [row * blockM * scale, column * blockN * scale];
    const [high, wide, deep] = [least(blockM), least(blockN), least(blockK)];
    return [
      box(x, top, k, m, "paper a", "A"), box(left, y, n, k, "paper b", "B"),
      box(left, top, n, m, "paper c", "C"),
      box(x, top + down, k, high, "strip a", "the rows of A that a block reads"),
      box(left + right, y, wide, k, "strip b", "the columns of B that a block reads"),
      box(x + k / 3, top + down, deep, high, "of-a", "a tile of A"),
      box(left + right, y + k / 3, wide, deep, "of-b", "a tile of B"),
      box(left + right, top + down, wide, high, "of-c", "the block's tile of C"),
      text(x + 2, top - 4, "A", "", "start"), text(left - 4, y + 11, "B", "", "end"),
      text(x + 2, y + 11, "one block of C", "muted", "start"),
    ];
  };

  // A block's tile of C, cut into warps; one warp is full, and one thread of it is dark.
  const block = ({ blockM, blockN, threadM, threadN }, { warpM, warpN }, x, y, room) => {
    const scale = (room - 16) / Math.max(blockM, blockN);
    const parts = [text(x, y + 11, "its warps, a thread", "muted", "start")];
    const top = y + 16;
    for (let row = 0; row < blockM; row += warpM) {
      for (let column = 0; column < blockN; column += warpN) {
        const look = row + column ? "strip c" : "past";
        parts.push(box(x + column * scale, top + row * scale, warpN * scale, warpM * scale, look));
      }
    }
    parts.push(box(x, top, threadN * scale, threadM * scale, "of-c", "one thread's elements"));
    return parts;
  };

  // The roof of a GPU on two logarithmic axes, and this kernel's place under it.
  const roof = ({ intensity, peak, ridge, roof: reach }, gpu, x, y, wide, high) => {
    const [left, bottom] = [x + 44, y + high - 30];
    const across = (value) => left + ((Math.log2(value) + 2) / 15) * (wide - 50);
    const lowest = peak / 1024;
    const up = (value) => bottom - (Math.log2(value / lowest) / 10.5) * (high - 44);
    const clamped = Math.min(8000, Math.max(0.26, intensity));
    const parts = [
      line(left, bottom, x + wide - 6, bottom, "line"), line(left, y + 12, left, bottom, "line"),
      line(across(Math.max(0.25, ridge / 1024)), up(Math.max(lowest, (peak * 0.25) / ridge)),
        across(ridge), up(peak), "edge"),
      line(across(ridge), up(peak), across(8192), up(peak), "edge"),
      line(across(clamped), up(Math.max(lowest, reach)), across(clamped), bottom, "hand"),
      `<circle cx="${across(clamped)}" cy="${up(Math.max(lowest, reach))}" r="5" class="crowded"></circle>`,
      text(x + wide - 6, up(peak) - 7, `${peak} TFLOP/s, ${gpu}`, "", "end"),
      text(left + (wide - 50) / 2, bottom + 26, "FLOPs a byte", "muted"),
    ];
    for (const value of [1, 16, 256, 4096]) {
      parts.push(text(across(value), bottom + 13, value, "muted"));
    }
    for (const share of [1, 1 / 32, 1 / 1024]) {
      parts.push(text(left - 3, up(peak * share) + 4, rounded(peak * share), "muted", "end"));
    }
    return parts;
  };

  const draw = (found, now, wide) => {
    const narrow = wide < 600;
    const room = narrow ? Math.min(wide, 260) : 228;
    const last = narrow ? Math.min(wide, 420) : wide - 2 * room - 24;
    const parts = [
      ...matrices(now, 0, 0, room),
      ...block(now, found, narrow ? 0 : room + 12, narrow ? room + 12 : 0, narrow ? 200 : room - 30),
      ...roof(found, now.gpu, narrow ? 0 : 2 * room + 24, narrow ? room + 224 : 0, last, 228),
    ];
    return picture(wide, narrow ? room + 224 + 232 : 232, parts);
  };

  Explore.define("tile", {
    controls: {
      M: { label: "M", more: true, min: 1, max: 65536 },
      N: { label: "N", more: true, min: 1, max: 65536 },
      K: { label: "K", more: true, min: 1, max: 65536 },
      dtype: { label: "Type", options: ["float32", "float16"] },
      blockM: { label: "Block: rows", options: [8, 16, 32, 64, 128, 256] },
      blockN: { label: "Block: columns", options: [8, 16, 32, 64, 128, 256] },
      blockK: { label: "Block: along K", more: true, options: [4, 8, 16, 32, 64, 128] },
      threadM: { label: "Thread: rows", more: true, options: [1, 2, 4, 8, 16] },
      threadN: { label: "Thread: columns", more: true, options: [1, 2, 4, 8, 16] },
      across: { label: "Lanes along N", more: true, options: [1, 2, 4, 8, 16, 32] },
      stages: { label: "Buffers", more: true, min: 1, max: 8 },
      gpu: { label: "GPU", options: names },
    },
    defaults: {
      M: 4096, N: 4096, K: 4096, dtype: "float32", blockM: 128, blockN: 128, blockK: 16,
      threadM: 8, threadN: 8, across: 4, stages: 2, gpu: "H200 SXM",
    },
    examples: {
      "an element a thread": {
        blockM: 16, blockN: 16, threadM: 1, threadN: 1, across: 16, stages: 1,
      },
      "a larger block": { blockM: 32, blockN: 32, threadM: 1, threadN: 1, across: 32, stages: 1 },
      "8 elements a thread": { blockM: 64, blockN: 64, threadM: 8, threadN: 1, across: 32, stages: 1 },
      "64 elements a thread": { stages: 1 },
      "64 elements, two buffers": {},
      "256 elements: too many registers?": { blockM: 256, blockN: 256, threadM: 16, threadN: 16 },
      "64 elements on a T4": { gpu: "T4" },
      "float16, tensor cores": { dtype: "float16", blockN: 256, blockK: 64, threadN: 16, stages: 3 },
    },
    model: Models.tile,
    draw,
    say: (found, { gpu }) => {
      const { times, occupancy, registers } = found;
      const kept = registers > 255 ? "more than the 255 that it can have, so some go to memory" : "or more";
      return (
        `Each element of A is loaded ${plural(times.A, "time")}, each of B ${plural(times.B, "time")}: ` +
        `${rounded(found.bytes / 1e9)} GB without a cache, ${rounded(found.intensity)} FLOPs a byte. ` +
        `Memory then allows ${rounded(found.roof)} of ${gpu}’s ${found.peak} TFLOP/s. ` +
        `A block has ${plural(found.threads, "thread")} and ${rounded(found.shared / 1024)} KiB of ` +
        `shared memory. A thread holds ${registers} numbers in registers, ${kept}; for each byte ` +
        `that it loads from shared memory it does ${rounded(found.intensityShared)} FLOPs. ` +
        `At most ${plural(occupancy.blocks, "block")} fit on a multiprocessor, ` +
        `${Math.round(100 * occupancy.share)}% of its warps; ${occupancy.limit} set the limit.`
      );
    },
  });
})();
