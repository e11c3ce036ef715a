"""Each check finds the fault that it is for."""

import pytest

from browser import checks
from browser.conftest import serve
from browser.test_pages import broken

START = "<!DOCTYPE html><html lang='en'><head><title>A page</title></head><body><main><h1>Page</h1>"


@pytest.fixture
def site(tmp_path):
    yield tmp_path, next(served := serve(tmp_path))
    served.close()


def opened(site, page, body):
    folder, address = site
    (folder / "page.html").write_text(f"{START}{body}</main></body></html>")
    (folder / "favicon.ico").write_bytes(b"")
    watch = checks.Watch(page, address)
    page.goto(f"{address}page.html")
    page.wait_for_load_state("networkidle")
    return watch


def test_a_page_in_order_has_no_fault(site, page):
    watch = opened(site, page, "<p id='one'>Text</p><p id='two'>More</p>")
    assert watch.faults == []
    assert checks.duplicates(page) == checks.overflows(page) == checks.contrast(page) == []
    assert checks.accessibility(page) == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("<script>console.error('oh')</script>", "console says: oh"),
        ("<script>throw new Error('oh')</script>", "raised"),
        ("<img src='none.png' alt=''>", "404"),
        ("<img src='http://127.0.0.2:9/x.png' alt=''>", "another host: http://127.0.0.2:9/x.png"),
        ("<script src='https://example.org/x.js'></script>", "another host: https://example.org"),
    ],
)
def test_errors_and_requests_are_noted(body, said, site, page):
    watch = opened(site, page, body)
    assert any(said in fault for fault in watch.faults), watch.faults


def test_two_equal_ids_are_found(site, page):
    opened(site, page, "<p id='x'></p><p id='x'></p>")
    assert checks.duplicates(page) == ["two elements have the id 'x'"]


def test_an_icon_that_nothing_draws_is_found(site, page):
    opened(
        site, page, "<i class='fa-solid fa-sun'></i><i style='--icon: url()' class='fa-moon'></i>"
    )
    assert checks.icons(page) == ["no icon is drawn for 'fa-solid fa-sun'"]


@pytest.mark.parametrize("width", [2000, 900, 500, 350])
def test_a_page_that_is_too_wide_is_found_at_the_widths_where_it_is(width, site, page):
    opened(site, page, f"<div class='wide' style='width: {width}px; height: 9px'></div>")
    at = [int(fault.split()[1]) for fault in checks.overflows(page)]
    assert at == [w for w in checks.WIDTHS if w < width + 8]


def test_what_scrolls_by_itself_is_no_overflow(site, page):
    opened(site, page, "<div style='overflow-x: auto'><p style='width: 2000px'>x</p></div>")
    assert checks.overflows(page) == []


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ("<img src='data:image/gif;base64,R0lGODlhAQABAAAAACw='>", "image-alt"),
        ("<p style='color: #999; background: #fff'>pale</p>", "color-contrast"),
        ("<p>text</p><div style='background: #555'><p>text</p></div>", "color-contrast"),
        ("<p>text</p><div style='opacity: 0.4'><p>text</p></div>", "color-contrast"),
        ("<button></button>", "button-name"),
        ("<input type='text'>", "label"),
        ("<p style='color: #595959'>text</p><style>@media (prefers-color-scheme: dark) {p "
         "{background: #333}}</style>", "dark"),
    ],
)  # fmt: skip
def test_faults_of_accessibility_are_found(body, rule, site, page):
    opened(site, page, body)
    if rule == "dark":
        assert checks.contrast(page) == []
        page.emulate_media(color_scheme="dark")
        rule = "color-contrast"
    faults = checks.contrast(page) + checks.accessibility(page)
    assert [fault.split(":")[0] for fault in faults] == [rule]


def test_broken_links_and_anchors_are_found():
    pages = {
        "a.html": '<p id="x"></p><a href="b.html#y">1</a><a href="#x">2</a><a href="no.html">3</a>',
        "b/c.html": '<a href="../a.html#x">4</a><a href="../a.html#z">5</a><a href="d.txt">6</a>',
        "b.html": '<a name="y"></a><a href="https://example.org/">7</a>',
    }
    assert broken(pages, {*pages, "b/d.txt"}) == [
        "a.html: no.html leads to no file",
        "b/c.html: ../a.html#z leads to no place of that page",
    ]
