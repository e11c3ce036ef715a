"""Predictions, progress, cards of terms and turning pages, as a reader uses them."""

import json
import re

import pytest

from browser.conftest import BOOK

CHAPTER = "chapters/05_shared_memory.html"


@pytest.fixture
def chapter(book, page):
    page.goto(book + CHAPTER)
    return page


def kept(page):
    return page.evaluate("JSON.parse(localStorage.getItem('tiled-matmul') ?? '{}')")


def test_a_prediction_is_committed_judged_and_kept(chapter):
    first = chapter.locator("form.predict").first
    answer = chapter.locator("details:has(summary b)").first
    assert not answer.evaluate("one => one.open")
    first.get_by_label("I predict").fill("2 and 16, about")
    chapter.keyboard.press("Enter")
    said = chapter.locator(".predict-said").first
    assert "You said: 2 and 16, about." in said.inner_text()
    assert "2 is right; 16 is 2 times too small." in said.inner_text()
    assert answer.evaluate("one => one.open") and first.is_hidden()
    (one,) = kept(chapter)["predictions"].values()
    assert one["page"] == "chapters/05_shared_memory" and one["off"] == 2
    chapter.reload()
    assert "16 is 2 times too small" in chapter.locator(".predict-said").first.inner_text()
    assert chapter.locator("form.predict").first.is_hidden()
    assert not chapter.locator("details:has(summary b)").first.evaluate("one => one.open")


def test_a_prediction_in_words_is_shown_beside_the_answer(chapter):
    form = chapter.locator("form.predict").nth(1)
    form.get_by_label("I predict").fill("all of them")
    form.get_by_role("button").click()
    assert (
        chapter.locator(".predict-said").nth(1).inner_text()
        == "You said: all of them. Compare it with the answer."
    )
    empty = chapter.locator("form.predict").nth(2)
    empty.get_by_role("button").click()
    assert empty.is_visible()
    assert len(kept(chapter)["predictions"]) == 1


def test_every_prediction_of_the_book_has_a_form(book, page):
    for path in sorted((BOOK / "chapters").glob("*.html")):
        asked = len(re.findall(r"<summary>\s*<b>Predict", path.read_text(encoding="utf-8")))
        page.goto(f"{book}chapters/{path.name}")
        assert page.locator("form.predict").count() == asked, path.name


@pytest.mark.parametrize(
    ("said", "answer", "verdict"),
    [
        ("32", "32", "32 is right."),
        ("31.9", "32", "31.9 is right."),
        ("16", "32", "16 is 2 times too small."),
        ("10,240", "5.12 thousand", "10,200 is 2 times too large."),
        ("3 million", "1.5 million", "3,000,000 is 2 times too large."),
        ("0", "3", "0 is 3 off 3."),
        ("-2", "2", "-2 is 4 off 2."),
        ("1, 2", "1", "Compare it with the answer."),
        ("many", "12", "Compare it with the answer."),
        ("5", "no number", "Compare it with the answer."),
    ],
)
def test_how_far_off_a_prediction_is(said, answer, verdict, chapter):
    details = chapter.locator("details:has(summary b)").first
    chapter.evaluate("localStorage.clear()")
    details.evaluate(
        "(one, answer) => one.querySelectorAll('strong').forEach((each, i) => "
        "i ? each.remove() : (each.textContent = answer))",
        answer,
    )
    form = chapter.locator("form.predict").first
    form.get_by_label("I predict").fill(said)
    form.get_by_role("button").click()
    shown = chapter.locator(".predict-said").first.inner_text()
    assert shown == f"You said: {said}. {verdict}".strip()


def test_progress_is_shown_exported_erased_and_imported(book, page, tmp_path):
    page.goto(book + CHAPTER)
    form = page.locator("form.predict").first
    form.get_by_label("I predict").fill("2, 32")
    form.get_by_role("button").click()
    page.locator(".prev-next-area").scroll_into_view_if_needed()
    page.wait_for_function("localStorage.getItem('tiled-matmul').includes('\"read\":{\"chap')")
    page.goto(f"{book}progress.html")
    row = page.locator("tr:has(a[href*='05_shared'])")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", row.locator(".mine").nth(0).inner_text())
    assert re.fullmatch(r"1 of \d+", row.locator(".mine").nth(1).inner_text())
    with page.expect_download() as download:
        page.get_by_role("button", name="Export", exact=True).click()
    exported = tmp_path / "mine.json"
    download.value.save_as(exported)
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Erase").click()
    assert page.locator("#progress-said").inner_text() == "Erased." and not kept(page)
    assert row.locator(".mine").nth(1).inner_text() == ""
    page.locator("#progress-import").set_input_files(exported)
    page.wait_for_function(
        "document.querySelector('#progress-said').textContent.includes('1 pred')"
    )
    assert row.locator(".mine").nth(1).inner_text().startswith("1 of")
    marks = tmp_path / "marks.json"
    names = [("05.1", "PASS"), ("05.2", "WRONG"), ("05.3", "PASS")]
    report = {"path": "x", "exercises": [{"exercise": n, "status": s} for n, s in names]}
    marks.write_text(json.dumps([report]))
    page.locator("#progress-import").set_input_files(marks)
    page.wait_for_function("document.querySelector('#progress-said').textContent.includes('3 ex')")
    assert row.locator(".mine").nth(2).inner_text() == "2 of 3"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "3", "[{}]", '{"read": {}, "predictions": {"a": 1}, "exercises": {}}']
)
def test_what_is_no_progress_is_refused_and_nothing_is_lost(text, book, page, tmp_path):
    page.goto(book + CHAPTER)
    page.evaluate(
        """localStorage.setItem('tiled-matmul', '{"read": {"chapters/x": "2026-01-01"}}')"""
    )
    page.goto(f"{book}progress.html")
    before = kept(page)
    (tmp_path / "odd.json").write_text(text)
    page.locator("#progress-import").set_input_files(tmp_path / "odd.json")
    page.wait_for_function(
        "document.querySelector('#progress-said').textContent.includes('neither')"
    )
    assert "odd.json" in page.locator("#progress-said").inner_text() and kept(page) == before


