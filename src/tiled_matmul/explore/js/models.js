// The models behind the figures that a reader changes. Each is the course's own model in Python,
// once more; `make test-browser` feeds both thousands of random settings and compares every number.
const Models = (() => {
  "use strict";
  const WARP = 32, SECTOR = 32, BANKS = 32, WORD = 4, CHUNK = 16, LARGEST = 2 ** 31;

  // Expressions: whole numbers, names, Python's operators with Python's precedence.
  const LEVELS = [["|"], ["^"], ["&"], ["<<", ">>"], ["+", "-"], ["*", "//", "%"]];
  const DO = {
    "|": (a, b) => a | b,
    "^": (a, b) => a ^ b,
    "&": (a, b) => a & b,
    "<<": (a, b) => a * 2 ** b,
    ">>": (a, b) => Math.floor(a / 2 ** b),
    "+": (a, b) => a + b,
    "-": (a, b) => a - b,
    "*": (a, b) => a * b,
    "//": (a, b) => Math.floor(a / b),
    "%": (a, b) => a - b * Math.floor(a / b),
  };

  // Return a function from {name: number} to the value of `text`. Throws an Error that quotes it.
  const expression = (text, names) => {
    const fail = (why) => {
      throw new Error(`“${text}”: ${why}`);
    };
    const tokens = text.match(/\d+|[A-Za-z_]\w*|<<|>>|\/\/|\S/g) ?? [];
    let at = 0;
    const checked = (value) =>
      Number.isInteger(value) && Math.abs(value) < LARGEST ? value : fail("too large a number");
    const atom = () => {
      const token = tokens[at++];
      if (token === undefined) fail("it ends too early");
      if (token === "(") {
        const inner = level(0);
        if (tokens[at++] !== ")") fail("a “)” is missing");
        return inner;
      }
      if (token === "-") {
        const inner = atom();
        return (given) => -inner(given);
      }
      if (/^\d/.test(token)) {
        const value = checked(Number(token));
        return () => value;
      }
      if (names.includes(token)) return (given) => given[token];
      return /^\w/.test(token)
        ? fail(`${token} is not known here; there are ${names.join(", ")}`)
        : fail(`“${token}” is not expected here`);
    };
    const level = (depth) => {
      if (depth === LEVELS.length) return atom();
      let left = level(depth + 1);
      while (LEVELS[depth].includes(tokens[at])) {
        const sign = tokens[at++];
        const [a, b] = [left, level(depth + 1)];
        left = (given) => {
          const second = b(given);
          if ((sign === "//" || sign === "%") && second === 0) fail("division by 0");
          if ((sign === "<<" || sign === ">>") && (second < 0 || second > 31)) {
            fail(`a shift by ${second}`);
          }
          return checked(DO[sign](a(given), second));
        };
      }
      return left;
    };
    const whole = level(0);
    if (at < tokens.length) fail(`“${tokens[at]}” is not expected here`);
    return whole;
  };

  const distinct = (values) => [...new Set(values)].sort((a, b) => a - b);

  // Return what a warp's one load or store costs. `index` is the element that a lane accesses, an
  // expression of lane, tx, ty and P; `width` is the block's along x, `size` an element's bytes.
  const warp = ({ index, width, P, size, space, op }) => {
    const value = expression(index, ["lane", "tx", "ty", "P"]);
    const lanes = Array.from({ length: WARP }, (_, lane) => {
      const [tx, ty] = [lane % width, Math.floor(lane / width)];
      const element = value({ lane, tx, ty, P });
      if (element < 0) throw new Error(`“${index}”: lane ${lane} gets ${element}, below 0`);
      return { lane, tx, ty, element, address: element * size };
    });
    const asked = distinct(lanes.map((one) => one.element)).length * size;
    const sectors = distinct(lanes.map((one) => Math.floor(one.address / SECTOR)));
    const found = { lanes, asked, sectors, moved: sectors.length * SECTOR };
    return space === "shared" ? { ...found, ...banks(lanes, size, op === "load") } : found;
  };

  // Return the wavefronts of a warp's access to shared memory. Elements of 8 bytes are served half
  // a warp at a time, those of 16 a quarter; two parts of a load are served together if lanes 2i
  // and 2i + 1 always load the same.
  const banks = (lanes, size, loads) => {
    const each = size <= WORD ? WARP : (WARP * WORD) / size;
    let parts = lanes.map(({ lane }) => Math.floor(lane / each));
    if (size > WORD && loads) {
      const apart = new Set();
      for (let lane = 0; lane < WARP; lane += 2) {
        if (lanes[lane].address !== lanes[lane + 1].address) apart.add(parts[lane] >> 1);
      }
      parts = parts.map((part) => (apart.has(part >> 1) ? part : part - (part % 2)));
    }
    const queues = new Map(); // "part bank" → its words, each with the lanes that want it
    const wants = lanes.map(({ lane, address }) =>
      Array.from({ length: Math.max(1, size / WORD) }, (_, step) => {
        const word = Math.floor(address / WORD) + step;
        const key = `${parts[lane]} ${word % BANKS}`;
        const words = queues.get(key) ?? queues.set(key, new Map()).get(key);
        words.set(word, [...(words.get(word) ?? []), lane]);
        return key;
      }),
    );
    const deepest = new Map();
    for (const [key, words] of queues) {
      const part = key.split(" ")[0];
      deepest.set(part, Math.max(deepest.get(part) ?? 0, words.size));
    }
    const wavefronts = [...deepest.values()].reduce((sum, depth) => sum + depth, 0);
    return {
      queues: [...queues].map(([key, words]) => {
        const [part, bank] = key.split(" ").map(Number);
        return { part, bank, words: [...words].map(([word, who]) => ({ word, lanes: who })) };
      }),
      wavefronts,
      conflicts: wavefronts - deepest.size,
      crowded: wants.map((keys) => keys.some((key) => queues.get(key).size > 1)),
    };
  };

  const up = (size, by) => Math.ceil(size / by);
  const lengths = (size, block) =>
    Array.from({ length: up(size, block) }, (_, tile) => Math.min(block, size - tile * block));

  // Return the tile [row, column] of each program: down `group` tiles, then to the next column.
  const programs = (tilesM, tilesN, group) =>
    Array.from({ length: tilesM * tilesN }, (_, program) => {
      const [above, inside] = [Math.floor(program / (group * tilesN)), program % (group * tilesN)];
      const rows = Math.min(tilesM - above * group, group);
      return [above * group + (inside % rows), Math.floor(inside / rows)];
    });

  // Return the tile of each program along Hilbert's curve, without what lies outside of C.
  const hilbert = (tilesM, tilesN) => {
    let edge = 1;
    while (edge < Math.max(tilesM, tilesN)) edge *= 2;
    const found = [];
    for (let place = 0; place < edge * edge; place++) {
      let [row, column, left] = [0, 0, place];
      for (let side = 1; side < edge; side *= 2) {
        const down = (left >> 1) & 1;
        const right = (left ^ down) & 1;
        if (right === 0) {
          if (down === 1) [row, column] = [side - 1 - row, side - 1 - column];
          [row, column] = [column, row];
        }
        [row, column, left] = [row + side * down, column + side * right, left >> 2];
      }
      if (row < tilesM && column < tilesN) found.push([row, column]);
    }
    return found;
  };

  // Return what a launch asks of the L2 cache and what it misses there. Programs that run together
  // keep in step, and load a tile that several of them want once; `l2` is in bytes, elements have 2. A group of 0 is Hilbert's curve.
  const order = ({ M, N, K, blockM, blockN, blockK, group, alive, l2, most = 4e6 }) => {
    const bytes = 2;
    const [tilesM, tilesN, steps] = [up(M, blockM), up(N, blockN), up(K, blockK)];
    const [high, wide, deep] = [lengths(M, blockM), lengths(N, blockN), lengths(K, blockK)];
    if (tilesM * tilesN > most) throw new Error(`${tilesM * tilesN} programs: too many to follow`);
    const owned = group === 0 ? hilbert(tilesM, tilesN) : programs(tilesM, tilesN, group);
    const waves = [];
    for (let first = 0; first < owned.length; first += alive) {
      const tiles = owned.slice(first, first + alive);
      const [rows, columns] = [0, 1].map((axis) => [...new Set(tiles.map((one) => one[axis]))]);
      waves.push({ tiles, rows, columns });
    }
    const loads = waves.reduce((n, w) => n + (w.rows.length + w.columns.length) * steps, 0);
    if (loads + owned.length > most) throw new Error(`${loads} loads of tiles: too many to follow`);
    // The cache drops what was used least recently: a Map keeps the order of its keys.
    const cache = new Map();
    let held = 0;
    const misses = (piece, size) => {
      const known = cache.delete(piece);
      if (known) held -= size;
      if (size <= l2) {
        cache.set(piece, size);
        held += size;
        for (const [old, large] of cache) {
          if (held <= l2) break;
          cache.delete(old);
          held -= large;
        }
      }
      return !known;
    };
    const missed = { A: 0, B: 0 };
    for (const wave of waves) {
      wave.missed = 0;
      const load = (name, piece, size) => {
        if (!misses(`${name}${piece}`, size)) return;
        missed[name] += size;
        wave.missed += size;
      };
      deep.forEach((depth, step) => {
        for (const row of wave.rows) load("A", row * steps + step, high[row] * depth * bytes);
        for (const one of wave.columns) load("B", one * steps + step, wide[one] * depth * bytes);
      });
      for (const [row, column] of wave.tiles) {
        misses(`C${row * tilesN + column}`, high[row] * wide[column] * bytes);
      }
    }
    const asked = (tilesN * M + tilesM * N) * K * bytes;
    return { tilesM, tilesN, steps, waves, asked, missed, compulsory: (M + N) * K * bytes };
  };

  // Chapter 14's rule: clocks of the busiest multiprocessor of an H200, float16, and its choice.
  const DEPTH = 64;
  const stepClocks = (rows, widths, depth) => {
    const width = widths.reduce((sum, one) => sum + one, 0);
    const written = (rows + width) * depth;
    const read = widths.length * rows * depth + (rows / 64) * width * depth;
    return Math.max((2 * rows * width * depth) / 4096, (2 * (written + read)) / 128);
  };
  const clocks = ({ rows, widths, depth, splits, stays, down }, M, N, K, sms) => {
    const { start, seam, second, parts } = Data.waves;
    const [m, n] = down ? [N, M] : [M, N];
    const width = widths.reduce((sum, one) => sum + one, 0);
    const count = up(up(m, rows) * up(n, width) * splits, sms);
    const loop = up(up(K, depth), splits) * stepClocks(rows, widths, depth);
    if (stays) return start + count * (loop + seam);
    const sums = splits > 1 ? (8 * splits * M * N) / parts + second : 0;
    return count * (start + loop) + sums;
  };

  // Return {rows, widths, depth, splits, clocks} of the candidate with the fewest clocks; null for
  // a C of so few rows or columns that the rule does not compare.
  const pick = (M, N, K, sms) => {
    if (Math.min(M, N) <= Data.waves.short) return null;
    const plain = Data.waves.candidates.map((one) => ({ splits: 1, ...one }));
    for (const [rows, width, depth] of Data.waves.split) {
      const most = Math.min(Data.waves.mostSplits, Math.floor(sms / (up(M, rows) * up(N, width))));
      for (let splits = 2; splits <= most; splits++) {
        plain.push({ rows, widths: [width], depth, splits });
      }
    }
    const timed = plain.map((one) => ({ ...one, clocks: clocks(one, M, N, K, sms) }));
    return timed.reduce((best, one) => (one.clocks < best.clocks ? one : best));
  };

  // Return the waves of a launch with one program at a time on each of `sms` multiprocessors, and
  // `splits` programs for each tile of C. A program's tile has a `second` part beside the first.
  const waves = ({ M, N, K, blockM, blockN, second, sms, splits }) => {
    const widths = second ? [blockN, second] : [blockN];
    const tiles = up(M, blockM) * up(N, blockN + second) * splits;
    const count = up(tiles, sms);
    const useful = (M * N * splits) / (blockM * (blockN + second)); // in whole tiles
    const own = { rows: blockM, widths, depth: DEPTH, splits };
    return {
      tiles, count,
      last: tiles - (count - 1) * sms,
      fill: tiles / (count * sms),
      useful: useful / (count * sms),
      clocks: blockM % 64 === 0 ? clocks(own, M, N, K, sms) : null,
      picked: pick(M, N, K, sms),
    };
  };

  // Return what a producer and a consumer do with a ring of buffers, in whole units of time. Each
  // buffer has a full and an empty barrier, whose phase flips when its one arrival has come.
  const pipeline = ({ stages, copy, multiply, store, steps, outputs, persistent }) => {
    const [copies, work, stored] = [[], [], []];
    const barrier = () => ({ phase: 0, flips: [] });
    const [full, empty] = [0, 1].map(() => Array.from({ length: stages }, barrier));
    const arrive = (one, time) => {
      one.phase = 1 - one.phase;
      one.flips.push(time);
    };
    let time = 0;
    function* produce() {
      for (let i = 0; i < steps * outputs; i++) {
        const [buffer, phase] = [i % stages, Math.floor(i / stages) % 2];
        while (empty[buffer].phase === 1 - phase) yield;
        const done = () => stored.filter((end) => end <= time).length;
        while (!persistent && done() < Math.floor(i / steps)) yield;
        copies.push({ tile: i, buffer, begin: time, end: time + copy });
        yield;
      }
    }
    function* consume() {
      for (let i = 0; i < steps * outputs; i++) {
        const [buffer, phase] = [i % stages, Math.floor(i / stages) % 2];
        while (full[buffer].phase === phase) yield;
        work.push({ tile: i, buffer, begin: time, end: time + multiply });
        for (let unit = 0; unit < multiply; unit++) yield;
        arrive(empty[buffer], time);
        if (i % steps === steps - 1) {
          work.push({ tile: null, buffer: null, begin: time, end: time + store });
          stored.push(time + store);
          for (let unit = 0; unit < store; unit++) yield;
        }
      }
    }
    let running = [consume(), produce()];
    while (running.length) {
      for (const one of copies) if (one.end === time) arrive(full[one.buffer], time);
      running = running.filter((each) => !each.next().done);
      if (running.length) time += 1;
    }
    const busy = work.reduce((sum, one) => sum + (one.buffer === null ? 0 : one.end - one.begin), 0);
    return { copies, work, time, busy, full: full.map((b) => b.flips), empty: empty.map((b) => b.flips) };
  };

  // Return what a product in tiles loads, keeps and can reach on a GPU. A block owns blockM × blockN
  // of C and walks K in steps of blockK through `stages` buffers in shared memory; a thread owns
  // threadM × threadN, and a warp has `across` of its 32 lanes along N. `gpu` is one of Data.tile.
  const tile = ({ M, N, K, dtype, blockM, blockN, blockK, threadM, threadN, across, stages, gpu }) => {
    const known = Data.tile.find((one) => one.name === gpu);
    const size = dtype === "float16" ? 2 : 4;
    const outputs = threadM * threadN;
    const [warpM, warpN] = [(WARP / across) * threadM, across * threadN];
    if (blockM % warpM || blockN % warpN) {
      throw new Error(
        `A warp of ${WARP} such threads owns ${warpM} × ${warpN} elements, which do not divide a block of ` +
          `${blockM} × ${blockN}: change the thread's rows or columns, the lanes along N, or the block.`,
      );
    }
    const threads = (blockM * blockN) / outputs;
    if (threads > 1024) throw new Error(`${threads} threads: a block has at most 1024`);
    const times = { A: up(N, blockN), B: up(M, blockM) };
    const bytes = (times.A * M * K + times.B * K * N + M * N) * size;
    const intensity = (2 * M * N * K) / bytes;
    const shared = stages * (blockM + blockN) * blockK * size;
    const most = 1024 * known.blockShared;
    if (shared > most) {
      throw new Error(`${shared} bytes of shared memory: a block has at most ${most} on ${gpu}`);
    }
    // The sums, and what one iteration multiplies: addresses and counters come on top.
    const registers = outputs + threadM + threadN;
    const peak = dtype === "float16" ? known.fp16 : known.fp32;
    return {
      threads, times, bytes, intensity, shared, registers, warpM, warpN, peak,
      loads: warpM + warpN, // distinct elements of a warp, for one k
      intensityShared: (2 * outputs) / ((threadM + threadN) * size),
      occupancy: occupancy(known, threads, Math.min(registers, 255), shared),
      roof: Math.min(peak, (intensity * known.bandwidth) / 1000),
      ridge: (peak * 1000) / known.bandwidth,
    };
  };

  // Return how many blocks fit on a multiprocessor, and what runs out first.
  const occupancy = (gpu, threads, registers, shared) => {
    const warps = up(threads, WARP);
    const ofWarp = up(registers * WARP, 256) * 256;
    const reserved = gpu.major >= 8 ? 1024 : 0;
    const fits = [
      ["registers", Math.floor(Math.floor(65536 / ofWarp) / warps)],
      ["shared memory", Math.floor((gpu.shared * 1024) / Math.max(1, shared + reserved))],
      ["warps", Math.floor(gpu.warps / warps)],
      ["blocks", gpu.blocks],
    ];
    const [limit, blocks] = fits.reduce((least, one) => (one[1] < least[1] ? one : least));
    if (blocks === 0) throw new Error(`a block of ${threads} threads does not fit: ${limit}`);
    return { blocks, warps: blocks * warps, share: (blocks * warps) / gpu.warps, limit };
  };

  // Return the byte at which a swizzle puts byte `address`: `bits` bits, `shift` above bit `base`,
  // are XORed into the bits from `base` on.
  const swizzled = (address, bits, base, shift) =>
    address ^ (((address >> (base + shift)) & (2 ** bits - 1)) << base);

  // Return where the 8 lanes of a quarter warp find their 16 bytes. A tile of 8 rows of `pitch`
  // bytes lies in shared memory, swizzled; lanes read the first row(s) or the first column of it.
  const swizzle = ({ bits, base, shift, pitch, access, column }) => {
    if (bits > shift) throw new Error(`${bits} bits need a shift of at least ${bits}, not ${shift}`);
    const across = pitch / CHUNK;
    if (column >= across) throw new Error(`a row has ${across} chunks, so there is no ${column}`);
    const chunks = Array.from({ length: 8 * across }, (_, number) => {
      const [row, chunk] = [Math.floor(number / across), number % across];
      return { row, chunk, place: swizzled(row * pitch + chunk * CHUNK, bits, base, shift) };
    });
    const lanes = Array.from({ length: 8 }, (_, lane) =>
      access === "a column" ? lane * across + column : lane,
    );
    const groups = new Map();
    for (const one of lanes) {
      const group = Math.floor(chunks[one].place / CHUNK) % 8;
      groups.set(group, (groups.get(group) ?? 0) + 1);
    }
    return { chunks, lanes, wavefronts: Math.max(...groups.values()), groups: groups.size };
  };

  // Return the [row, column] pairs that a lane of mma.m16n8k16 holds, in the order of registers.
  const held = (operand, lane) => {
    const [group, place] = [Math.floor(lane / 4), lane % 4];
    if (operand === "B") {
      return [0, 1, 8, 9].map((row) => [2 * place + row, group]);
    }
    const columns = operand === "A" ? [0, 8] : [0];
    return columns.flatMap((right) =>
      [0, 8].flatMap((below) => [0, 1].map((i) => [group + below, 2 * place + i + right])),
    );
  };

  // Return who holds what: `operand` is A, B or C of mma.m16n8k16, or the sums of a wgmma.
  const fragments = ({ operand, lane, columns }) => {
    if (operand !== "sums of wgmma") {
      if (lane >= WARP) throw new Error(`a warp has lanes 0 to 31, so there is no ${lane}`);
      const [rows, wide] = [16, operand === "A" ? 16 : 8];
      const all = Array.from({ length: WARP }, (_, one) => held(operand, one));
      return { rows, columns: wide, all, mine: all[lane] };
    }
    const all = Array.from({ length: 4 * WARP }, (_, thread) =>
      Array.from({ length: columns / 8 }, (_, piece) =>
        held("C", thread % WARP).map(([row, column]) => [
          16 * Math.floor(thread / WARP) + row, 8 * piece + column,
        ]),
      ).flat(),
    );
    return { rows: 64, columns, all, mine: all[lane] };
  };

  // Run the threads of a block by the record of a kernel, Data.race. `first` and `second` say
  // whether each of its barriers is there, `order` in which order threads run between barriers.
  const race = ({ first, second, order }) => {
    const { threads, a, b, barriers } = Data.race;
    const kept = new Set([first && barriers[0], second && barriers[1]]);
    const at = threads.map(() => 0);
    const memory = new Map();
    const state = threads.map(() => ({ value: 0, left: null, sum: 0 }));
    const [steps, seen, races] = [[], new Map(), new Map()];
    const touch = (thread, line, op, where) => {
      const others = seen.get(where) ?? seen.set(where, []).get(where);
      for (const one of others) {
        if (one.thread === thread || (one.op === "load" && op === "load")) continue;
        const lines = races.get(where) ?? races.set(where, new Set()).get(where);
        lines.add(one.line).add(line);
      }
      if (!others.some((o) => o.thread === thread && o.line === line)) {
        others.push({ thread, line, op });
      }
    };
    const result = new Map();
    while (order.some((thread) => at[thread] < threads[thread].length)) {
      seen.clear();
      for (const thread of order) {
        const own = state[thread];
        while (at[thread] < threads[thread].length) {
          const [line, op, array, element] = threads[thread][at[thread]++];
          if (op === "barrier") {
            if (kept.has(line)) break;
            continue;
          }
          const where = `${array} ${element}`;
          if (array === "a" || array === "b") own.value = (array === "a" ? a : b)[element];
          else if (array === "c") result.set(element, own.sum);
          else {
            touch(thread, line, op, where);
            if (op === "store") memory.set(where, own.value);
            else {
              const value = memory.get(where) ?? NaN; // nobody has stored there yet
              if (own.left === null) own.left = value;
              else {
                own.sum += own.left * value;
                own.left = null;
              }
            }
          }
          const value = memory.get(where) ?? own.value;
          steps.push({ thread, line, op, array, element, value, sum: own.sum });
        }
      }
    }
    return { steps, result: [...result], races: [...races].map(([w, at]) => [w, [...at]]) };
  };

  // Return 0 … count − 1 in an order: as they are, backwards, or shuffled by a number.
  const ordered = (count, order, seed) => {
    const numbers = Array.from({ length: count }, (_, i) => i);
    if (order === "last thread first") return numbers.reverse();
    if (order === "shuffled") {
      let state = seed;
      for (let i = count - 1; i > 0; i--) {
        state = (state * 16807) % 2147483647;
        const j = state % (i + 1);
        [numbers[i], numbers[j]] = [numbers[j], numbers[i]];
      }
    }
    return numbers;
  };

  // Three loops and one cache, as `models.cache`: sets of `ways` lines, of `line` elements each, the
  // least recently used leaves. `tile` 0 is no tiles. What the cache holds is that after `turn`
  // turns of the innermost loop; `seen` counts the misses until then.
  const loops = ({ M, N, K, order, tile, line, sets, ways, turn }) => {
    const sizes = { i: M, j: N, k: K };
    const steps = { A: { i: K, j: 0, k: 1 }, B: { i: 0, j: 1, k: N }, C: { i: N, j: 1, k: 0 } };
    const whole = (elements) => Math.ceil(elements / line) * line;
    const starts = { A: 0, B: whole(M * K), C: whole(M * K) + whole(K * N) };
    const cache = Array.from({ length: sets }, () => []); // of each set the newest line first
    const misses = { A: 0, B: 0, C: 0 };
    const [turns, inner] = [M * N * K, order[2]];
    const at = Math.min(turn, turns);
    const fetched = new Set();
    let accesses = 0, done = 0, shown = null, last = [], place = null;
    const keep = () => {
      shown = { cache: cache.map((one) => [...one]), seen: { ...misses }, fetched: [...fetched], last, place };
    };
    const access = (matrix, element) => {
      const number = Math.floor((starts[matrix] + element) / line);
      const set = cache[number % sets];
      const found = set.indexOf(number);
      if (found >= 0) set.splice(found, 1);
      else misses[matrix]++;
      set.unshift(number);
      set.length = Math.min(set.length, ways);
      fetched.add(number);
      accesses++;
      last.push({ matrix, element, missed: found < 0 });
    };
    if (at === 0) keep();
    const step = (name) => tile || sizes[name];
    for (let i0 = 0; i0 < M; i0 += step("i")) {
      for (let j0 = 0; j0 < N; j0 += step("j")) {
        for (let k0 = 0; k0 < K; k0 += step("k")) {
          const from = { i: i0, j: j0, k: k0 };
          const end = (name) => Math.min(from[name] + step(name), sizes[name]);
          const now = {};
          for (now[order[0]] = from[order[0]]; now[order[0]] < end(order[0]); now[order[0]]++) {
            for (now[order[1]] = from[order[1]]; now[order[1]] < end(order[1]); now[order[1]]++) {
              for (now[inner] = from[inner]; now[inner] < end(inner); now[inner]++) {
                last = [];
                for (const matrix of ["A", "B", "C"]) {
                  const by = steps[matrix];
                  if (by[inner] === 0 && now[inner] > from[inner]) continue; // it is in a register
                  access(matrix, now.i * by.i + now.j * by.j + now.k * by.k);
                }
                place = { ...now };
                if (++done === at) keep();
              }
            }
          }
        }
      }
    }
    const lines = Math.ceil(M * K / line) + Math.ceil(K * N / line) + Math.ceil(M * N / line);
    return { misses, accesses, turns, at, lines, starts, ...shown };
  };

  // The axis along which a rank has a part of A, of B and of C, as in `models.distributed`.
  const AXES = {
    rows: [0, null, 0], columns: [null, 1, 1], inner: [1, 0, null], scattered: [1, 0, 0],
    gathered: [0, 1, 1], ring: [0, 1, 1], pulled: [0, 1, 1], summa: ["grid", "grid", "grid"],
  };
  const span = (size, index, count) => [(size / count) * index, (size / count) * (index + 1)];
  const common = (a, b) => {
    let found = a;
    while (found % b) found += a;
    return found;
  };

  // Return what one rank of several holds, receives and computes, step by step, as `models.distributed`:
  // a product (rows and columns of C, `inner` of K) uses what was there before its step, and sums
  // are added as they arrive. `parts` has A's, B's and C's part of every rank.
  const ranks = ({ cut, ranks: p, rank, M, N, K }) => {
    if (rank >= p) throw new Error(`there is no rank ${rank}: the ranks are 0 to ${p - 1}`);
    let high = Math.floor(Math.sqrt(p));
    while (p % high) high--;
    const [wide, summed] = [p / high, cut === "inner" || cut === "scattered"];
    const panels = common(high, wide);
    const counts = {
      rows: [p, 1, 1], columns: [1, p, 1], inner: [p, 1, p], scattered: [p, 1, p], summa: [high, wide, panels],
    }[cut] ?? [p, p, 1];
    [["M", M], ["N", N], ["K", K]].forEach(([name, size], i) => {
      if (size % counts[i]) throw new Error(`${name} = ${size} does not divide into ${counts[i]} equal parts`);
    });
    const shapes = [["A", M, K], ["B", K, N], ["C", M, N]];
    const parts = Array.from({ length: p }, (_, one) =>
      shapes.map(([matrix, height, width], i) => {
        const axis = AXES[cut][i];
        const [down, across] = axis === "grid" ? [high, wide] : [axis === 0 ? p : 1, axis === 1 ? p : 1];
        const [row, column] = axis === "grid" ? [Math.floor(one / wide), one % wide] : [one % down, one % across];
        return { matrix, rows: span(height, row, down), columns: span(width, column, across) };
      }),
    );
    const [a, b, c] = parts[rank];
    const round = (one) => ((one % p) + p) % p;
    const [before, steps] = [round(rank - 1), []];
    const step = (arrives, product = null) => steps.push({ arrives, product });
    const rowsOf = (owner) => span(M, round(owner), p);
    const ofA = (owner, source) => ({ part: { matrix: "A", rows: rowsOf(owner), columns: [0, K] }, source, sums: 0 });
    const ofC = (owner, sums) => ({ part: { matrix: "C", rows: rowsOf(owner), columns: [0, N] }, source: before, sums });
    const product = (rows, columns, inner) => ({ rows, columns, inner });
    if (summed) {
      step([], product([0, M], [0, N], a.columns));
      for (let i = 1; i < p; i++) step([ofC(rank - i - 1, i)]);
      for (let i = 1; i < p && cut === "inner"; i++) step([ofC(rank - i, p)]);
    } else if (cut === "summa") {
      const [row, column] = [Math.floor(rank / wide), rank % wide];
      for (let panel = 0; panel < panels; panel++) {
        const inner = span(K, panel, panels);
        const [ofRow, ofColumn] = [high, wide].map((side) => Math.floor((panel * side) / panels));
        const arrives = [];
        if (column !== ofColumn) {
          arrives.push({ part: { ...a, columns: inner }, source: row * wide + ofColumn, sums: 0 });
        }
        if (row !== ofRow) arrives.push({ part: { ...b, rows: inner }, source: ofRow * wide + column, sums: 0 });
        step(arrives);
        step([], product(c.rows, c.columns, inner));
      }
    } else if (cut === "ring" || cut === "pulled") {
      const by = cut === "ring" ? -1 : 1;
      for (let i = 0; i < p; i++) {
        const after = rank + by * (i + 1);
        const arrives = i < p - 1 ? [ofA(after, cut === "ring" ? before : round(after))] : [];
        step(arrives, product(rowsOf(rank + by * i), c.columns, [0, K]));
      }
    } else {
      for (let i = 1; i < p && cut === "gathered"; i++) step([ofA(rank - i, before)]);
      step([], product(c.rows, c.columns, [0, K]));
    }
    const bytes = ({ rows, columns }) => 2 * (rows[1] - rows[0]) * (columns[1] - columns[0]);
    const received = steps.flatMap((one) => one.arrives).reduce((sum, one) => sum + bytes(one.part), 0);
    return { parts, steps, held: bytes(a) + bytes(b), received };
  };

  return {
    expression, loops, warp, order, waves, pipeline, tile, swizzle, fragments, race, ordered, ranks,
  };
})();
