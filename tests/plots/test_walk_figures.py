"""plots/walk.py: the animation's steps are the trace's, and the page around it stays whole."""

import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from numba import cuda
from traced_example import cells, tiled_kernel, x_is_column_kernel, zeros

from tiled_matmul.kit.constants import with_constants
from tiled_matmul.microscope.cuda import trace
from tiled_matmul.plots import walk


def copy_kernel(source, target):
    i = cuda.grid(1)
    target[2 * i] = source[i]  # "<b>" & more


@pytest.fixture(scope="module")
def tiled():
    kernel = with_constants(tiled_kernel, TILE=3)
    return trace(kernel, (3, 3), (3, 3), zeros(9, 9), zeros(9, 9), zeros(9, 9))


@pytest.fixture(scope="module")
def naive():
    return trace(x_is_column_kernel, 1, (16, 16), zeros(16, 16), zeros(16, 16), zeros(16, 16))


def test_a_phase_lights_what_was_touched_in_it(tiled):
    found = walk.tile_walk(tiled, (2, 1))
    assert [panel.name for panel in found.panels] == ["a", "b", "c", "sa", "sb"]
    assert len(found.steps) == 7
    accesses = tiled.accesses((2, 1))
    stores = [site.id for site in tiled.sites if site.op != "load"]
    ids = {array.name: array.id for array in tiled.arrays}
    for number, step in enumerate(found.steps):
        for place, panel in enumerate(found.panels):
            for kind in (0, 1):
                mine = accesses[
                    (accesses["phase"] == number)
                    & (accesses["array"] == ids[panel.name])
                    & (np.isin(accesses["site"], stores) == kind)
                ]
                touched = {divmod(element, panel.columns) for element in mine["element"].tolist()}
                assert cells(step.lit, place, kind) == touched


def test_captions_come_from_the_trace(tiled):
    load, use, *_, last = walk.tile_walk(tiled, (2, 1)).steps
    assert load.name == "Phase 0 of 6"
    assert load.words == (
        "9 threads load a[3:6, 0:3] and b[0:3, 6:9], store sa[0:3, 0:3] and sb[0:3, 0:3]."
    )
    assert [text for _, text in load.lines] == [
        "sa[y, x] = a[row, k0 + x]",
        "sb[y, x] = b[k0 + y, col]",
    ]
    assert use.words == "9 threads load sa[0:3, 0:3] and sb[0:3, 0:3], each element 3 times."
    assert last.words == "9 threads store c[3:6, 6:9]."


def test_without_barriers_a_step_is_a_line_of_one_warp(naive):
    found = walk.tile_walk(naive, warp=1)
    assert found.who == "x_is_column_kernel, block (0, 0), warp 1"
    assert found.title == "The warp loads 288 different elements, each 3.56 times on average"
    assert len(found.steps) == 17
    assert found.steps[3].words == (
        "32 lanes load a[2:4, 3], each element 16 times, load b[3, 0:16], each element twice."
    )
    assert found.steps[16].words == "32 lanes store c[2:4, 0:16]."


def test_a_is_left_of_c_and_b_above_it(tiled):
    a, b, c, *shared = walk.tile_walk(tiled).panels
    assert a.y == c.y and b.x == c.x and a.x < c.x and b.y < c.y
    assert a.cell == b.cell == c.cell
    for panel in shared:
        assert panel.x + panel.columns * panel.cell < b.x
        assert panel.y + panel.rows * panel.cell < a.y


def test_arrays_that_are_no_product_stand_in_rows():
    source, target = walk.tile_walk(trace(copy_kernel, 1, 32, zeros(32), zeros(64))).panels
    assert (source.rows, source.columns, target.rows, target.columns) == (1, 32, 2, 32)
    assert source.y == target.y and source.x + source.columns * source.cell < target.x
    assert target.x + target.columns * target.cell <= walk.WIDTH


def test_the_page_holds_the_steps_and_reads_as_html(tiled):
    found = walk.tile_walk(tiled, (1, 1))
    page = found._repr_html_()
    data = json.loads(re.search(r'class="walk-data">(.*?)</script>', page)[1])
    assert data["frames"] == [[list(box) for box in step.lit] for step in found.steps]
    assert data["panels"] == [[p.x, p.y, p.cell] for p in found.panels]
    assert page.count("<li>") == len(found.steps) == 7
    assert all(step.html() in page for step in found.steps)
    Balanced().feed(page)


