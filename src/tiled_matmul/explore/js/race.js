// The race explorer: chapter 5's kernel, thread by thread, with or without its barriers.
(() => {
  "use strict";
  const { box, text, picture, plural } = Explore;
  const { edge, tile, c: right, lines, barriers } = Data.race;
  const most = Data.race.threads.flat().filter((one) => one[1] !== "barrier").length;
  const whole = (value) => (Number.isNaN(value) ? "?" : String(value));

  const model = ({ first, second, order, seed, step }) => {
    const kept = { first: first === "there", second: second === "there" };
    const ran = Models.race({ ...kept, order: Models.ordered(tile * tile, order, seed) });
    return { ...ran, kept, at: Math.min(step, ran.steps.length) };
  };

  const place = ({ array, element }) => {
    const wide = array.endsWith("_tile") ? tile : edge;
    return `${array}[${Math.floor(element / wide)}, ${element % wide}]`;
  };

  // What is in memory after `at` accesses.
  const state = ({ steps, at }) => {
    const [held, by, sums] = [new Map(), new Map(), new Map()];
    for (const one of steps.slice(0, at)) {
      if (one.op === "store" && one.array.endsWith("_tile")) {
        held.set(`${one.array} ${one.element}`, one.value);
        by.set(`${one.array} ${one.element}`, one.thread);
      }
      sums.set(one.thread, one.sum);
    }
    return { held, by, sums };
  };

  const draw = (found, now, wide) => {
    const { steps, at, races } = found;
    const { held, by, sums } = state(found);
    const last = steps[at - 1];
    const narrow = wide < 480; // then the sums stand below the tiles
    const cell = Math.min(40, narrow ? (wide - 16) / (2 * tile) : (wide - 30) / (3 * tile));
    const racing = new Set(races.map(([where]) => where));
    const parts = [];
    const grid = (x, name, look) => {
      parts.push(text(x + (tile * cell) / 2, 12, name, "muted"));
      for (let one = 0; one < tile * tile; one++) {
        const [left, top] = [x + (one % tile) * cell, 20 + Math.floor(one / tile) * cell];
        const where = `${name} ${one}`;
        const touched = last && last.array === name && last.element === one;
        const words = held.has(where) ? whole(held.get(where)) : "";
        const title = place({ array: name, element: one }) +
          (by.has(where) ? `: ${words}, stored by thread ${by.get(where)}` : ": nothing yet");
        parts.push(box(left + 0.5, top + 0.5, cell - 1, cell - 1, words ? look : "none", title));
        if (racing.has(where)) parts.push(box(left + 2, top + 2, cell - 4, cell - 4, "racing"));
        if (touched) parts.push(box(left + 1, top + 1, cell - 2, cell - 2, "focus"));
        parts.push(text(left + cell / 2, top + cell / 2 + 4, words, ""));
      }
    };
    grid(0, "a_tile", "strip a");
    grid(tile * cell + 14, "b_tile", "strip b");
    const [x, y] = narrow ? [0, 28 + tile * cell] : [2 * tile * cell + 28, 0];
    parts.push(text(x + (tile * cell) / 2, y + 12, "sums of the threads", "muted"));
    const ended = at === steps.length;
    for (let one = 0; one < tile * tile; one++) {
      const [left, top] = [x + (one % tile) * cell, y + 20 + Math.floor(one / tile) * cell];
      const sum = sums.get(one) ?? 0;
      const wrong = ended && sum !== right[one];
      const title = `thread ${one}: ${whole(sum)}${ended ? `, and ${right[one]} is right` : ""}`;
      parts.push(box(left + 0.5, top + 0.5, cell - 1, cell - 1, wrong ? "crowded" : "strip c", title));
      if (last && last.thread === one) parts.push(box(left + 1, top + 1, cell - 2, cell - 2, "focus"));
      parts.push(text(left + cell / 2, top + cell / 2 + 4, whole(sum), wrong ? "on" : ""));
    }
    const used = new Set(races.flatMap(([, at]) => at));
    const source = lines.map((words, number) => {
      const gone = (number === barriers[0] && !found.kept.first) || (number === barriers[1] && !found.kept.second);
      const marks = [last && last.line === number && "at", used.has(number) && "raced", gone && "gone"];
      const look = marks.filter(Boolean).join(" ");
      const [, indent, rest] = words.match(/^( *)(.*)$/);
      return `${indent}<span class="${look}">${Explore.escaped(rest)}</span>`;
    });
    return picture(wide, y + 24 + tile * cell, parts) + `<pre class="explore-code">${source.slice(8).join("\n")}</pre>`;
  };

  Explore.define("race", {
    controls: {
      first: { label: "First barrier", options: ["there", "gone"] },
      second: { label: "Second barrier", options: ["there", "gone"] },
      order: { label: "Threads run", options: ["first thread first", "last thread first", "shuffled"] },
      seed: { label: "Shuffle", min: 1, max: 9999 },
      step: { label: "Access", min: 0, max: most },
    },
    defaults: { first: "there", second: "there", order: "first thread first", seed: 1, step: most },
    examples: {
      "both barriers": {},
      "both, half way": { step: 200 },
      "no first barrier": { first: "gone" },
      "no first barrier, half way": { first: "gone", step: 20 },
      "no second barrier": { second: "gone" },
      "no second barrier, last thread first": { second: "gone", order: "last thread first" },
      "no second barrier, shuffled": { second: "gone", order: "shuffled", seed: 7 },
      "no barrier": { first: "gone", second: "gone" },
    },
    steps: { field: "step", last: (found) => found.steps.length, every: 250 },
    model,
    draw,
    say: (found) => {
      const { steps, at, races, result } = found;
      const last = steps[at - 1];
      const wrong = new Map(result);
      const bad = right.filter((value, one) => wrong.get(Math.floor(one / tile) * edge + (one % tile)) !== value);
      const danger = races.length
        ? `${plural(races.length, "element")} of the tiles (dashed) can be stored by one thread while ` +
          `another accesses it, with no barrier between: a race.`
        : "No element is stored by one thread while another accesses it: no race.";
      const doing = last
        ? `Access ${at} of ${steps.length}: thread ${last.thread} ` +
          `${last.op === "store" ? "stores" : "loads"} ${place(last)}` +
          `${Number.isNaN(last.value) ? ", where nothing has been stored" : ""}. `
        : "Nothing has run yet. ";
      const end = bad.length
        ? ` At the end of this order ${bad.length} of ${right.length} sums are wrong.`
        : ` At the end of this order all sums are right${races.length ? ", by luck" : ""}.`;
      return doing + danger + end;
    },
  });
})();
