"""The search page: what it finds first, from disk and from a server, and how it is used."""

from urllib.parse import urlencode

import pytest

from browser import checks
from browser.conftest import BOOK

DISK = f"{BOOK.as_uri()}/"
LIMIT = 1_400_000  # bytes of the page with its own scripts
FILES = ("search.html", *(f"_static/search/{n}.js" for n in ("minisearch", "sections", "search")))

# A query, and the section that has to be first.
CHAPTERS = {
    "loop order": "02_loop_orders.html#loop-orders",
    "tiling": "03_tiling.html#tiling",
    "interchange": "03_tiling.html#interchange-the-loops",
    "blockIdx": "04_grid_and_blocks.html#four-loops-become-a-launch",
    "guards": "04_grid_and_blocks.html#the-edge-needs-a-guard",
    "roofline": "04_grid_and_blocks.html#a-first-roofline",
    "shared memory": "05_shared_memory.html#shared-memory",
    "cuda.syncthreads": "05_shared_memory.html#the-kernel",
    "two barriers": "05_shared_memory.html#why-two-barriers",
    "transpose": "06_banks.html#transposed-operands",
    "unrolling": "08_overlap.html#unroll-the-loop-over-k",
    "make_block_ptr": "10_block_pointers.html#id2",
    "tl.make_block_ptr": "10_block_pointers.html#id2",
    "make_block": "10_block_pointers.html#id2",
    "tl.dot": "10_block_pointers.html#a-product-of-tiles",
    "TF32": "10_block_pointers.html#tf32",
    "swizzling": "10_block_pointers.html#a-swizzled-tile-in-shared-memory",
    "GROUP_M": "11_program_order.html#from-a-number-to-a-tile",
    "hit rate": "11_program_order.html#what-the-counters-say",
    "persistent kernel": "13_descriptors.html#persistent-programs",
    "global memory": "05_shared_memory.html#shared-memory",
    "the tail": "14_shapes.html#waves-and-the-tail",
    "cuBLAS": "14_shapes.html#against-cublas",
}
TERMS = {
    "GROUP_SIZE_M": "program-group",
    "L2 swizzle": "program-group",
    "BLOCK_SIZE_M": "program",
    "bank conflict": "bank-conflict",
    "bank conflicts": "bank-conflict",
    "race": "race",
    "data race": "race",
    "__syncthreads": "barrier",
    "__syncthreads()": "barrier",
    "__shared__": "shared-memory",
    "what is occupancy?": "occupancy",
    "split-K": "split-k",
    "split k": "split-k",
    "stream-K": "stream-k",
    "coalescing": "coalesced",
    "float4": "vector-instruction",
    "atomicAdd": "lost-update",
    "sm_90": "compute-capability",
    "warp scheduler": "warp-scheduler",
    "warp specialization": "warp-specialisation",
    "double buffering": "double-buffer",
    "wave quantization": "wave",
    "descriptors": "tensor-descriptor",
    "tensor map": "tensor-descriptor",
    "autotune": "autotuning",
    "TMA": "tma",
    "wgmma": "wgmma",
}
FIRST = {query: f"chapters/{place}" for query, place in CHAPTERS.items()}
FIRST |= {query: f"glossary.html#{place}" for query, place in TERMS.items()}
FIRST["softmax"] = "exercises/10_block_pointers.html#a-softmax-in-two-passes"
FIRST["power"] = "chapters/a1_power_and_clocks.html#power-and-clocks"


def search(page, base, query):
    """Open the search page with a query, and return the addresses of the sections that it lists."""
    page.goto(f"{base}search.html?{urlencode({'q': query})}")
    page.wait_for_selector("#search-count h2")
    return page.evaluate(
        "[...document.querySelectorAll('.found a')].map(a => a.getAttribute('href'))"
    )


def unlike(page, base, queries):
    """Return the queries whose first section is not that of FIRST, with the one that it is."""
    page.goto(f"{base}search.html")
    page.wait_for_function("typeof find === 'function'")
    first = "(query) => find(query).matches[0]?.section.address"
    found = {query: page.evaluate(first, query) for query in queries}
    return [f"{query}: {place}" for query, place in found.items() if place != FIRST[query]]


