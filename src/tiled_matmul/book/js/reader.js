// What a page offers its reader beyond text: predictions to commit to, the progress that this
// browser keeps, cards for terms of the glossary, and ← and → for the pages before and after.
(() => {
  "use strict";
  const root = document.documentElement.dataset.content_root ?? "./";
  const here = () => {
    const base = new URL(root, document.baseURI).href;
    return decodeURI(location.href.split(/[?#]/)[0].slice(base.length)).replace(/\.html$/, "");
  };
  const KEY = "tiled-matmul", PLACES = "tiled-matmul-places";
  const made = (tag, content = {}, ...inside) => {
    const element = Object.assign(document.createElement(tag), content);
    element.append(...inside);
    return element;
  };

  // What is kept: {read: {page: date}, predictions: {key: {page, said, off, date}}, exercises}.
  const EMPTY = { read: {}, predictions: {}, exercises: {} };
  let kept = true;
  const load = () => {
    try {
      return { ...EMPTY, ...JSON.parse(localStorage.getItem(KEY) ?? "{}") };
    } catch {
      kept = false; // the browser forbids it, or something else wrote there
      return structuredClone(EMPTY);
    }
  };
  const change = (edit) => {
    const now = load();
    edit(now);
    try {
      localStorage.setItem(KEY, JSON.stringify(now));
    } catch {
      kept = false;
    }
    return now;
  };
  const today = () => new Date().toISOString().slice(0, 10);

  // Numbers of a text, such as “1.5 million”, “10,240” or “3 · 2²⁰” without what it cannot read.
  const UNITS = { thousand: 1e3, million: 1e6, billion: 1e9 };
  const numbers = (text) =>
    [...text.matchAll(/-?\d[\d,]*(?:\.\d+)?(?:\s*(thousand|million|billion))?/g)].map((found) => {
      const digits = found[0].replace(/[^\d.-]/g, "");
      return Number(digits) * (UNITS[found[1]] ?? 1);
    });
  const shown = (value) => value.toLocaleString("en", { maximumSignificantDigits: 3 });

  // Say how far `said` is off the numbers that are stressed in the answer, if that makes sense.
  const judged = (said, stressed) => {
    const [mine, right] = [numbers(said), stressed.flatMap(numbers)];
    if (!mine.length || mine.length !== right.length) {
      return { text: "Compare it with the answer.", off: null };
    }
    let worst = 1;
    const parts = right.map((wanted, i) => {
      if (Math.abs(mine[i] - wanted) <= 0.01 * Math.abs(wanted)) return `${shown(mine[i])} is right`;
      if (wanted * mine[i] <= 0) {
        worst = Infinity;
        return `${shown(mine[i])} is ${shown(Math.abs(mine[i] - wanted))} off ${shown(wanted)}`;
      }
      const times = Math.max(mine[i] / wanted, wanted / mine[i]);
      worst = Math.max(worst, times);
      return `${shown(mine[i])} is ${shown(times)} times too ${mine[i] > wanted ? "large" : "small"}`;
    });
    return { text: `${parts.join("; ")}.`, off: worst === Infinity ? null : worst };
  };

  const keyOf = (question) => {
    let hash = 5381;
    for (const letter of question) hash = (hash * 33 + letter.codePointAt(0)) % 4294967296;
    return `${here()}#${hash.toString(36)}`;
  };

  const predict = (details, number) => {
    const summary = details.querySelector("summary");
    const key = keyOf(summary.textContent.replace(/\s+/g, " ").trim());
    const field = made("input", {
      type: "text", id: `predict-${number}`, autocomplete: "off", maxLength: 200, required: true,
    });
    const form = made("form", { className: "predict" },
      made("label", { htmlFor: field.id, textContent: "I predict" }), field,
      made("button", { type: "submit", textContent: "Commit, and see" }));
    const verdict = made("p", { className: "predict-said" });
    verdict.setAttribute("role", "status");
    const show = ({ said, text }) => {
      form.hidden = true;
      verdict.textContent = `You said: ${said}${/[.!?]$/.test(said) ? "" : "."} ${text ?? ""}`.trim();
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const said = field.value.trim();
      if (!said) return field.focus();
      const stressed = [...details.querySelectorAll("strong")].map((one) => one.textContent);
      const { text, off } = judged(said, stressed);
      change((all) => {
        all.predictions[key] = { page: here(), said, text, off, date: today() };
      });
      details.open = true;
      show({ said, text });
      summary.focus();
    });
    details.after(form, verdict);
    const before = load().predictions[key];
    if (before) show(before);
  };

  // A chapter is read when its end has been seen.
  const watchTheEnd = () => {
    const end = document.querySelector(".prev-next-area");
    if (!/^chapters\//.test(here()) || !end) return;
    new IntersectionObserver((entries, observer) => {
      if (!entries.some((one) => one.isIntersecting)) return;
      observer.disconnect();
      change((all) => {
        all.read[here()] ??= today();
      });
    }).observe(end);
  };

  // The progress page: the table of chapters gets the reader's own columns.
  const progress = (table) => {
    const tell = document.querySelector("#progress-said");
    const fill = () => {
      const all = load();
      for (const row of table.querySelectorAll("tbody tr")) {
        const link = row.querySelector("a");
        const page = link.getAttribute("href").replace(/\.html$/, "");
        const mine = Object.values(all.predictions).filter((one) => one.page === page);
        const chapter = page.match(/^chapters\/(\d\d)_/)?.[1];
        const own = Object.entries(all.exercises).filter(([name]) => name.startsWith(`${chapter}.`));
        const passed = own.filter(([, status]) => status === "PASS").length;
        const cells = [
          all.read[page] ?? "",
          mine.length ? `${mine.length} of ${row.dataset.asked}` : "",
          own.length ? `${passed} of ${own.length}` : "",
        ];
        row.querySelectorAll("td.mine").forEach((cell, i) => (cell.textContent = cells[i]));
      }
      if (!kept) tell.textContent = "This browser does not let pages keep anything.";
    };
    const heads = table.querySelectorAll("thead th");
    const asked = heads.length - 1;
    for (const row of table.querySelectorAll("tbody tr")) {
      row.dataset.asked = row.cells[asked].textContent.trim();
      row.deleteCell(asked);
      for (let i = 0; i < 3; i++) row.append(made("td", { className: "mine" }));
    }
    heads[asked].remove();
    for (const words of ["read", "predictions", "exercises passed"]) {
      table.tHead.rows[0].append(made("th", { textContent: words, scope: "col" }));
    }
    document.querySelector("#progress-export").addEventListener("click", () => {
      const text = JSON.stringify(load(), null, 1);
      const link = made("a", {
        href: URL.createObjectURL(new Blob([text], { type: "application/json" })),
        download: "tiled-matmul-progress.json",
      });
      link.click();
      URL.revokeObjectURL(link.href);
      tell.textContent = "Exported.";
    });
    document.querySelector("#progress-erase").addEventListener("click", () => {
      if (!confirm("Erase your predictions and your progress from this browser?")) return;
      localStorage.removeItem(KEY);
      fill();
      tell.textContent = "Erased.";
    });
    const file = document.querySelector("#progress-import");
    file.addEventListener("change", async () => {
      const name = file.files[0]?.name;
      try {
        const given = JSON.parse(await file.files[0].text());
        const counted = take(given);
        fill();
        tell.textContent = `${name}: ${counted}.`;
      } catch (error) {
        tell.textContent = `${name} is neither an export of this page nor a report of the grader (${error.message}).`;
      }
      file.value = "";
    });
    fill();
  };

  // Take an export of this page, or what `grade --json` writes. Nothing is changed if it is neither.
  const text = (value) => typeof value === "string" && value.length <= 400;
  const take = (given) => {
    if (Array.isArray(given)) {
      const marks = given.flatMap((report) => report.exercises.map((one) => [one.exercise, one.status]));
      if (!marks.length || !marks.flat().every(text)) throw new Error("it holds no marks");
      change((all) => Object.assign(all.exercises, Object.fromEntries(marks)));
      return `${marks.length} exercises`;
    }
    const { read, predictions, exercises } = given;
    const all = [...Object.values(read), ...Object.values(exercises)];
    const said = Object.values(predictions);
    if (!all.every(text) || !said.every((one) => text(one.said) && text(one.page))) {
      throw new Error("its entries are of other kinds");
    }
    change((now) => {
      Object.assign(now.read, read);
      Object.assign(now.predictions, predictions);
      Object.assign(now.exercises, exercises);
    });
    return `${said.length} predictions`;
  };

  // Cards: what the glossary says of a term, beside the link to it.
  const card = made("div", { className: "term-card", id: "term-card", hidden: true });
  card.setAttribute("role", "tooltip");
  let leaving = null, of = null;
  const terms = () =>
    globalThis.Terms ??
    (terms.asked ??= new Promise((done) => {
      document.head.append(
        made("script", { src: `${root}_static/reader/terms.js`, onload: () => done(globalThis.Terms), onerror: () => done({}) }),
      );
    }));
  const close = () => {
    card.hidden = true;
    of?.removeAttribute("aria-describedby");
    of = null;
  };
  const open = async (link, tapped = false) => {
    clearTimeout(leaving);
    if (of === link) return;
    const found = (await terms())[link.hash.slice(1)];
    if (!found && tapped) location.href = link.href;
    if (!found || !(tapped || link.matches(":hover") || link === document.activeElement)) return;
    close();
    of = link;
    card.replaceChildren(made("strong", { textContent: found[0] }), made("p", { textContent: found[1] }));
    if (tapped) card.append(made("p", { textContent: "Tap the word again for its place in the glossary." }));
    card.hidden = false;
    link.setAttribute("aria-describedby", card.id);
    const at = link.getBoundingClientRect();
    const wide = Math.min(360, document.documentElement.clientWidth - 24);
    card.style.width = `${wide}px`;
    const left = Math.max(12, Math.min(at.left, document.documentElement.clientWidth - wide - 12));
    card.style.left = `${left + scrollX}px`;
    const below = at.bottom + card.offsetHeight + 8 < innerHeight;
    card.style.top = `${scrollY + (below ? at.bottom + 4 : at.top - card.offsetHeight - 4)}px`;
  };
  const leave = () => {
    clearTimeout(leaving);
    leaving = setTimeout(close, 250);
  };
  const cards = () => {
    const links = document.querySelectorAll('.bd-article a[href*="glossary.html#"]');
    if (!links.length) return;
    document.body.append(card);
    // A finger cannot hover: its first tap opens the card, its second follows the link.
    let touch = false;
    document.addEventListener("pointerdown", ({ pointerType, target }) => {
      touch = pointerType === "touch";
      if (touch && of !== target.closest("a") && !card.contains(target)) close();
    });
    for (const link of links) {
      link.addEventListener("click", (event) => {
        if (!touch || of === link) return;
        event.preventDefault();
        open(link, true);
      });
      link.addEventListener("pointerenter", ({ pointerType }) => pointerType !== "touch" && open(link));
      link.addEventListener("focus", () => touch || open(link));
      link.addEventListener("pointerleave", () => touch || leave());
      link.addEventListener("blur", leave);
    }
    card.addEventListener("pointerenter", () => clearTimeout(leaving));
    card.addEventListener("pointerleave", leave);
    document.addEventListener("keydown", (event) => event.key === "Escape" && close());
  };

  const seen = (element) => {
    const { top, bottom } = element.getBoundingClientRect();
    return bottom > 0 && top < innerHeight && element.checkVisibility();
  };
  // ← and → turn the page, unless something has the focus: a field, a figure, a link. A walk in
  // sight takes them first, as its caption says.
  const keys = (event) => {
    const way = { ArrowLeft: "left-prev", ArrowRight: "right-next" }[event.key];
    const odd = event.altKey || event.ctrlKey || event.metaKey || event.shiftKey;
    if (!way || odd || event.defaultPrevented || event.target !== document.body) return;
    const link = document.querySelector(`.prev-next-area a.${way}`);
    if (!link) return;
    const walk = [...document.querySelectorAll(".walk-slider")].find(seen);
    if (walk) {
      walk.focus({ preventScroll: true });
      walk.dispatchEvent(new KeyboardEvent("keydown", { key: event.key, bubbles: true }));
      event.preventDefault();
      return;
    }
    try {
      const places = JSON.parse(sessionStorage.getItem(PLACES) ?? "{}");
      places[here()] = scrollY;
      sessionStorage.setItem(PLACES, JSON.stringify({ ...places, turned: true }));
    } catch {
      // the browser keeps nothing: pages begin at their tops
    }
    link.click();
  };
  // A page that was turned away from is found where it was left.
  const goBack = () => {
    try {
      const { turned, ...places } = JSON.parse(sessionStorage.getItem(PLACES) ?? "{}");
      if (turned) sessionStorage.setItem(PLACES, JSON.stringify(places));
      if (turned && places[here()] && !location.hash) scrollTo({ top: places[here()], behavior: "instant" });
    } catch {
      // as above
    }
  };

  [...document.querySelectorAll(".bd-article details")]
    .filter((one) => one.querySelector("summary > b")?.textContent.startsWith("Predict"))
    .forEach(predict);
  watchTheEnd();
  const table = document.querySelector(".tiled-progress table");
  if (table) progress(table);
  cards();
  document.addEventListener("keydown", keys);
  // The theme takes the focus from its own buttons.
  document.addEventListener(
    "click",
    ({ target }) => {
      const button = target.closest?.(".bd-header-article button");
      if (!button) return;
      setTimeout(() => document.activeElement === document.body && seen(button) && button.focus(), 100);
    },
    true, // before the theme, which keeps some clicks to itself
  );
  goBack();
})();
