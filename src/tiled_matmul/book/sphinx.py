"""The book's Sphinx extension: generated tables, the book's address, no requests to other hosts.

The directives `tiled-ladder`, `tiled-ideas`, `tiled-climb`, `tiled-status`, `tiled-records`,
`tiled-claims`, `tiled-counters`, `tiled-speed` and `tiled-progress` take neither arguments nor
content. `tiled-climb` is a figure, the others are tables. `tiled-explore` takes a figure's name.
Each of their faults is a build warning, which `-W` makes an error.
"""

from __future__ import annotations

import html
import json
import os
import re
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ConfigError
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from tiled_matmul.book import formulas
from tiled_matmul.book import generated as tables
from tiled_matmul.book.cells import address_line, figure_name
from tiled_matmul.book.citations import as_citations
from tiled_matmul.book.files import built_for, chapters, read_text, repository
from tiled_matmul.book.header import header, of_exercises
from tiled_matmul.book.lighten import lighten
from tiled_matmul.book.offline import outside_requests
from tiled_matmul.book.reader import progress_markdown, write_reader
from tiled_matmul.book.sections import write_search
from tiled_matmul.explore.page import KINDS, script, scripts
from tiled_matmul.files import replace_text

LOGGER = logging.getLogger(__name__)
KIND = "tiled_matmul"
BUTTONS = ("use_repository_button", "use_issues_button", "use_edit_page_button")
EXPLORED = re.compile(r'data-explore="([a-z-]+)"')
DESCRIPTION = 155  # characters, as search engines show
NBVAL_MARK = "# NBVAL_CHECK_OUTPUT\n"


class GeneratedTable(SphinxDirective):
    """A directive that generates Markdown from files, on which the page then depends."""

    def make(self, root: Path) -> tuple[str, list[str]]:
        """Return (Markdown, faults) for the book in `root`."""
        raise NotImplementedError

    def sources(self, root: Path) -> list[Path]:
        return chapters(root)

    def run(self) -> list[nodes.Node]:
        root = Path(self.env.srcdir)
        for path in self.sources(root):
            self.env.note_dependency(os.path.relpath(path, root))
        markdown, faults = self.make(root)
        for fault in faults:
            LOGGER.warning("%s: %s", self.name, fault, location=self.get_location(), type=KIND)
        container = nodes.container(classes=["generated", self.name])
        source, line = self.get_source_info()
        lines = StringList(markdown.splitlines(), source=source)
        self.state.nested_parse(lines, line, container, match_titles=True)
        return [container]


class Ladder(GeneratedTable):
    def sources(self, root: Path) -> list[Path]:
        return [root / "results" / "h200.json"]

    def make(self, root: Path) -> tuple[str, list[str]]:
        from tiled_matmul.ladder import LADDER
        from tiled_matmul.measure import results

        try:
            records = results.load(self.sources(root)[0])
        except ValueError as error:
            return "", [str(error)]
        return tables.ladder_markdown(records, LADDER)


class Ideas(Ladder):
    def make(self, root: Path) -> tuple[str, list[str]]:
        from tiled_matmul.book.ideas import ideas_markdown
        from tiled_matmul.ladder import LADDER
        from tiled_matmul.measure import results

        try:
            records = results.load(self.sources(root)[0])
        except ValueError as error:
            return "", [str(error)]
        return ideas_markdown(records, {rung.name: rung for rung in LADDER}, root)


class Climb(Ladder):
    """The figure of the climb from loops to tensor cores; a missing record is a fault."""

    def make(self, root: Path) -> tuple[str, list[str]]:
        from tiled_matmul.ladder import LADDER
        from tiled_matmul.measure import results
        from tiled_matmul.plots import waves

        try:
            way = waves.ascent(results.load(self.sources(root)[0]))
        except ValueError as error:
            return "", [str(error)]
        complete = {record.dtype for record in way if record.rung == record.baseline}
        climbs = {rung.dtype for rung in LADDER}
        faults = [f"no climb in {dtype} ends on its library" for dtype in sorted(climbs - complete)]
        if faults:
            return "", faults
        return waves.from_loops(way, waves.climb_title(way))._repr_html_(), []


class Status(GeneratedTable):
    def make(self, root: Path) -> tuple[str, list[str]]:
        return tables.status_markdown(root)


