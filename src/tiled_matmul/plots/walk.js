// Makes a tile walk steppable; one that is on the page twice is started twice. Nothing moves before
// somebody presses Play, and steps jump, for the sake of readers who want less motion.
for (const root of document.querySelectorAll('[data-walk="MARK"]:not([data-started])')) {
  root.dataset.started = "";
  const find = (name) => root.querySelector(".walk-" + name);
  const { panels, frames } = JSON.parse(find("data").textContent);
  const steps = [...root.querySelectorAll("li")];
  const [slider, play, speed, caption] = ["slider", "play", "speed", "caption"].map(find);
  const still = Number(slider.defaultValue); // a browser may have restored another value
  const last = frames.length - 1;
  let now = 0;
  let timer = null;

  const outline = ([x, y, cell], boxes) =>
    boxes
      .map(([, , row, column, rows, columns]) => {
        const [width, height] = [columns * cell, rows * cell];
        return `M${x + column * cell} ${y + row * cell}h${width}v${height}h${-width}z`;
      })
      .join("");
  const show = (step) => {
    now = Math.max(0, Math.min(last, step));
    panels.forEach((panel, number) => {
      const mine = (boxes) => boxes.filter((box) => box[0] === number);
      const lit = {
        past: mine(frames.slice(0, now).flat()),
        loaded: mine(frames[now]).filter((box) => box[1] === 0),
        stored: mine(frames[now]).filter((box) => box[1] === 1),
      };
      const group = root.querySelector(`[data-panel="${number}"]`);
      for (const [kind, boxes] of Object.entries(lit)) {
        group.querySelector(".walk-" + kind).setAttribute("d", outline(panel, boxes));
      }
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
  const go = (step) => {
    stop();
    show(step);
  };
  const wait = () => {
    timer = setTimeout(() => {
      if (root.isConnected) show(now + 1);
      if (root.isConnected && now < last) wait();
      else stop();
    }, 1200 / speed.value);
  };
  const toggle = () => {
    if (timer !== null) return stop();
    if (now === last) show(0);
    play.textContent = "Pause";
    caption.setAttribute("aria-live", "off"); // a voice cannot keep up
    wait();
  };

  play.addEventListener("click", toggle);
  find("back").addEventListener("click", () => go(now - 1));
  find("next").addEventListener("click", () => go(now + 1));
  slider.addEventListener("input", () => go(Number(slider.value)));
  root.addEventListener("keydown", (event) => {
    const keys = {
      " ": toggle,
      ArrowLeft: () => go(now - 1),
      ArrowRight: () => go(now + 1),
      Home: () => go(0),
      End: () => go(last),
    };
    const own = event.target.matches("select, summary");
    const pressed = event.key === " " && event.target.matches("button");
    if (own || pressed || event.altKey || event.ctrlKey || event.metaKey) return;
    if (!(event.key in keys)) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  });
  // Paper gets the step that stands in the page without a script.
  let before = 0;
  window.addEventListener("beforeprint", () => {
    before = now;
    go(still);
  });
  window.addEventListener("afterprint", () => show(before));
  root.tabIndex = 0;
  find("controls").hidden = false;
  show(0);
}
