// Makes a tile walk steppable; one that is on the page twice is started twice.
for (const root of document.querySelectorAll('[data-walk="MARK"]:not([data-started])')) {
  root.dataset.started = "";
  const find = (selector) => root.querySelector(selector);
  const { panels, frames } = JSON.parse(find(".walk-data").textContent);
  const steps = [...root.querySelectorAll("li")];
  const [slider, play, speed, caption] = [".walk-slider", ".walk-play", ".walk-speed", ".walk-caption"].map(find);
  const still = Number(slider.defaultValue);  // a browser may have restored another value
  const kinds = ["past", "loaded", "stored"];
  let now = 0;
  let timer = null;

  const outline = (panel, boxes) => {
    const [x, y, cell] = panels[panel];
    return boxes
      .map(([row, column, rows, columns]) =>
        `M${x + column * cell} ${y + row * cell}h${columns * cell}v${rows * cell}h${-columns * cell}z`)
      .join("");
  };
  const show = (step) => {
    now = Math.max(0, Math.min(frames.length - 1, step));
    panels.forEach((_, panel) => {
      const mine = (frame) => frame.filter((box) => box[0] === panel);
      const lit = [frames.slice(0, now).flatMap(mine), ...[0, 1].map((kind) => mine(frames[now]).filter((box) => box[1] === kind))];
      kinds.forEach((kind, i) => {
        find(`[data-panel="${panel}"] .walk-${kind}`).setAttribute("d", outline(panel, lit[i].map((box) => box.slice(2))));
      });
    });
    caption.innerHTML = steps[now].innerHTML;
    slider.value = now;
    slider.setAttribute("aria-valuetext", steps[now].querySelector("b").textContent);
  };
  const stop = () => {
    clearTimeout(timer);
    timer = null;
    play.textContent = "Play";
    caption.setAttribute("aria-live", "polite");
  };
  const go = (step) => { stop(); show(step); };
  const tick = () => {
    if (!root.isConnected || now === frames.length - 1) { stop(); return; }
    show(now + 1);
    timer = setTimeout(tick, 1200 / speed.value);
  };
  const toggle = () => {
    if (timer !== null) { stop(); return; }
    play.textContent = "Pause";
    caption.setAttribute("aria-live", "off");
    if (now === frames.length - 1) show(0);
    timer = setTimeout(tick, 1200 / speed.value);
  };

  play.addEventListener("click", toggle);
  find(".walk-back").addEventListener("click", () => go(now - 1));
  find(".walk-next").addEventListener("click", () => go(now + 1));
  slider.addEventListener("input", () => go(Number(slider.value)));
  root.addEventListener("keydown", (event) => {
    const keys = {
      " ": toggle,
      ArrowLeft: () => go(now - 1),
      ArrowRight: () => go(now + 1),
      Home: () => go(0),
      End: () => go(frames.length - 1),
    };
    const native = event.target.matches("select, summary") || (event.key === " " && event.target.matches("button"));
    if (native || event.altKey || event.ctrlKey || event.metaKey || !(event.key in keys)) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  });
  // Paper gets the step that stands in the page without a script.
  let before = 0;
  window.addEventListener("beforeprint", () => { before = now; go(still); });
  window.addEventListener("afterprint", () => show(before));
  root.tabIndex = 0;
  find(".walk-controls").hidden = false;
  show(0);
}