class Records(GeneratedTable):
    def sources(self, root: Path) -> list[Path]:
        return sorted((root / "results").rglob("*.json"))

    def make(self, root: Path) -> tuple[str, list[str]]:
        return tables.records_markdown(root)


class Claims(GeneratedTable):
    def make(self, root: Path) -> tuple[str, list[str]]:
        return tables.claims_markdown(root)


class Counters(GeneratedTable):
    def sources(self, root: Path) -> list[Path]:
        return [root / "results" / "patterns" / "h200.json"]

    def make(self, root: Path) -> tuple[str, list[str]]:
        return tables.counters_markdown(self.sources(root)[0])


class Speed(GeneratedTable):
    def sources(self, root: Path) -> list[Path]:
        return [root / "results" / "interpreter" / "h200.json"]

    def make(self, root: Path) -> tuple[str, list[str]]:
        return tables.speed_markdown(self.sources(root)[0])


class Progress(GeneratedTable):
    def make(self, root: Path) -> tuple[str, list[str]]:
        return progress_markdown(root)


class Explore(SphinxDirective):
    """A figure to change, by its name."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        from tiled_matmul.explore import explore

        try:
            made = explore(*self.arguments).html()
        except ValueError as error:
            LOGGER.warning("%s: %s", self.name, error, location=self.get_location(), type=KIND)
            return []
        return [nodes.raw("", made, format="html")]


def place_figures(app: Sphinx, page: str, source: list[str]) -> None:
    """Make a chapter's cell `explore("name")` a directive: on a page, the figure can move.

    The stored output is the still picture, for JupyterLab and Colab.
    """
    if not page.startswith("chapters/"):
        return
    notebook = json.loads(source[0])
    for place, cell in enumerate(notebook["cells"]):
        name = figure_name("".join(cell["source"]))
        if cell["cell_type"] == "code" and name:
            text = f"```{{tiled-explore}} {name}\n```"
            made = {"cell_type": "markdown", "id": cell["id"], "metadata": {}, "source": text}
            notebook["cells"][place] = made
    source[0] = json.dumps(notebook)


def bring_scripts(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    """Load the scripts of the figures that a page has, on that page."""
    kinds = set(EXPLORED.findall(context.get("body", "")))
    for name in scripts(kinds):
        app.add_js_file(f"explore/{name}", loading_method="defer")


def copy_scripts(built: Path) -> None:
    folder = built / "_static" / "explore"
    folder.mkdir(parents=True, exist_ok=True)
    for name in scripts(set(KINDS)):
        replace_text(folder / name, script(name))


def use_address(app: Sphinx, config: Config) -> None:
    """Put the address of this build into buttons, set-up cells and downloads.

    Without an address there are no buttons. Colab opens notebooks from GitHub only.
    """
    root = Path(app.srcdir)
    try:
        address, configured = built_for(root), repository(root)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    config.html_theme_options |= dict.fromkeys(BUTTONS, bool(address))
    if address:
        config.html_theme_options["repository_url"] = address
    if not address.startswith("https://github.com/"):
        config.html_theme_options["launch_buttons"] = {}
    # The cells are stored as JSON strings.
    old, new = (json.dumps(address_line(url))[1:-1] for url in (configured, address))

    def in_page(app: Sphinx, docname: str, source: list[str]) -> None:
        source[0] = source[0].replace(old, new)

    def in_downloads(app: Sphinx, error: Exception | None) -> None:
        for path in (Path(app.outdir) / "_sources").rglob("*.ipynb"):
            replace_text(path, read_text(path).replace(old, new))

    app.connect("source-read", in_page)
    app.connect("build-finished", in_downloads)


def cite(app: Sphinx, page: str, source: list[str]) -> None:
    """Turn links to the sources, which other readers of a notebook see, into citations."""
    source[0] = as_citations(source[0])


def name_right_outputs(app: Sphinx, page: str, source: list[str]) -> None:
    """Tag those cells of exercises whose stored output is that of a right answer.

    The starters have none of their own, and a reader of the page would take it for the starter's.
    """
    if not re.match(r"exercises/\d\d_", page):
        return
    notebook = json.loads(source[0])
    for cell in notebook["cells"]:
        if cell.get("outputs") and cell["id"].partition("-")[0] in ("run", "check"):
            cell["metadata"].setdefault("tags", []).append("as-right")
    source[0] = json.dumps(notebook)


def remove_thebe(app: Sphinx) -> None:
    """Remove the extension for live cells, whose script requests another host on every page.

    Jupyter Book always loads it and offers no option against it.
    """
    for event, listeners in app.events.listeners.items():
        app.events.listeners[event] = [
            listener
            for listener in listeners
            if listener.handler.__module__.split(".")[0] != "sphinx_thebe"
        ]


def replace_search(app: Sphinx) -> None:
    """Build the search page without Sphinx's own index: `write_search` makes another one."""
    if app.builder.format == "html":
        app.builder.search = False
        app.config.html_additional_pages = {"search": "search.html"}


