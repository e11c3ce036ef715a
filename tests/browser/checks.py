"""What every page of the built book has to hold, looked at in a real browser.

Each check takes a Playwright page that has loaded, and returns its faults as sentences.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

WIDTHS = (1400, 820, 700, 390, 320)  # 700 stands for 1400 at a zoom of 200%
HEIGHT = 900
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
# Findings of the theme's own parts, which stay until their projects mend them.
THEMES_OWN: dict[str, str] = {}

OVERFLOW = """() => {
  const wide = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= wide) return [];
  const inside = (element) => {
    for (let up = element.parentElement; up; up = up.parentElement) {
      const style = getComputedStyle(up);
      if (style.overflowX !== "visible" || style.position === "fixed") return true;
    }
    return false;
  };
  return [...document.body.querySelectorAll("*")]
    .filter((one) => one.getBoundingClientRect().right > wide + 0.5 && !inside(one))
    .slice(0, 3)
    .map((one) => `${one.tagName.toLowerCase()}.${one.getAttribute("class") ?? ""}`);
}"""
DUPLICATES = """() => {
  const seen = new Map();
  for (const one of document.querySelectorAll("[id]")) {
    seen.set(one.id, (seen.get(one.id) ?? 0) + 1);
  }
  return [...seen].filter(([, many]) => many > 1).map(([id]) => id);
}"""


ICONS = """() => [...document.querySelectorAll("i[class*='fa-']")]
  .filter((one) => !getComputedStyle(one).getPropertyValue("--icon"))
  .map((one) => one.className)"""


PLAIN_CODE = """() => document.querySelectorAll("div.highlight pre")
  .forEach((one) => (one.textContent = one.textContent))"""
KINDS_OF_TEXT = """(() => {
  const behind = new Map();
  const backgrounds = (element) => {
    if (!element) return "";
    if (!behind.has(element)) {
      const { backgroundColor, backgroundImage, opacity, filter } = getComputedStyle(element);
      const own = [backgroundColor, backgroundImage, opacity, filter].join();
      const above = backgrounds(element.parentElement);
      behind.set(element, own === "rgba(0, 0, 0, 0),none,1,none" ? above : `${above}/${own}`);
    }
    return behind.get(element);
  };
  const kinds = new Map();
  for (const one of document.body.querySelectorAll("*")) {
    if (![...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) continue;
    if (!one.checkVisibility()) continue;
    const { color, fill, fontSize, fontWeight, textShadow } = getComputedStyle(one);
    const kind = [color, fill, fontSize, fontWeight, textShadow, backgrounds(one)].join(";");
    if (!kinds.has(kind)) kinds.set(kind, one);
  }
  return { include: [...kinds.values()] };
})()"""


class Watch:
    """Notes a page's console errors and its requests to other hosts, from its creation on."""

    def __init__(self, page: Any, base: str) -> None:
        self.faults: list[str] = []
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.faults.append(f"the page raised {error}"))
        page.on("request", lambda request: self._asked(request.url, base))
        page.on("requestfailed", lambda request: self.faults.append(f"no {request.url}"))
        page.on("response", self._came)

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"the console says: {message.text}")

    def _asked(self, url: str, base: str) -> None:
        if not url.startswith((base, "data:", "blob:", "about:")):
            self.faults.append(f"a request to another host: {url}")

    def _came(self, response: Any) -> None:
        if response.status >= 400:
            self.faults.append(f"{response.status}: {response.url}")


def overflows(page: Any) -> list[str]:
    """Return the widths at which the page is wider than the window, with what sticks out."""
    faults = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": HEIGHT})
        if out := page.evaluate(OVERFLOW):
            faults.append(f"at {width} px the page is too wide: {', '.join(out)}")
    page.set_viewport_size({"width": WIDTHS[0], "height": HEIGHT})
    return faults


def darken(page: Any) -> None:
    """Switch the page to its dark colours, at once."""
    page.add_style_tag(content="* { transition: none !important; }")
    page.emulate_media(color_scheme="dark")


def duplicates(page: Any) -> list[str]:
    """Return the ids that stand on the page more than once."""
    return [f"two elements have the id {name!r}" for name in page.evaluate(DUPLICATES)]


def icons(page: Any) -> list[str]:
    """Return the icons that no style sheet draws: they would be black squares."""
    return [f"no icon is drawn for {name!r}" for name in sorted(set(page.evaluate(ICONS)))]


def accessibility(page: Any) -> list[str]:
    """Return what axe-core finds but for contrast, one sentence for each element.

    The code on the page loses its colours: their elements are half of the page and have no meaning.
    """
    page.evaluate(PLAIN_CODE)
    return _axe(
        page, "document", {"runOnly": TAGS, "rules": {"color-contrast": {"enabled": False}}}
    )


def contrast(page: Any) -> list[str]:
    """Return the elements whose text axe-core finds too pale, one of each kind.

    Texts of one size and colour that lie in the same backgrounds are of one kind. Most of axe's
    time goes into this rule, and a page has a few dozen kinds among thousands of texts.
    """
    return _axe(page, KINDS_OF_TEXT, {"runOnly": {"type": "rule", "values": ["color-contrast"]}})


def _axe(page: Any, where: str, options: dict) -> list[str]:
    import axe_playwright_python

    if not page.evaluate("() => 'axe' in window"):
        script = Path(axe_playwright_python.__file__).with_name("axe.min.js")
        page.evaluate(script.read_text(encoding="utf-8"))
    options |= {"resultTypes": ["violations"], "preload": False}
    found = page.evaluate(f"(options) => axe.run({where}, options)", options)["violations"]
    return [
        f"{one['id']}: {node['target'][0]}: {' '.join(node['failureSummary'].split())}"
        for one in found
        for node in one["nodes"]
        if not _of_the_theme(one["id"], str(node["target"][0]))
    ]


def _of_the_theme(rule: str, target: str) -> bool:
    return any(f"{rule} {target}".startswith(known) for known in THEMES_OWN)
