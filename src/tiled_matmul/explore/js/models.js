// The models behind the figures that a reader changes. Each is the course's own model in Python,
// once more; `make test-browser` feeds both thousands of random settings and compares every number.
const Models = (() => {
  "use strict";
  const WARP = 32, SECTOR = 32, BANKS = 32, WORD = 4, LARGEST = 2 ** 31;

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

  // Return what a launch asks of the L2 cache and what it misses there. Programs that run together
  // keep in step, and load a tile that several of them want once; `l2` is in bytes, elements have 2.
  const order = ({ M, N, K, blockM, blockN, blockK, group, alive, l2, most = 4e6 }) => {
    const bytes = 2;
    const [tilesM, tilesN, steps] = [up(M, blockM), up(N, blockN), up(K, blockK)];
    const [high, wide, deep] = [lengths(M, blockM), lengths(N, blockN), lengths(K, blockK)];
    const owned = programs(tilesM, tilesN, group);
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

  // Return the waves of a launch with one program at a time on each of `sms` multiprocessors, and
  // `splits` programs for each tile of C.
  const waves = ({ M, N, blockM, blockN, sms, splits }) => {
    const tiles = up(M, blockM) * up(N, blockN) * splits;
    const count = up(tiles, sms);
    const useful = (M * N * splits) / (blockM * blockN); // in whole tiles
    return {
      tiles, count,
      last: tiles - (count - 1) * sms,
      fill: tiles / (count * sms),
      useful: useful / (count * sms),
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

  return { expression, warp, order, waves, pipeline };
})();
