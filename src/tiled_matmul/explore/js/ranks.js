// The explorer of ranks: who holds which part of A, B and C, what arrives when, and from whom.
(() => {
  "use strict";
  const { box, text, picture, plural, rounded } = Explore;
  const PALE = { A: "strip a", B: "strip b", C: "past" };
  const LEGEND = {
    "of-a": "held from the start", "strip a": "arrived before", racing: "arrives now",
    focus: "multiplied now", now: "computed now", past: "sums so far",
  };
  const size = ([first, end]) => end - first;
  const range = ([first, end]) => (end - first > 1 ? `${first} to ${end - 1}` : `${first}`);
  const overlap = (one, two) => ["rows", "columns"].every((i) => one[i][0] < two[i][1] && two[i][0] < one[i][1]);
  const key = ({ rows, columns }) => String([rows, columns]);
  const amount = (bytes) => (bytes >= 1e6 ? `${rounded(bytes / 1e6)} MB` : `${rounded(bytes / 1e3)} kB`);

  // A is left of C and B above it, as everywhere. No side is drawn shorter than a third of another.
  const draw = ({ parts, steps }, { rank, M, N, K, step: asked }, wide) => {
    const [gap, top, narrow, step] = [24, 14, wide < 720, Math.min(asked, steps.length)];
    const share = (one) => Math.max(1 / 3, one / Math.max(M, N, K));
    const unit = Math.min((wide - gap - 4) / (share(K) + share(N)), 460 / (share(K) + share(M)), 260);
    const [m, n, k] = [M, N, K].map((one) => share(one) * unit);
    const [right, low] = [2 + k + gap, top + k + gap];
    const [past, now, drawn] = [steps.slice(0, Math.max(0, step - 1)), step ? [steps[step - 1]] : [], []];
    const product = step ? now[0].product : null;
    const matrix = (name, rows, columns, used, [x, y, width, height]) => {
      const [across, down] = [width / columns, height / rows]; // of an element
      const fill = (one, look, words) => {
        const title = words && `${name}, rows ${range(one.rows)}, columns ${range(one.columns)}: ${words}`;
        const [left, up] = [x + one.columns[0] * across + 0.5, y + one.rows[0] * down + 0.5];
        drawn.push(box(left, up, size(one.columns) * across - 1, size(one.rows) * down - 1, look, title));
      };
      const label = (one, words, look = "", longest = words) => {
        if (size(one.rows) * down < 11 || size(one.columns) * across < 7 * longest.length + 1) return;
        const [left, up] = [one.columns[0] + size(one.columns) / 2, one.rows[0] + size(one.rows) / 2];
        drawn.push(text(x + left * across, y + up * down + 4, words, look));
      };
      const every = parts.map((each) => each["ABC".indexOf(name)]);
      const [own, sums, whole] = [every[rank], name === "C", key(every[0]) === key(every[1])]; // whole on every rank
      const all = whole ? [own] : every;
      const coming = (one) => one.arrives.filter(({ part }) => part.matrix === name);
      const [came, arrives] = [past.flatMap(coming), now.flatMap(coming)];
      const before = [...past.flatMap((one) => (sums && one.product) || []), ...came.map((one) => one.part)];
      drawn.push(text(x + width / 2, y - 4, name, "muted"));
      all.forEach((one, owner) => fill(one, "none", `part of ${whole ? "every rank" : `rank ${owner}`}`));
      fill(own, sums ? "paper c" : `of-${name.toLowerCase()}`, sums ? "its part at the end" : LEGEND["of-a"]);
      const seen = new Map(before.map((one) => [key(one), one]));
      seen.forEach((one) => fill(one, PALE[name], LEGEND[sums ? "past" : "strip a"]));
      if (sums && product) fill(product, "now", LEGEND.now);
      for (const { part, source } of arrives) {
        for (const look of [PALE[name], "racing"]) fill(part, look, `arrives from rank ${source}`);
        label(part, `from ${source}`);
      }
      all.forEach((one, owner) => {
        const [mine, filled] = [whole || owner === rank, sums && product && overlap(product, one)];
        const torn = filled && size(product.rows) < size(one.rows); // it would be on two colours
        if (torn || arrives.some(({ part }) => overlap(part, one))) return;
        const look = (sums ? filled : mine) ? (name === "B" ? "ink" : "on") : "";
        label(one, whole ? "all" : `${owner}`, look, mine ? undefined : `${all.length - 1}`);
      });
      if (product) fill(used, "focus");
    };
    matrix("A", M, K, { rows: product?.rows, columns: product?.inner }, [2, low, k, m]);
    matrix("B", K, N, { rows: product?.inner, columns: product?.columns }, [right, top, n, k]);
    matrix("C", M, N, product, [right, low, n, m]);
    Object.entries(LEGEND).forEach(([look, words], i) => {
      const [x, y] = narrow ? [2 + (i % 2) * 140, low + m + 12 + 20 * Math.floor(i / 2)] : [right + n + 30, low + 22 * i];
      drawn.push(box(x, y, 12, 12, look), text(x + 19, y + 10, words, "", "start"));
    });
    return picture(wide, narrow ? low + m + 72 : low + Math.max(m, 124) + 4, drawn);
  };

  const named = ({ matrix, rows, columns }, high, wide) => {
    const [low, slim] = [size(rows) < high, size(columns) < wide];
    return `${low && slim ? "its tile of" : low ? "its rows of" : slim ? "its columns of" : "all of"} ${matrix}`;
  };
  const arrival = ({ part, source, sums }, { cut, ranks }) => {
    const [bytes, rows] = [amount(2 * size(part.rows) * size(part.columns)), `rows ${range(part.rows)} of ${part.matrix}`];
    if (cut === "summa") return `a panel of ${part.matrix} arrives from rank ${source} (${bytes})`;
    if (cut === "pulled") return `${rows} are copied from the memory of rank ${source} (${bytes})`;
    if (!sums || sums === ranks) return `${sums ? "the finished " : ""}${rows} arrive from rank ${source} (${bytes})`;
    const own = `the rank adds its own${sums === ranks - 1 ? ", which completes these rows" : ""}`;
    return `the sums of ${plural(sums, "rank")} for ${rows} arrive from rank ${source} (${bytes}), and ${own}`;
  };
  const say = ({ parts, steps, held, received }, now) => {
    const [{ rank, ranks, M, N, K }, [a, b, c], at] = [now, parts[now.rank], Math.min(now.step, steps.length)];
    const { arrives, product } = steps[at - 1] ?? { arrives: [] };
    const did = arrives.map((one) => arrival(one, now));
    if (product) {
      const some = size(product.rows) < size(c.rows) ? `rows ${range(product.rows)} of ` : "";
      const part = size(product.rows) > size(c.rows) ? "all of C" : some + named(c, M, N);
      const partial = size(product.inner) < K ? `partial sums, k = ${range(product.inner)}, for ` : "";
      did.push(`${did.length ? "meanwhile " : ""}the rank computes ${partial}${part}`);
    }
    const step = `Step ${at} of ${steps.length}: ${did.join("; ") || "nothing arrives, as both panels are its own"}. `;
    const begin = `Rank ${rank} of ${ranks} holds ${named(a, M, K)} and ${named(b, K, N)} (${amount(held)}). `;
    const end = received ? `In all, the rank receives ${amount(received)}.` : "Nothing has to travel.";
    return begin + (at ? step : "Nothing has travelled yet. ") + end;
  };

  Explore.define("ranks", {
    controls: {
      cut: { label: "Cut", options: ["rows", "columns", "inner", "scattered", "gathered", "ring", "pulled", "summa"] },
      ranks: { label: "Ranks", min: 2, max: 16 }, rank: { label: "Rank to look at", min: 0, max: 15 },
      step: { label: "Step", min: 0, max: 31 },
      ...Object.fromEntries([..."MNK"].map((label) => [label, { label, min: 1, max: 65536, more: true }])),
    },
    // 5040 divides into as many parts as there may be ranks, but for 11 and 13.
    defaults: { cut: "ring", ranks: 4, rank: 0, step: 2, M: 5040, N: 5040, K: 5040 },
    examples: {
      "rows: nothing travels": { cut: "rows", step: 1 },
      "K is cut: an all-reduce": { cut: "inner", step: 3 },
      "K is cut: each rank keeps its rows": { cut: "scattered", step: 4 },
      "all rows first, then the product": { cut: "gathered" },
      "a ring of four": {},
      "copy engines pull": { cut: "pulled" },
      "a grid of nine": { cut: "summa", ranks: 9, rank: 4, step: 1 },
    },
    steps: { field: "step", last: (found) => found.steps.length },
    model: Models.ranks, draw, say,
  });
})();