@pytest.mark.parametrize("from_disk", [True, False])
def test_the_right_section_is_first(from_disk, book, page):
    base = DISK if from_disk else book
    watch = checks.Watch(page, base)
    assert unlike(page, base, FIRST) == []
    assert watch.faults == []


@pytest.mark.parametrize(
    ("line", "instead", "query"),
    [
        ("title: 12,", "title: 0.1,", "roofline"),
        ("[...ends, ...names, ...parts(word)]", "[word]", "make_block"),
        ('.replace(/([^s])s$/, "$1")', "", "bank conflicts"),
        ("title.length === asked.length ? 6 : 3", "1", "bank conflict"),
    ],
)
def test_a_fault_of_the_search_is_found(line, instead, query, book, page):
    text = (BOOK / "_static/search/search.js").read_text(encoding="utf-8")
    assert line in text
    faulty = text.replace(line, instead)
    page.route("**/search/search.js", lambda route: route.fulfill(body=faulty))
    assert unlike(page, book, [query]) != []


@pytest.mark.parametrize("query", ["race", "barrier", "tile", "xyzzy guard"])
def test_solutions_come_last_and_sections_once(query, book, page):
    found = search(page, book, query)
    solved = [address.startswith("exercises/solutions/") for address in found]
    assert found and solved == sorted(solved) and len(set(found)) == len(found)


@pytest.mark.parametrize(
    ("query", "said", "marked"),
    [
        ("make_block_ptr", "sections for “make_block_ptr”", "tl.make_block_ptr"),
        ("sm_90", "1 section for “sm_90”", "sm_90"),
        ("tile", "the first 50 of them", "Tiling"),
        ("wibble occupancy", "No section has all of “wibble occupancy”", "occupancy"),
        ("figures.owners", "sections for “figures.owners”", "figures.owners"),
    ],
)
def test_the_count_is_a_heading_and_words_are_marked(query, said, marked, page):
    search(page, DISK, query)
    assert said in page.locator("#search-count[role=status] h2").inner_text()
    first = page.locator(".found li").first
    assert marked in first.locator("mark").all_inner_texts()
    assert len(first.locator("p").inner_text()) < 330


@pytest.mark.parametrize("query", ["xyzzy", "…", "<xyzzy>", "'\"`"])
def test_a_query_that_finds_nothing_is_said_as_it_was_typed(query, page):
    watch = checks.Watch(page, DISK)
    assert search(page, DISK, query) == []
    assert page.locator("#search-count h2").inner_text() == f"No section for “{query}”"
    assert watch.faults == []


def test_results_are_in_order_in_light_and_dark_and_at_every_width(page):
    search(page, DISK, "make_block_ptr bank conflicts")
    faults = [*checks.overflows(page), *checks.duplicates(page), *checks.contrast(page)]
    checks.darken(page)
    assert faults + checks.contrast(page) + checks.accessibility(page) == []


@pytest.mark.parametrize("from_disk", [True, False])
def test_from_a_chapter_to_a_section_by_keyboard(from_disk, book, page):
    base = DISK if from_disk else book
    page.goto(f"{base}chapters/05_shared_memory.html")
    page.keyboard.press("Control+K")
    page.keyboard.type("bank conflict")
    page.keyboard.press("Enter")
    page.wait_for_selector("#search-count h2")
    assert "search.html?q=bank+conflict" in page.url
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.matches('.found li:first-child a')")
    page.keyboard.press("Enter")
    page.wait_for_url("**/glossary.html#bank-conflict")
    assert page.locator("#bank-conflict .highlighted").first.inner_text().lower() == "bank"


def test_without_a_query_there_is_only_the_field(page):
    page.goto(f"{DISK}search.html")
    assert page.evaluate("document.activeElement.name") == "q"
    assert page.locator("#search-count h2, .found li").count() == 0


def test_without_scripts_the_page_says_so(browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{DISK}search.html")
    assert page.locator("noscript p").get_by_role("link").is_visible()
    context.close()


def test_the_search_is_light_and_on_its_page_alone(book):
    assert sum((BOOK / name).stat().st_size for name in FILES) < LIMIT
    for path in BOOK.rglob("*.html"):
        scripts = path.read_text(encoding="utf-8").count("_static/search/")
        assert scripts == (3 if path.name == "search.html" else 0), path
    for name in ("searchindex.js", "_static/searchtools.js", "_static/language_data.js"):
        assert not (BOOK / name).exists()
