"""The whole book as one HTML page for print; `tools/print_book.py` makes the PDF of it.

The page is composed of the built pages, so numbers, figures and references are the same as on the
screen. Every id gets the name of its page in front, and links lead to places in the one page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import yaml
from bs4 import BeautifulSoup, Tag

from tiled_matmul.book.files import read_text

STYLE = Path(__file__).with_name("paper.css")
SOLUTIONS = "Solutions"
ON_SCREEN = (
    "script, details.hide, .headerlink, .begin, .toctree-wrapper, "
    ".tiled-walk :is(.walk-controls, details)"
)
HEADING = re.compile(r"h[1-5]")
HINT = re.compile(r"Hints?\b")
LOCAL_URL = re.compile(r"url\(#")
REFERRING = ("for", "aria-labelledby", "aria-describedby")


@dataclass(frozen=True)
class Page:
    """A page of the book: its file in the built book, its title with its number, its part."""

    path: str
    title: str
    part: str

    @property
    def slug(self) -> str:
        """The id of the page in the printed book."""
        return slug(self.path.removesuffix(".html"))

    def place(self, name: str) -> str:
        """Return the id in the printed book of the page's element with the id `name`."""
        return f"{self.slug}--{name}"


def slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower())


def pages(html: Path) -> list[Page]:
    """Return the pages of the book that is built in `html`, in order, with the solutions last."""
    home = re.search(r"url=([\w./-]+)", read_text(html / "index.html"))[1]
    nav = BeautifulSoup(read_text(html / home), "html.parser").select_one("nav.bd-links")
    found, part = [], ""
    for tag in nav.select("p.caption, a.reference"):
        text = " ".join(tag.get_text().split())
        if tag.name == "p":
            part = text
        else:
            path = home if tag["href"] == "#" else tag["href"]
            found.append(Page(path, text, SOLUTIONS if "/solutions/" in path else part))
    return sorted(found, key=lambda page: page.part == SOLUTIONS)


def compose(root: Path, printed: list[Page]) -> str:
    """Return the HTML of a book of the pages `printed`, from the book that is built in `root`.

    An empty element with `data-page` stands where the number of a page belongs: that of the page on
    which the element with this id is printed. Links to pages that are not printed become text.
    Raises ValueError for a link that leads to no place of a printed page.
    """
    html = root / "_build" / "html"
    by_path = {page.path: page for page in printed}
    articles = {page: _article(html, page, by_path) for page in printed}
    for page, article in articles.items():
        folder, _, name = page.path.rpartition("/")
        if folder == "exercises" and (solved := by_path.get(f"{folder}/solutions/{name}")):
            _keep_for_the_end(article, articles[solved])
    body = "".join(_printed(articles))
    config = yaml.safe_load(read_text(root / "_config.yml"))
    contents = f'<nav id="contents"><h1>Contents</h1>{_list(_contents(articles))}</nav>'
    if dead := _dead_links(contents + body):
        raise ValueError(f"links that lead nowhere: {', '.join(dead)}")
    return (
        '<!DOCTYPE html><html lang="en" data-theme="light"><head><meta charset="utf-8">'
        f"<title>{escape(config['title'])}</title>{_styles(html, printed)}</head>"
        f"<body>{_title_page(html, config)}{contents}{body}</body></html>"
    )


def _article(html: Path, page: Page, by_path: dict[str, Page]) -> Tag:
    """Return the content of a page without what only a screen can do, ready for the one page."""
    text = read_text(html / page.path)
    start, end = text.index("<article"), text.rindex("</article>") + len("</article>")
    article = BeautifulSoup(text[start:end], "html.parser").article
    for tag in article.select(ON_SCREEN):
        tag.decompose()
    for tag in article.find_all(True):
        _refer(tag, page, by_path)
        if tag.name == "details":
            tag.name, tag.summary.name = "div", "p"
            tag["class"] = [*tag.get("class", []), "opened"]
        elif page.part and HEADING.fullmatch(tag.name):
            tag.name = f"h{int(tag.name[1]) + 1}"  # the part's own is h1
    return article


def _refer(tag: Tag, page: Page, by_path: dict[str, Page]) -> None:
    """Put the page's name before the tag's id, and before the ids to which it refers."""
    for name, value in list(tag.attrs.items()):
        if name == "id":
            tag[name] = page.place(value)
        elif name in REFERRING:
            tag[name] = " ".join(map(page.place, value.split()))
        elif name == "href" and tag.name == "a":
            if address := _address(value, page, by_path):
                tag[name] = address
            else:
                tag.unwrap()
        elif name in ("href", "xlink:href") and value.startswith("#"):
            tag[name] = f"#{page.place(value[1:])}"
        elif isinstance(value, str):
            tag[name] = LOCAL_URL.sub(f"url(#{page.place('')}", value)


