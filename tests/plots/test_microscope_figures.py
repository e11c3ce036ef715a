"""plots/microscope.py: figures of a trace count what the trace counts, and say so in their titles.

The kernels are small enough to be counted by hand: every number below was.
"""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from numba import cuda, float32, int32
from traced_example import TILE, filled, tiled_kernel, transpose_kernel, x_is_column_kernel, zeros

from tiled_matmul.kit.constants import with_constants
from tiled_matmul.microscope.cuda import hardware, trace
from tiled_matmul.plots import microscope, style


def x_is_row_kernel(a, b, c):
    row, col = cuda.grid(2)
    acc = float32(0)
    for k in range(a.shape[1]):
        acc += a[row, k] * b[k, col]
    c[row, col] = acc


def every_other_kernel(vector):
    i = cuda.grid(1)
    if i % 2 == 0:
        vector[i] = float32(i)


def histogram_kernel(x, bins):
    s = cuda.shared.array(4, int32)
    i = cuda.threadIdx.x
    if i < 4:
        s[i] = 0
    cuda.syncthreads()
    cuda.atomic.add(s, x[i], 1)
    cuda.syncthreads()
    if i < 4:
        bins[i] = s[i]


@pytest.fixture(scope="module")
def tiled():
    return trace(tiled_kernel, (2, 2), (TILE, TILE), zeros(8, 8), zeros(8, 8), zeros(8, 8))


@pytest.fixture(scope="module")
def x_is_row():
    return trace(x_is_row_kernel, 1, (16, 16), zeros(16, 16), zeros(16, 16), zeros(16, 16))


@pytest.fixture(scope="module")
def x_is_column():
    return trace(x_is_column_kernel, 1, (16, 16), zeros(16, 16), zeros(16, 16), zeros(16, 16))


@pytest.fixture(scope="module")
def transposes():
    return [
        trace(with_constants(transpose_kernel, WIDTH=w), 1, (32, 32), zeros(32, 32), zeros(32, 32))
        for w in (32, 33)
    ]


def title_of(figure):
    """The lines of a figure in bold and in the size of a title, joined."""
    return " ".join(
        re.findall(r"<text [^>]*font-weight: 700; font-size: 10px[^>]*>([^<]*)<", figure.svg)
    )


def site_line(t, array, op):
    return next(site.line for site in t.sites if (site.array, site.op) == (array, op))


def test_figures_are_drawn_as_paths_and_twice_the_same(tiled):
    first = microscope.timeline(tiled).svg
    assert first == microscope.timeline(tiled).svg and "<image" not in first


def test_rectangles_cover_exactly_the_true_cells():
    cells = np.random.default_rng(0).random((13, 17)) < 0.6
    covered = np.zeros(cells.shape, dtype=int)
    for row, column, rows, columns in microscope.rectangles(cells):
        covered[row : row + rows, column : column + columns] += 1
    np.testing.assert_array_equal(covered, cells)
    assert microscope.rectangles(np.ones((3, 5), dtype=bool)) == [(0, 0, 3, 5)]


def warp_view(t, **request):
    return microscope.warp_views([microscope.find_request(t, **request)], [""])


def test_a_warp_of_rows_asks_for_a_sector_each(x_is_row):
    figure = warp_view(x_is_row, array="a", nth=3)
    assert "32 lanes ask for 16 sectors" in title_of(figure)
    assert "lane 0 at a[0, 3] and lane 31 at a[15, 3]" in figure.alt
    # 16 elements wanted, and 7 more come with each.
    assert filled(figure, style.A) == 16 * 8


def test_a_warp_of_columns_asks_for_neighbours(x_is_column):
    figure = warp_view(x_is_column, array="b")
    assert "32 lanes ask for 2 sectors" in title_of(figure)
    assert filled(figure, style.B) == 16


def test_part_of_a_warp_is_drawn_as_that():
    t = trace(every_other_kernel, 1, 40, zeros(40))
    figure = warp_view(t, warp=1)
    assert "4 lanes store to 1 sector" in title_of(figure)
    assert "lane 0 at vector[32] and lane 6 at vector[38]" in figure.alt


