// The explorer of ranks: who holds which part of A, B and C, what arrives when, and from whom.
(() => {
  "use strict";
  const { box, text, picture, plural, rounded } = Explore;
  const LOOKS = { // what a class means, and what it does not set: pale has to show on white and on black
    "of-a": ["held from the start"], "of-a a": ["arrived before", 'fill-opacity="0.5"'],
    "of-b": ["held from the start"], "of-b b": ["arrived before", 'fill-opacity="0.45"'],
    racing: ["arrives now", 'pointer-events="all"'], focus: ["multiplied now"], now: ["computed now"],
    "now c": ["computed before", 'fill-opacity="0.7"'], "of-c": ["sums so far", 'fill-opacity="0.45"'],
    "paper c": ["its part at the end", 'stroke-width="2"'],
  };
  const paint = (...of) => box(...of).replace("<rect", `<rect ${LOOKS[of[4]]?.[1] ?? ""}`.trimEnd());
  const size = ([first, end]) => end - first;
  const range = ([first, end]) => (end - first > 1 ? `${first} to ${end - 1}` : `${first}`);
  const overlap = (one, two) => ["rows", "columns"].every((i) => one[i][0] < two[i][1] && two[i][0] < one[i][1]);
  const amount = (bytes) => (bytes >= 1e6 ? `${rounded(bytes / 1e6)} MB` : `${rounded(bytes / 1e3)} kB`);

  // A is left of C and B above it, as everywhere. No side is drawn shorter than a third of another.
  const draw = ({ parts, steps }, { cut, ranks, rank, M, N, K, step: asked }, wide) => {
    const [gap, top, narrow, step, drawn] = [24, 14, wide < 720, Math.min(asked, steps.length), []];
    const share = (one) => Math.max(1 / 3, one / Math.max(M, N, K));
    const unit = Math.min((wide - gap - 4) / (share(K) + share(N)), 460 / (share(K) + share(M)), 260);
    const [m, n, k] = [M, N, K].map((one) => share(one) * unit);
    const [right, low] = [2 + k + gap, top + k + gap];
    const { arrives, product } = steps[step - 1] ?? { arrives: [] };
    const strip = (_, i) => ({ rows: [(M / ranks) * i, (M / ranks) * (i + 1)] }); // some cuts treat C by these rows
    const strips = ["inner", "scattered", "ring", "pulled"].includes(cut) ? parts.map(strip) : [{}];
    const split = (one) => strips.map((rows) => ({ ...one, ...rows })).filter((each) => overlap(each, one));
    const had = steps.slice(0, Math.max(0, step - 1)).flatMap(({ arrives: came, product: one }) => [
      ...(one ? split({ ...one, matrix: "C", sums: size(one.inner) === K ? ranks : 0 }) : []),
      ...came.map(({ part, sums }) => ({ ...part, sums })),
    ]);
    const matrix = (name, rows, columns, used, [x, y, width, height]) => {
      const [across, down, look] = [width / columns, height / rows, `of-${name.toLowerCase()}`];
      const fill = (one, look, words = LOOKS[look]?.[0]) => {
        const title = words && `${name}, rows ${range(one.rows)}, columns ${range(one.columns)}: ${words}`;
        const [left, up] = [x + one.columns[0] * across + 0.5, y + one.rows[0] * down + 0.5];
        drawn.push(paint(left, up, size(one.columns) * across - 1, size(one.rows) * down - 1, look, title));
      };
      const label = (one, words, look = "", longest = words, rows = one.rows) => {
        if (size(one.rows) * down < 11 || size(one.columns) * across < 7 * longest.length + 1) return;
        const [left, up] = [one.columns[0] + size(one.columns) / 2, rows[0] + size(rows) / 2];
        drawn.push(text(x + left * across, y + up * down + 4, words, look));
      };
      const every = parts.map((each) => each["ABC".indexOf(name)]);
      const [own, sums, whole] = [every[rank], name === "C", overlap(every[0], every[1])]; // whole on every rank
      const [all, coming] = [whole ? [own] : every, arrives.filter(({ part }) => part.matrix === name)];
      const seen = new Map(had.filter((one) => one.matrix === name).map((one) => [`${[one.rows, one.columns]}`, one]));
      drawn.push(text(x + width / 2, y - 4, name, "muted"));
      all.forEach((one, owner) => fill(one, "none", `part of ${whole ? "every rank" : `rank ${owner}`}`));
      seen.forEach((one) => fill(one, !sums ? `${look} ${look.at(-1)}` : one.sums < ranks - 1 ? "of-c" : "now c"));
      if (sums && product) fill(product, "now");
      fill(own, sums ? "paper c" : look);
      for (const { part, source } of coming) {
        fill(part, "racing", `arrives from rank ${source}`);
        label(part, `from ${source}`);
      }
      all.forEach((one, owner) => {
        if (coming.some(({ part }) => overlap(part, one))) return;
        const [mine, ink] = [whole || owner === rank, name === "B" ? "ink" : "on"];
        const place = sums ? split(one)[(split(one).length - 1) >> 1] : one; // not on two colours
        const filled = sums ? product && overlap(product, place) : mine;
        label(one, whole ? "all" : `${owner}`, filled ? ink : "", mine ? undefined : `${all.length - 1}`, place.rows);
      });
      if (product) fill(used, "focus", "");
    };
    matrix("A", M, K, { rows: product?.rows, columns: product?.inner }, [2, low, k, m]);
    matrix("B", K, N, { rows: product?.inner, columns: product?.columns }, [right, top, n, k]);
    matrix("C", M, N, product, [right, low, n, m]);
    Object.entries(LOOKS).filter(([look]) => !look.startsWith("of-b")).forEach(([look, [words]], i) => {
      const [x, y] = narrow ? [2 + (i % 2) * 140, low + m + 12 + 20 * (i >> 1)] : [right + n + 30, low + 22 * i];
      drawn.push(paint(x, y, 12, 12, look), text(x + 19, y + 10, words, "", "start"));
    });
    return picture(wide, narrow ? low + m + 92 : low + Math.max(m, 168) + 4, drawn);
  };

  const named = ({ matrix, rows, columns }, high, wide) =>
    ["all", "its rows", "its columns", "its tile"][(size(rows) < high) + 2 * (size(columns) < wide)] + ` of ${matrix}`;
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
      "rows: nothing travels": { cut: "rows", step: 1 }, "K is cut: an all-reduce": { cut: "inner", step: 3 },
      "K is cut: each rank keeps its rows": { cut: "scattered", step: 4 },
      "all rows first, then the product": { cut: "gathered" }, "a ring of four": {},
      "copy engines pull": { cut: "pulled" }, "a grid of nine": { cut: "summa", ranks: 9, rank: 4, step: 1 },
    },
    steps: { field: "step", last: (found) => found.steps.length }, model: Models.ranks, draw, say,
  });
})();