def _address(address: str, page: Page, by_path: dict[str, Page]) -> str | None:
    """Return the address that a link needs in the printed book, None where it leads out of it."""
    if urlsplit(address).scheme:
        return address
    path, place = map(unquote, urldefrag(urljoin(page.path, address)))
    if path not in by_path:
        return None
    target = by_path[path]
    return f"#{target.place(place) if place else target.slug}"


def _keep_for_the_end(exercises: Tag, solutions: Tag) -> None:
    """Move the hints of exercises to their solutions, which lose what the exercises have said."""
    for child in _children(solutions.section):
        if child.name not in ("section", "h2"):
            child.decompose()
    tasks, answers = (
        article.section.find_all("section", recursive=False) for article in (exercises, solutions)
    )
    for task, answer in zip(tasks, answers, strict=True):
        said = {_text(child) for child in _children(task)}
        for child in _children(answer)[1:]:
            if _text(child) in said:
                child.decompose()
        hints = [child for child in _children(task) if HINT.match(_text(child))]
        _children(answer)[0].insert_after(_reference("The exercise", task["id"]), *hints)
        task.append(_reference("Hints and an answer", answer["id"]))


def _children(tag: Tag) -> list[Tag]:
    return tag.find_all(True, recursive=False)


def _text(tag: Tag) -> str:
    return " ".join(tag.get_text().split())


def _reference(text: str, place: str) -> Tag:
    """Return a paragraph that names the page of a place."""
    html = f'<p class="see"><a href="#{place}">{text}: page {_number(place)}</a></p>'
    return BeautifulSoup(html, "html.parser").p


def _number(place: str) -> str:
    return f'<span data-page="{place}"></span>'


def _printed(articles: dict[Page, Tag]) -> Iterator[str]:
    """Yield the pages as sections, and before the first of each part a page for the part."""
    part = ""
    for page, article in articles.items():
        if page.part != part:
            part = page.part
            entries = [("", one.slug, escape(one.title)) for one in articles if one.part == part]
            yield f'<section class="part" id="{_part_id(part)}"><h1>{escape(part)}</h1>'
            yield f"{_list(entries)}</section>"
        yield f'<section class="page" id="{page.slug}" style="page: {page.slug}">'
        yield f"{article}</section>"


def _part_id(part: str) -> str:
    return f"part-{slug(part)}"


def _contents(articles: dict[Page, Tag]) -> Iterator[tuple[str, str, str]]:
    """Yield the entries of the contents; numbered pages have their sections there too."""
    part = ""
    for page, article in articles.items():
        if page.part != part:
            part = page.part
            yield "of-part", _part_id(part), escape(part)
        yield "of-page", page.slug, escape(page.title)
        if page.title[:1].isdigit():
            for section in article.section.find_all("section", recursive=False):
                yield "of-section", section["id"], section.find(HEADING).decode_contents()


def _list(entries: Iterable[tuple[str, str, str]]) -> str:
    """Return entries (kind, id, title as HTML) as a list with the numbers of their pages."""
    items = (
        f'<li class="{kind}"><a href="#{place}"><span>{title}</span> {_number(place)}</a></li>'
        for kind, place, title in entries
    )
    return f'<ol class="contents">{"".join(items)}</ol>'


def _dead_links(html: str) -> list[str]:
    """Return the links of the one page that lead to none of its ids."""
    ids = set(re.findall(r' id="([^"]*)"', html))
    return sorted({link for link in re.findall(r'href="#([^"]*)"', html) if link not in ids})


def _title_page(html: Path, config: dict) -> str:
    title, _, rest = config["title"].partition(": ")
    return (
        f'<section class="title-page">{read_text(html / "_static" / "favicon.svg")}'
        f'<p class="title">{escape(title)}</p><p class="subtitle">{escape(rest)}</p>'
        f"<p>{escape(config['author'])}</p><p>{escape(config['copyright'])}</p></section>"
    )


def _styles(html: Path, printed: list[Page]) -> str:
    """Return the style sheets, and for each page of the book its running head."""
    links = (html / "_static" / "pygments.css", html / "_static" / "course.css", STYLE)
    rules = [
        f"@page {page.slug} {{ @top-left {{ content: {_css(page.part)}; }} "
        f"@top-right {{ content: {_css(page.title)}; }} }}"
        for page in printed
    ]
    sheets = "".join(f'<link rel="stylesheet" href="{path.as_uri()}">' for path in links)
    return f"{sheets}<style>{' '.join(rules)}</style>"


def _css(text: str) -> str:
    """Return a text as a string of CSS."""
    return '"' + re.sub(r'["\\]', r"\\\g<0>", text) + '"'