def test_without_a_script_a_load_in_the_middle_is_shown(tiled):
    found = walk.tile_walk(tiled)
    page = found._repr_html_()
    assert found.still in (2, 4) and f'value="{found.still}"' in page
    still = found.steps[found.still]
    assert f'aria-live="polite">{still.html()}</div>' in page
    assert 'class="walk-controls" hidden' in page
    svg = ElementTree.fromstring(re.search(r"<svg.*?</svg>", page, re.DOTALL)[0])
    assert still.words in svg.get("aria-label") and svg.get("role") == "img"
    drawn = {
        (int(group.get("data-panel")), path.get("class")): path.get("d").count("z")
        for group in svg.iter("{http://www.w3.org/2000/svg}g")
        for path in group
        if path.get("class")
    }
    for number in range(len(found.panels)):
        for kind, name in enumerate(("walk-loaded", "walk-stored")):
            boxes = [box for box in still.lit if box[:2] == (number, kind)]
            assert drawn[number, name] == len(boxes)
        before = [b for step in found.steps[: found.still] for b in step.lit if b[0] == number]
        assert drawn[number, "walk-past"] == len(before)


def test_two_calls_give_the_same_bytes_and_two_walks_differ_in_their_mark(tiled):
    def mark(page):
        (found,) = set(re.findall(r'data-walk="(\w+)"', page))
        return found

    first, again = (walk.tile_walk(tiled)._repr_html_() for _ in range(2))
    other = walk.tile_walk(tiled, (1, 0))._repr_html_()
    assert first == again
    assert mark(first) != mark(other)
    assert not re.search(r'\bid="', first), "ids of two widgets on a page would clash"


def test_the_page_fetches_nothing_and_is_small(tiled, naive):
    for t in (tiled, naive):
        page = walk.tile_walk(t)._repr_html_()
        assert len(page) < 30_000
        other = r"\b(src|href)=|url\(|@import|fetch\(|https?://(?!www\.w3\.org/2000)"
        assert not re.search(other, page)


def test_what_the_source_says_is_escaped():
    page = walk.tile_walk(trace(copy_kernel, 1, 32, zeros(32), zeros(64)))._repr_html_()
    assert "# &quot;&lt;b&gt;&quot; &amp; more" in page and '# "<b>"' not in page


def test_the_text_alternative_tells_the_steps(tiled):
    text = repr(walk.tile_walk(tiled))
    assert text.startswith("Each element that is put into shared memory is read 3 times (tiled_")
    assert "Phase 6 of 6: 9 threads store c[0:3, 0:3]." in text
    line = next(site.line for site in tiled.sites if site.array == "c")
    assert f"    {line}  c[row, col] = acc" in text


def test_a_long_walk_says_what_it_leaves_out():
    t = trace(x_is_column_kernel, 1, (4, 4), zeros(4, 250), zeros(250, 4), zeros(4, 4))
    found = walk.tile_walk(t)
    assert len(found.steps) == 200 and found.steps[0].name == "Step 0 of 250"
    assert found.who.endswith("without the last 51 of 251 steps")


def test_regions_are_slices_where_they_can_be(tiled):
    a = next(array for array in tiled.arrays if array.name == "a")
    assert walk.region(a, np.arange(81)) == "a[0:9, 0:9]"
    assert walk.region(a, [10]) == "a[1, 1]"
    assert walk.region(a, [1, 10, 19]) == "a[0:3, 1]"
    assert walk.region(a, [0, 18, 36]) == "a[0:5:2, 0]"
    assert walk.region(a, [0, 10]) == "2 elements of a"
    assert walk.region(a, [0, 1, 3]) == "3 elements of a"


def test_what_was_not_followed_is_refused(tiled, naive):
    with pytest.raises(ValueError, match=r"block \(0, 3, 0\); blocks there are: \(0, 0, 0\)"):
        walk.tile_walk(tiled, (0, 3))
    with pytest.raises(ValueError, match="no warp 8; a block has warps 0 to 7"):
        walk.tile_walk(naive, warp=8)


class Balanced(HTMLParser):
    """Fails on an element that is not closed where it should be."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag != "input":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