def test_banks_that_are_asked_twice_are_faults(transposes):
    plain, padded = (
        microscope.find_request(t, line=site_line(t, "tile", "load"), array="tile")
        for t in transposes
    )
    conflict = microscope.warp_views([plain], [""])
    assert "32 lanes, 1 bank: 32 wavefronts" in title_of(conflict)
    assert filled(conflict, style.FAULT) == 32
    free = microscope.warp_views([padded], [""])
    assert "32 lanes, 32 banks: 1 wavefront" in title_of(free)
    assert filled(free, style.FAULT) == 0 and filled(free, style.A) == 32
    both = microscope.warp_views([plain, padded], ["32 columns", "33 columns"])
    assert "One access of a warp: 32 wavefronts or 1 wavefront" in title_of(both)
    assert "32 columns: 32 wavefronts" in both.svg and "33 columns: 1 wavefront" in both.svg


def shared_request(elements, width, op="load", lanes=range(32)):
    """Return a request of `lanes` for `elements` of `width` bytes, as far as colours ask."""
    addresses = tuple(width * element for element in elements)
    site = SimpleNamespace(op=op)
    return SimpleNamespace(site=site, width=width, lanes=tuple(lanes), addresses=addresses)


@pytest.mark.parametrize(
    ("elements", "width", "op", "red"),
    [
        (range(32), 8, "load", 0),
        (range(0, 64, 2), 8, "load", 32),
        # Over the whole warp each bank holds two words or more, but each part is served alone.
        ([16 * (i // 16) + i % 16 for i in range(32)], 8, "store", 0),
        ([4 * (i % 8) for i in range(32)], 16, "load", 8),
        ([9 * (i % 8) for i in range(32)], 16, "load", 0),
        # Both halves of the warp want the same elements, but not in pairs, and a store never.
        ([i % 16 for i in range(32)], 8, "load", 0),
        # Pairs want the same, so halves of a load go together, and 16 elements fill all banks.
        ([i // 2 for i in range(32)], 8, "load", 0),
        # Together they are 17 elements, in two halves of 16 lanes that meet in no bank; but pairs
        # go together, and then elements 0 and 16 want the same bank.
        ([i // 2 if i < 30 else 16 for i in range(32)], 8, "load", 2),
        ([i // 2 if i < 30 else 16 for i in range(32)], 8, "store", 0),
    ],
)
def test_wide_elements_are_red_where_their_part_of_the_warp_conflicts(elements, width, op, red):
    assert len(microscope.crowded(shared_request(elements, width, op))) == red


@pytest.mark.parametrize("width", [1, 4, 8, 16])
@pytest.mark.parametrize("op", ["load", "store"])
def test_something_is_red_exactly_where_the_trace_counts_a_conflict(width, op):
    random = np.random.default_rng(width)
    seen = set()
    for below in (8, 16, 33, 64, 200) * 12:
        lanes = np.flatnonzero(random.random(32) < random.choice([0.3, 1.0]))
        if not lanes.size:
            continue
        elements = random.integers(0, below, lanes.size) // random.choice([1, 2, 4])
        request = shared_request(elements.tolist(), width, op, lanes.tolist())
        none = np.zeros(lanes.size, dtype=int)
        loads = np.full(lanes.size, op == "load")
        counted = hardware.wavefronts(none, lanes, width * elements, none + width, loads, 1)
        assert bool(microscope.crowded(request)) == bool(counted[1][0])
        seen.add(bool(counted[1][0]))
    assert seen == {False, True}


def test_the_timeline_counts_what_is_read_again(tiled, transposes, x_is_row):
    figure = microscope.timeline(tiled)
    assert figure.alt.startswith("No phase both stores to a shared array and loads from it. Each ")
    assert "element that is put into shared memory is read 4 times" in figure.alt
    assert "5 phases" in figure.alt and "16 threads" in figure.alt
    assert "phases 0, 2: load a, store sa, load b, store sb" in figure.svg
    assert "phase 4: store c" in figure.svg
    assert "is read once" in microscope.timeline(transposes[0]).alt
    # A block of 16 × 16 needs 16 × 16 elements of A and of B, each of them 16 times.
    naive = microscope.timeline(x_is_row).alt
    assert naive.startswith("The block loads 512 different elements, each 16 times")
    assert "8 warps" in naive


def test_atomic_operations_are_updates():
    x = np.array([0, 1, 1, 1] * 10, dtype=np.int32)
    t = trace(histogram_kernel, 1, 40, x, np.zeros(4, dtype=np.int32))
    figure = microscope.timeline(t)
    assert "is read once" in figure.alt and "40 threads" in figure.alt
    assert "phase 1: load x, update s" in figure.svg
    second = microscope.find_request(t, array="s", nth=1)
    assert "32 lanes, 2 banks: 1 wavefront" in microscope.warp_views([second], [""]).alt


def test_phases_start_together_behind_the_longest_warp():
    fields = [(name, int) for name in ("phase", "warp", "request")]
    rows = [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 2), (1, 1, 1), (1, 1, 1)]
    starts, ends, step = microscope._steps(np.array(rows, dtype=fields))
    assert starts.tolist() == [0, 3] and ends.tolist() == [2, 4]
    assert step.tolist() == [0, 1, 0, 3, 3, 3]


def test_a_long_timeline_says_what_it_leaves_out():
    t = trace(x_is_row_kernel, 1, (8, 4), zeros(8, 150), zeros(150, 4), zeros(8, 4))
    assert "the first 240 of 301 steps" in microscope.timeline(t).svg
    t = trace(tiled_kernel, 1, (4, 4), zeros(4, 200), zeros(200, 4), zeros(4, 4))
    shown = re.search(r"the first (\d+) of 101", microscope.timeline(t).svg)
    # 4 steps to load a tile, 8 to use it, and two barriers: 17 tiles fit 240 steps, no phase more.
    assert int(shown[1]) == 34


def test_reads_are_counted_between_stores():
    arrays = [SimpleNamespace(id=0, space="shared"), SimpleNamespace(id=1, space="global")]
    sites = [SimpleNamespace(id=0, op="store"), SimpleNamespace(id=1, op="load")]
    t = SimpleNamespace(arrays=arrays, sites=sites)

    def count(*touches):
        fields = [(name, int) for name in ("site", "array", "element")]
        return microscope.reads_per_store(t, np.array(list(touches), dtype=fields))

    store, read = (0, 0, 5), (1, 0, 5)
    assert count(store, read, read, store, read, read) == (2, 2)
    assert count(store, store, read) == (0, 1)
    assert count(read, read) is None
    assert count((0, 1, 5), (1, 1, 5)) is None
    # Another element was read before anything was stored to it.
    assert count((0, 0, 5), (1, 0, 5), (1, 0, 6)) == (1, 1)


def test_colours_follow_names_and_copies(tiled, transposes):
    by_name = {a.name: microscope.colors(tiled.arrays, tiled.sites)[a.id] for a in tiled.arrays}
    assert by_name == {
        "a": style.A, "b": style.B, "c": style.C, "sa": style.A, "sb": style.B
    }  # fmt: skip
    t = transposes[0]
    by_name = {a.name: microscope.colors(t.arrays, t.sites)[a.id] for a in t.arrays}
    assert by_name == {"src": style.A, "tile": style.A, "dst": style.C}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"line": 1}, r"at line 1; lines where it does: \d+"),
        ({"warp": 1}, "no warp 1; a block has warps 0 to 0"),
        ({"block": (2, 0)}, r"block \(2, 0, 0\); blocks there are: \(0, 0, 0\), \(1, 0, 0\)"),
        ({"array": "d"}, r"no array called 'd'; it has a \(global\)"),
        ({"nth": 99}, "no request 99; warp 0 of block .* makes 25"),
        ({"array": "c", "nth": 1}, "no request 1 for c; .* makes 1"),
    ],
)
def test_a_request_that_does_not_exist_is_refused(tiled, wrong, said):
    with pytest.raises(ValueError, match=said):
        microscope.find_request(tiled, **wrong)


def test_unknown_arrays_ops_blocks_and_names_are_refused(tiled):
    with pytest.raises(ValueError, match=r"no array called 'A'; it has a \(global\), .*sb"):
        microscope.find_request(tiled, array="A")
    with pytest.raises(ValueError, match=r"block \(0, 2, 0\)"):
        microscope.timeline(tiled, (0, 2))
    with pytest.raises(ValueError, match="1 requests and 2 names"):
        microscope.warp_views([microscope.find_request(tiled)], ["one", "two"])


def test_a_block_that_was_not_followed_is_refused():
    matrices = [zeros(8, 8) for _ in range(3)]
    t = trace(tiled_kernel, (2, 2), (TILE, TILE), *matrices, blocks=[(1, 1)])
    microscope.timeline(t, (1, 1))
    with pytest.raises(ValueError, match=r"block \(0, 0, 0\); blocks there are: \(1, 1, 0\)$"):
        microscope.timeline(t)