def mend_listings(app: Sphinx, doctree: nodes.document) -> None:
    """Remove the marks for nbval from the listings, which notebooks and downloads keep, and name
    those that are a printed matrix."""
    for listing in doctree.findall(nodes.literal_block):
        text = listing.astext()
        if text.startswith("[["):
            listing["classes"].append("matrix-text")
        if text.startswith(NBVAL_MARK):
            shown = text.removeprefix(NBVAL_MARK)
            listing.rawsource = shown
            listing.children = [nodes.Text(shown)]


def mend_roles(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    """Remove the roles that docutils gives to a bibliography: ARIA gave up the entries' one."""
    for role in (' role="doc-biblioentry"', ' role="list"'):
        context["body"] = context.get("body", "").replace(role, "")


def add_header(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    """Describe a page for search engines by its first sentences, and a chapter to its reader: what
    it answers, how long it takes, and what it needs."""
    body = context.get("body", "")
    first = re.search(r"<p>(.*?)</p>", body, re.DOTALL)
    if first:
        words = html.escape(" ".join(re.sub(r"<[^>]*>", "", first[1]).split()), quote=True)
        text = words if len(words) <= DESCRIPTION else words[:DESCRIPTION].rsplit(" ", 1)[0] + " …"
        context["metatags"] = context.get("metatags", "") + (
            f'\n<meta name="description" content="{text}"/>'
        )
    if re.match(r"exercises/\d\d_", page):
        context["body"] = body.replace("</h1>", f"</h1>\n{of_exercises(page)}", 1)
    chapter = re.match(r"chapters/(\d\d)_", page)
    if chapter:
        titles = {
            int(found[2]): (found[1], title.astext())
            for name, title in app.env.titles.items()
            if (found := re.match(r"chapters/((\d\d)_.*)", name))
        }
        line = header(int(chapter[1]), body, titles)
        context["body"] = body.replace("</h1>", f"</h1>\n{line}", 1)


def finish(app: Sphinx, error: Exception | None) -> None:
    """Complete the built pages, and fail the build if one requests anything from another host."""
    if error or app.builder.format != "html":
        return
    copy_scripts(Path(app.outdir))
    write_search(Path(app.outdir), app.env.found_docs)
    write_reader(Path(app.outdir))
    lighten(Path(app.outdir))  # the last: it asks all scripts which styles they use
    for file, address in outside_requests(Path(app.outdir)):
        LOGGER.warning("%s fetches %s: the book must work offline", file, address, type=KIND)
        # Sphinx has already counted its warnings, so this one sets the exit status itself.
        app.statuscode = 1


def setup(app: Sphinx) -> dict[str, object]:
    formulas.setup(app)
    app.add_directive("tiled-ladder", Ladder)
    app.add_directive("tiled-climb", Climb)
    app.add_directive("tiled-ideas", Ideas)
    app.add_directive("tiled-status", Status)
    app.add_directive("tiled-records", Records)
    app.add_directive("tiled-claims", Claims)
    app.add_directive("tiled-counters", Counters)
    app.add_directive("tiled-speed", Speed)
    app.add_directive("tiled-explore", Explore)
    app.add_directive("tiled-progress", Progress)
    app.add_js_file("reader/reader.js", loading_method="defer")
    app.connect("config-inited", use_address)
    app.connect("builder-inited", remove_thebe, priority=1)
    app.connect("builder-inited", replace_search)
    app.connect("source-read", cite)
    app.connect("source-read", name_right_outputs)
    app.connect("source-read", place_figures)
    app.connect("doctree-read", mend_listings)
    app.connect("html-page-context", mend_roles)
    app.connect("html-page-context", add_header)
    app.connect("html-page-context", bring_scripts)
    app.connect("build-finished", finish)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