@pytest.mark.parametrize("stored", ["no JSON", "[]", "3"])
def test_what_something_else_stored_does_not_stop_a_page(stored, book, page):
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(book + CHAPTER)
    page.evaluate("(text) => localStorage.setItem('tiled-matmul', text)", stored)
    page.reload()
    assert page.locator("form.predict").first.is_visible() and not errors


def test_a_terms_card_shows_on_hover_and_on_focus_and_goes_with_escape(chapter):
    link = chapter.locator(".bd-article a[href*='glossary.html#multiprocessor']").first
    card = chapter.locator("#term-card")
    link.hover()
    card.wait_for(state="visible")
    assert "multiprocessor" in card.inner_text() and link.get_attribute("aria-describedby")
    card.hover()  # it stays while the pointer is over it
    chapter.wait_for_timeout(400)
    assert card.is_visible()
    chapter.keyboard.press("Escape")
    assert card.is_hidden() and not link.get_attribute("aria-describedby")
    chapter.mouse.move(0, 0)
    link.focus()
    card.wait_for(state="visible")
    box = card.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 1400
    link.blur()
    card.wait_for(state="hidden")


def test_a_finger_opens_a_terms_card_first_and_follows_the_link_second(book, browser):
    context = browser.new_context(has_touch=True, viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.goto(book + CHAPTER)
    link = page.locator(".bd-article a[href*='glossary.html#multiprocessor']").first
    link.tap()
    card = page.locator("#term-card")
    card.wait_for(state="visible")
    assert "Tap the word again" in card.inner_text() and page.url.endswith(CHAPTER)
    box = card.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390
    page.locator(".bd-article h1").tap()
    card.wait_for(state="hidden")
    link.tap()
    card.wait_for(state="visible")
    link.tap()
    page.wait_for_url("**/glossary.html#multiprocessor")
    context.route("**/terms.js", lambda route: route.abort())
    page.goto(book + CHAPTER)
    link.tap()  # there is no card to open
    page.wait_for_url("**/glossary.html#multiprocessor")
    context.close()


def test_every_link_to_a_term_has_its_card(book, page):
    page.goto(f"{book}glossary.html")
    script = (BOOK / "_static" / "reader" / "terms.js").read_text(encoding="utf-8")
    terms = json.loads(script.removeprefix("globalThis.Terms = ").removesuffix(";\n"))
    asked = set()
    for path in BOOK.rglob("*.html"):
        asked |= set(re.findall(r'glossary\.html#([\w-]+)"', path.read_text(encoding="utf-8")))
    asked = {place for place in asked if place != "glossary"}
    assert len(asked) > 40 and not asked - set(terms)
    assert all(title and 20 < len(text) <= 320 for title, text in terms.values())


def test_arrows_turn_pages_unless_something_takes_them(book, page):
    page.goto(book + CHAPTER)
    page.locator("form.predict input").first.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(200)
    assert page.url.endswith(CHAPTER)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Alt+ArrowRight")
    assert page.url.endswith(CHAPTER)
    page.evaluate("scrollTo({top: 2000, behavior: 'instant'})")
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**/06_banks.html")
    assert page.evaluate("scrollY") == 0
    page.keyboard.press("ArrowLeft")
    page.wait_for_url("**/05_shared_memory.html")
    page.wait_for_function("scrollY === 2000")  # where it was left
    page.goto(book + CHAPTER)
    assert page.evaluate("scrollY") == 0


def test_a_walk_in_sight_takes_the_arrows(book, page):
    page.goto(book + CHAPTER)
    slider = page.locator(".walk-slider").first
    slider.scroll_into_view_if_needed()
    before = int(slider.input_value())
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert int(slider.input_value()) == before + 2 and page.url.endswith(CHAPTER)
    assert slider.evaluate("one => one === document.activeElement")


def test_the_themes_buttons_keep_the_focus(book, page):
    page.goto(book + CHAPTER)
    for name in (".theme-switch-button", ".sidebar-toggle"):
        button = page.locator(f".bd-header-article {name}").first
        button.focus()
        page.keyboard.press("Enter")
        page.wait_for_timeout(300)
        assert button.evaluate("one => one === document.activeElement"), name


def test_from_disk_all_of_it_works_too(browser):
    page = browser.new_page()
    page.goto((BOOK / CHAPTER).as_uri())
    form = page.locator("form.predict").first
    form.get_by_label("I predict").fill("2, 32")
    form.get_by_role("button").click()
    assert "32 is right" in page.locator(".predict-said").first.inner_text()
    page.locator(".bd-article a[href*='glossary.html#multiprocessor']").first.focus()
    page.locator("#term-card").wait_for(state="visible")
    page.close()
