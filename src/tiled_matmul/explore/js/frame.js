// Makes a picture one that can be changed: a form, the picture and a sentence that says what it
// shows. The settings are in the page's address, so that a link leads to them. A kind of figure is
// {controls, defaults, examples, model, draw, say}, and if it plays, steps; see warp.js for one.
const Explore = (() => {
  "use strict";
  const NARROW = 560; // px of a figure, in which it shows its first settings only
  const kinds = {};
  const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

  // Parts of pictures, as strings.
  const box = (x, y, width, height, look, title = "", pick = "") =>
    `<rect x="${x}" y="${y}" width="${Math.max(0, width)}" height="${Math.max(0, height)}" ` +
    `class="${look}"${pick && ` data-pick="${pick}"`}>` +
    `${title && `<title>${escaped(title)}</title>`}</rect>`;
  const text = (x, y, words, look = "", anchor = "middle") =>
    `<text x="${x}" y="${y}" text-anchor="${anchor}" class="${look}">${escaped(words)}</text>`;
  const picture = (width, height, parts) =>
    `<svg viewBox="0 0 ${width} ${height}" role="img" xmlns="http://www.w3.org/2000/svg">` +
    `${parts.join("")}</svg>`;
  const line = (x, y, x2, y2, look) =>
    `<line x1="${x}" y1="${y}" x2="${x2}" y2="${y2}" class="${look}"></line>`;
  const rounded = (value) => value.toLocaleString("en", { maximumSignificantDigits: 3 });
  const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

  const control = (name, spec, id) => {
    const label = `<label for="${id}">${spec.label}</label>`;
    if (spec.options) {
      const options = spec.options.map((one) => `<option>${escaped(one)}</option>`).join("");
      return `<span>${label}<select id="${id}" name="${name}">${options}</select></span>`;
    }
    const kind = spec.text ? 'type="text" spellcheck="false" autocomplete="off"' : `type="number"`;
    const bounds = spec.text ? "" : ` min="${spec.min}" max="${spec.max}" step="1"`;
    const input = `<input id="${id}" name="${name}" ${kind}${bounds}>`;
    if (spec.text) return `<span>${label}${input}</span>`;
    // A keyboard has its arrow keys; these show where a finger is the pointer.
    const by = (words, change) =>
      `<button type="button" tabindex="-1" aria-label="${words} ${spec.label}" data-field="${name}" ` +
      `data-by="${change}">${change > 0 ? "+" : "−"}</button>`;
    return `<span>${label}<span class="explore-number">${by("less", -1)}${input}${by("more", 1)}</span></span>`;
  };

  // Return a setting as the model takes it. Throws an Error that quotes what is wrong.
  const read = (spec, value) => {
    if (spec.text) return value;
    if (spec.options) {
      const known = spec.options.map(String).includes(String(value));
      if (!known) throw new Error(`${spec.label}: ${value} is none of ${spec.options.join(", ")}`);
      return typeof spec.options[0] === "number" ? Number(value) : value;
    }
    const number = Number(value);
    if (String(value).trim() === "" || !Number.isInteger(number)) {
      throw new Error(`${spec.label}: a whole number is wanted, not “${value}”`);
    }
    if (number < spec.min || number > spec.max) {
      throw new Error(`${spec.label}: ${number} is not between ${spec.min} and ${spec.max}`);
    }
    return number;
  };

  const start = (root) => {
    if ("started" in root.dataset || !(root.dataset.explore in kinds)) return;
    root.dataset.started = "";
    const kind = kinds[root.dataset.explore];
    const first = { ...kind.defaults, ...JSON.parse(root.dataset.state || "{}") };
    const [shown, said] = [".explore-picture", ".explore-said"].map((n) => root.querySelector(n));
    const names = Object.keys(kind.controls);
    const fields = (some) =>
      some.map((name) => control(name, kind.controls[name], `${root.id}-${name}`)).join("");
    const further = names.filter((name) => kind.controls[name].more);
    const form = document.createElement("form");
    const examples = Object.keys(kind.examples);
    form.className = "explore-form";
    form.innerHTML =
      `<span><label for="${root.id}-example">${kind.choice ?? "Example"}</label><select id="${root.id}-example">` +
      `<option value="">your own</option>` +
      examples.map((one) => `<option>${escaped(one)}</option>`).join("") +
      "</select></span>" +
      fields(names.filter((name) => !kind.controls[name].more)) +
      (kind.steps ? '<button type="button" class="explore-play">Play</button>' : "") +
      '<button type="reset">Reset</button>' +
      (further.length
        ? `<details class="explore-more"${root.clientWidth < NARROW ? "" : " open"}><summary>More settings</summary>` +
          `<div>${fields(further)}</div></details>`
        : "");
    const alert = document.createElement("p");
    alert.className = "explore-alert";
    alert.setAttribute("role", "alert");
    root.prepend(form, alert);
    said.setAttribute("aria-live", "polite");
    const [example, field] = [form.querySelector("select"), (name) => form.elements[name]];

    const settings = () =>
      Object.fromEntries(names.map((name) => [name, read(kind.controls[name], field(name).value)]));
    const show = () => {
      let now = null;
      try {
        now = settings();
        const found = kind.model(now);
        const wide = Math.max(280, Math.min(736, Math.round(root.clientWidth) || 736));
        shown.innerHTML = kind.draw(found, now, wide);
        said.textContent = kind.say(found, now);
        shown.firstElementChild.setAttribute("aria-label", said.textContent);
        alert.textContent = "";
        const same = (one) => names.every((n) => ({ ...kind.defaults, ...kind.examples[one] })[n] === now[n]);
        example.value = examples.find(same) ?? "";
      } catch (error) {
        alert.textContent = error.message;
        // What does not fit together may be in there; a field that is being typed into is in sight.
        if (now) form.querySelector("details")?.setAttribute("open", "");
      }
    };
    const fill = (state) => {
      try {
        for (const name of names) if (!kind.controls[name].text) read(kind.controls[name], state[name]);
      } catch (error) {
        alert.textContent = error.message;
        return;
      }
      for (const name of names) field(name).value = state[name];
      show();
    };
    const keep = () => {
      const query = new URLSearchParams(names.map((name) => [name, field(name).value]));
      history.replaceState(null, "", `#${root.id}?${query}`);
    };
    const fromAddress = () => {
      const [id, query] = decodeHash(location.hash);
      if (id !== root.id || query === undefined) return;
      fill({ ...first, ...Object.fromEntries(new URLSearchParams(query)) });
      root.scrollIntoView();
    };

    // Who comes by keyboard sees the picture, too.
    form.addEventListener("keyup", (event) => {
      if (event.key === "Tab") root.scrollIntoView({ block: "nearest" });
    });

    // Play moves one field on, a step a second, until its last value; any other change ends it.
    const play = form.querySelector(".explore-play");
    let timer = null;
    const stop = () => {
      clearInterval(timer);
      timer = null;
      if (play) play.textContent = "Play";
      said.setAttribute("aria-live", "polite");
    };
    const step = () => {
      const [name, now] = [kind.steps.field, settings()];
      const last = kind.steps.last(kind.model(now));
      if (now[name] >= last) return stop();
      field(name).value = now[name] + 1;
      show();
      if (now[name] + 1 >= last) stop();
    };
    play?.addEventListener("click", () => {
      if (timer !== null) return stop();
      const now = settings();
      if (now[kind.steps.field] >= kind.steps.last(kind.model(now))) {
        field(kind.steps.field).value = kind.controls[kind.steps.field].min;
        show();
      }
      said.setAttribute("aria-live", "off"); // a voice cannot keep up
      play.textContent = "Pause";
      timer = setInterval(step, kind.steps.every ?? 900);
    });

    // Parts of a picture that say so, such as data-pick="lane=5", set a field when pointed at.
    const pick = ({ target, type, pointerType }) => {
      if (type === "pointerover" && pointerType !== "mouse") return; // a finger that scrolls
      const [name, value] = (target.dataset.pick ?? "").split("=");
      if (!name || field(name).value === value) return;
      stop();
      field(name).value = value;
      show();
      keep();
    };
    shown.addEventListener("pointerover", pick);
    shown.addEventListener("click", pick);
    form.addEventListener("click", ({ target }) => {
      const { field: name, by } = target.dataset;
      if (!name) return;
      const { min, max } = kind.controls[name];
      const next = Math.max(min, Math.min(max, Number(field(name).value) + Number(by)));
      stop();
      field(name).value = next;
      show();
      keep();
    });
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", (event) => {
      stop();
      if (event.target === example) {
        if (example.value) fill({ ...kind.defaults, ...kind.examples[example.value] });
      } else show();
      keep();
    });
    form.addEventListener("reset", (event) => {
      event.preventDefault();
      stop();
      fill(first);
      keep();
    });
    let width = root.clientWidth;
    new ResizeObserver(() => {
      if (root.clientWidth !== width) show();
      width = root.clientWidth;
    }).observe(root);
    window.addEventListener("hashchange", fromAddress);
    fill(first);
    fromAddress();
  };

  const decodeHash = (hash) => {
    const [id, ...rest] = hash.slice(1).split("?");
    return [id, rest.length ? rest.join("?") : undefined];
  };
  const define = (name, kind) => {
    kinds[name] = kind;
    const go = () => document.querySelectorAll(`[data-explore="${name}"]`).forEach(start);
    if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", go);
    else go();
  };
  return { define, box, line, text, picture, plural, rounded, escaped };
})();
