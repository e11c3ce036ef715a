"""Figures to change: their stills are current, and pointer and keyboard change them."""

import re
from urllib.parse import parse_qs, urlsplit

import draw_stills
import pytest

from browser.conftest import BOOK
from tiled_matmul import ROOT
from tiled_matmul.explore.page import KINDS, STILLS

PICTURES = ROOT / "_artifacts" / "figures"
PAGES = [
    path.relative_to(BOOK).as_posix()
    for path in sorted(BOOK.rglob("*.html"))
    if "data-explore=" in path.read_text(encoding="utf-8")
]
EVERY_KIND = ("explorables.html", "intro.html")


@pytest.mark.parametrize("name", PAGES)
def test_the_stills_are_as_the_scripts_draw_them(name, book, page):
    page.goto(book + name)
    drawn = draw_stills.stills(page)
    assert drawn
    for still, text in drawn.items():
        path = STILLS / f"{still}.html"
        assert path.read_text(encoding="utf-8") == text, f"{path} is old: tools/draw_stills.py"


def test_without_scripts_a_page_has_the_stills(book, browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    shown = []
    for name in PAGES:
        page.goto(book + name)
        assert page.locator("figure.explore form").count() == 0
        figures = page.locator("figure.explore:has(.explore-picture svg)")
        shown += figures.evaluate_all("all => all.map((one) => one.id)")
    assert {*shown} == {path.stem for path in STILLS.iterdir()}
    context.close()


def opened(page, address):
    page.goto(address)
    figure = page.locator("#warp")
    return figure, figure.locator(".explore-said")


def test_a_figure_is_changed_by_pointer(book, page):
    figure, said = opened(page, f"{book}explorables.html")
    assert "4 sectors" in said.inner_text()
    figure.get_by_label("Example").select_option("neighbours a row apart")
    assert "32 sectors of 32 bytes, so 1024 bytes move: 13%" in said.inner_text()
    figure.get_by_label("Memory").select_option("shared")
    assert "16 wavefronts" in said.inner_text() or "32 wavefronts" in said.inner_text()
    figure.get_by_label("P", exact=True).fill("33")
    assert "1 wavefront, no bank conflict" in said.inner_text()
    figure.get_by_role("button", name="Reset").click()
    assert "4 sectors" in said.inner_text()


def test_a_figure_is_changed_by_keyboard_alone(book, page):
    figure, said = opened(page, f"{book}explorables.html")
    figure.get_by_label("Example").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Control+A")
    page.keyboard.type("lane * 2")
    assert "8 sectors" in said.inner_text()
    for key, count in (("ArrowUp", "8 sectors"), ("Tab", "8 sectors")):
        page.keyboard.press(key)
        assert count in said.inner_text()
    for _ in range(2):
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")  # 8 bytes an element
    assert "16 sectors" in said.inner_text()
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # Reset
    assert "4 sectors" in said.inner_text()


def test_settings_are_in_the_address_and_come_back_from_it(book, page, browser):
    figure, said = opened(page, f"{book}explorables.html")
    figure.get_by_label("Index").fill("tx * P + (tx ^ ty)")
    figure.get_by_label("Memory").select_option("shared")
    place = urlsplit(page.url).fragment
    assert place.startswith("warp?")
    assert parse_qs(place.partition("?")[2])["index"] == ["tx * P + (tx ^ ty)"]
    other = browser.new_page()
    other.goto(page.url)
    assert other.locator("#warp .explore-said").inner_text() == said.inner_text()
    assert other.locator("#warp").get_by_label("Index").input_value() == "tx * P + (tx ^ ty)"
    assert other.evaluate("document.querySelector('#warp').getBoundingClientRect().top") < 300
    other.close()


@pytest.mark.parametrize(
    ("field", "value", "alert"),
    [
        ("Index", "tx +", "“tx +”: it ends too early"),
        ("P", "", "a whole number is wanted"),
        ("P", "0", "0 is not between 1 and 65536"),
    ],
)
def test_a_wrong_setting_is_said_and_the_picture_stays(field, value, alert, book, page):
    figure, said = opened(page, f"{book}explorables.html")
    before = figure.locator(".explore-picture").inner_html()
    figure.get_by_label(field, exact=True).fill(value)
    assert alert in figure.get_by_role("alert").inner_text()
    assert figure.locator(".explore-picture").inner_html() == before
    figure.get_by_role("button", name="Reset").click()
    assert figure.locator(".explore-alert").text_content() == ""


def test_a_wrong_address_is_said(book, page):
    figure, said = opened(page, f"{book}explorables.html#warp?space=nowhere")
    assert "nowhere" in figure.get_by_role("alert").inner_text()


def test_the_alternative_text_follows(book, page):
    figure, said = opened(page, f"{book}explorables.html")
    figure.get_by_label("Example").select_option("one element for all")
    svg = figure.locator("svg")
    assert svg.get_attribute("aria-label") == said.inner_text()
    assert "1 different element" in said.inner_text()


def test_play_goes_on_by_itself_and_pauses(book, page):
    page.goto(f"{book}explorables.html")
    figure = page.locator("#order")
    said, play = figure.locator(".explore-said"), figure.locator(".explore-play")
    assert "Wave 2 of 4" in said.inner_text()
    page.wait_for_timeout(1500)
    assert "Wave 2 of 4" in said.inner_text()  # nothing moves before somebody asks for it
    play.focus()
    page.keyboard.press("Enter")
    assert play.inner_text() == "Pause" and said.get_attribute("aria-live") == "off"
    page.wait_for_function("document.querySelector('#order input[name=wave]').value === '4'")
    page.wait_for_function("document.querySelector('.explore-play').textContent === 'Play'")
    assert "Wave 4 of 4" in said.inner_text() and said.get_attribute("aria-live") == "polite"
    page.keyboard.press("Enter")
    assert "Wave 1 of 4" in said.inner_text()
    page.keyboard.press("Enter")
    page.wait_for_timeout(1500)
    assert "Wave 1 of 4" in said.inner_text()


def test_two_pages_have_every_kind_of_figure(book):
    texts = "".join((BOOK / name).read_text(encoding="utf-8") for name in EVERY_KIND)
    assert {*re.findall(r'data-explore="(\w+)"', texts)} == {*KINDS}


@pytest.mark.parametrize("name", EVERY_KIND)
def test_every_example_is_a_setting_that_the_figure_takes(name, book, page):
    page.goto(book + name)
    for figure in page.locator("figure.explore").all():
        box = figure.locator("select").first
        names = [one.inner_text() for one in box.locator("option").all()][1:]
        assert len(names) == len(set(names)) >= 5
        sentences = set()
        for name in names:
            box.select_option(name)
            assert box.input_value() == name
            assert figure.locator(".explore-alert").text_content() == ""
            sentences.add(figure.locator(".explore-said").inner_text())
        assert len(sentences) >= len(names) - 1  # a pad and a swizzle cost the same


@pytest.mark.parametrize(
    ("name", "dark"),
    [(name, False) for name in PAGES] + [(name, True) for name in EVERY_KIND],
)
def test_each_figure_is_driven_by_keyboard_alone(name, dark, book, page):
    """Every field is reached, an arrow key changes the figure, Reset brings the first one back."""
    page.emulate_media(color_scheme="dark" if dark else "light")
    page.goto(book + name)
    for root in page.locator("figure.explore").evaluate_all("all => all.map((one) => one.id)"):
        figure = page.locator(f"#{root}")
        said = figure.locator(".explore-said")
        fields = figure.locator("input, select, summary, button:not([tabindex])")
        first, seen = said.inner_text(), set()
        fields.first.focus()
        page.keyboard.press("ArrowDown")
        if said.inner_text() == first:  # it was the last of the list
            page.keyboard.press("ArrowUp")
        assert said.inner_text() != first and urlsplit(page.url).fragment.startswith(f"{root}?")
        for _ in range(fields.count()):
            seen.add(
                page.evaluate("document.activeElement.id || document.activeElement.textContent")
            )
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline == "solid", f"{root}: nothing shows where the focus is"
            page.keyboard.press("Tab")
        assert len(seen) == fields.count()
        figure.get_by_role("button", name="Reset").focus()
        page.keyboard.press("Enter")
        assert said.inner_text() == first
        PICTURES.mkdir(parents=True, exist_ok=True)
        figure.screenshot(path=PICTURES / f"{root}-{'dark' if dark else 'light'}.png")


def test_a_part_that_is_pointed_at_sets_its_field(book, page):
    page.goto(f"{book}explorables.html")
    figure = page.locator("#fragments")
    figure.locator('[data-pick="lane=30"]').first.hover()
    assert figure.get_by_label("Lane", exact=True).input_value() == "30"
    assert "Lane 30 holds 8 elements" in figure.locator(".explore-said").inner_text()
    page.goto(f"{book}intro.html")
    climb = page.locator("#climb")
    climb.locator('[data-pick="step=8"]').hover()
    assert "Step 8 of 12" in climb.locator(".explore-said").inner_text()


def test_the_climb_leads_to_the_chapters_and_has_the_numbers_of_the_table(book, page):
    page.goto(f"{book}intro.html")
    rows = page.locator(".tiled-ideas tbody tr:has(svg)")
    table = [
        [row.locator("td").nth(place).text_content().strip() for place in (1, 3)]
        for row in rows.all()
    ]
    climb = page.locator("#climb")
    assert len(table) == int(climb.get_by_label("Step", exact=True).get_attribute("max"))
    for number, (idea, share) in enumerate(table, 1):
        climb.get_by_label("Step", exact=True).fill(str(number))
        said = climb.locator(".explore-said").inner_text()
        assert idea in said
        shown = float(share.rstrip("%"))
        assert (
            abs(float(said.split("GPU, " if "GPU, " in said else "CPU, ")[1].split("%")[0]) - shown)
            <= 0.5
        )
        link = climb.get_by_role("link").get_attribute("href")
        assert (BOOK / link).exists()
        assert climb.locator("pre").inner_text().strip()


def test_the_race_shows_what_is_wrong(book, page):
    page.goto(f"{book}explorables.html")
    figure = page.locator("#race")
    said = figure.locator(".explore-said")
    for name, words in (
        ("both barriers", "no race. At the end of this order all sums are right."),
        ("no second barrier, last thread first", "32 elements of the tiles"),
        ("no first barrier", "At the end of this order 15 of 16 sums are wrong"),
    ):
        figure.get_by_label("Example").select_option(name)
        assert words in said.inner_text()
    figure.get_by_label("Example").select_option("no first barrier, half way")
    assert figure.locator(".explore-code .gone").inner_text().strip() == "cuda.syncthreads()"
    assert figure.locator(".explore-code .raced").count() == 3


def test_a_finger_has_buttons_for_numbers_and_few_settings_above_the_picture(book, browser):
    context = browser.new_context(
        has_touch=True, is_mobile=True, viewport={"width": 390, "height": 844}
    )
    page = context.new_page()
    page.goto(f"{book}explorables.html")
    figure = page.locator("#tile")
    # With the figure's top at the screen's, the whole sentence is in sight, and where it changes.
    parts = [figure.locator(part).bounding_box() for part in ("svg", ".explore-said")]
    picture, said = (part["y"] - figure.bounding_box()["y"] for part in parts)
    assert said < picture < 650 < 844
    rows = figure.get_by_label("M", exact=True)
    assert rows.is_hidden()
    figure.get_by_text("More settings").tap()
    assert rows.evaluate("(one) => getComputedStyle(one).fontSize") == "16px"
    figure.get_by_role("button", name="more M", exact=True).tap()
    assert rows.input_value() == "4097" and "M=4097" in page.url
    for _ in range(2):
        figure.get_by_role("button", name="less Buffers").tap()
    assert figure.get_by_label("Buffers", exact=True).input_value() == "1"  # and not 0
    context.close()


def test_a_pointer_of_a_mouse_has_all_settings_and_no_such_buttons(book, page):
    page.goto(f"{book}explorables.html")
    figure = page.locator("#tile")
    assert figure.get_by_label("M", exact=True).is_visible()
    assert figure.locator(".explore-number button:visible").count() == 0
