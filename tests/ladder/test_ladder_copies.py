"""Rungs of chapters 8 and 9: fitting tiles, which one is picked, all edges, awaited copies."""

from dataclasses import replace

import pytest
import torch

from tiled_matmul.check import run_checked
from tiled_matmul.kit import launch
from tiled_matmul.kit.backend import select
from tiled_matmul.kit.constants import with_constants
from tiled_matmul.kit.variants import edited, matmul_with, without
from tiled_matmul.ladder import (
    cuda_async,
    cuda_best,
    cuda_double_buffer,
    cuda_split_k,
    cuda_unrolled,
    cuda_warp_tiles,
)
from tiled_matmul.ladder.cuda_async import rows_of_fours
from tiled_matmul.ladder.cuda_best import SETTINGS, Job, Setting, pick
from tiled_matmul.ladder.cuda_vectorised import fours
from tiled_matmul.microscope.cuda import watch
from tiled_matmul.problem import Problem

DEVICE = "cuda" if select().on_gpu else "cpu"
BUFFERS = {
    "cuda_double_buffer": cuda_double_buffer,
    "cuda_unrolled": cuda_unrolled,
    "cuda_warp_tiles": cuda_warp_tiles,
}
RUNGS = {**BUFFERS, "cuda_async": cuda_async, "cuda_best": cuda_best}
LARGE, MIDDLE, SMALL = SETTINGS[:3]
TINY = Setting(32, 32, 8, 16, 32, 4, 4, max_registers=128)  # two warps, for the microscope

every_setting = pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: f"{s.tile_m}x{s.tile_n}")


def inputs(shape, dtype="float32", kind="integers", seed=5):
    return Problem.parse(shape, dtype).inputs(seed, kind, DEVICE)


def shifted(tensor):
    """Return the same matrix, beginning one element into an allocation."""
    room = tensor.new_empty(tensor.numel() + 1)
    return room[1:].view(tensor.shape).copy_(tensor)


def ran(matmul, shape, **options):
    """Run a launcher under the microscope; return the trace, and whether the product is right."""
    watching = {"order": options.pop("order", "forward"), "seed": 1}
    a, b = inputs(shape)
    with watch(**watching) as traces:
        c = matmul(a, b, **options)
    (t,) = traces
    return t, torch.equal(c.double(), a.double() @ b.double())


# Settings


def test_the_constants_of_the_first_setting_by_hand():
    # 256 threads copy 32 rows of A's 8 columns at once, and 4 rows of B's 64 fours.
    assert LARGE.threads == 256
    assert LARGE.constants(True) == {
        **{"TILE_M": 128, "TILE_N": 256, "TILE_K": 8, "WARP_M": 32, "WARP_N": 128},
        **{"ROWS": 8, "COLUMNS": 16, "LANES_M": 4, "LANES_N": 8, "WARPS_N": 2, "A_ROW": 132},
        **{"A_STEP": 32, "B_STEP": 4, "A_COPIES": 4, "B_COPIES": 2, "C_FOURS": True},
    }
    assert LARGE.constants(False)["C_FOURS"] is False


def test_the_module_is_written_with_the_constants_of_the_first_setting():
    for name, value in LARGE.constants(True).items():
        assert getattr(cuda_best, name) == value, name
    assert cuda_best.THREADS == LARGE.threads
    assert cuda_best.cuda_best_kernel.targetoptions["max_registers"] == LARGE.max_registers


UNFIT = {  # tile_m, tile_n, tile_k, warp_m, warp_n, rows, columns; each fails in one place only
    "lanes of a warp": (16, 16, 2, 8, 16, 4, 16),
    "rows of a warp": (72, 32, 18, 36, 32, 8, 4),
    "quads in a thread's rows": (16, 16, 8, 16, 16, 2, 4),
    "quads in a thread's columns": (16, 16, 8, 16, 16, 4, 2),
    "an odd tile_k": (32, 128, 1, 32, 128, 8, 16),
    "warps in tile_m": (16, 16, 2, 64, 16, 4, 8),
    "warps in tile_n": (16, 16, 2, 16, 128, 4, 16),
    "threads in rows of A's tile": (16, 32, 12, 16, 32, 4, 4),
    "copies of A's tile": (16, 128, 2, 8, 128, 4, 8),
    "copies of B's tile": (16, 32, 2, 16, 32, 4, 4),
    "more columns than fours": (32, 256, 8, 32, 128, 16, 64),
}


@pytest.mark.parametrize("name", UNFIT)
def test_tiles_that_do_not_fit_are_quoted(name):
    setting = Setting(*UNFIT[name], max_registers=128)
    with pytest.raises(ValueError, match=rf"do not fit together: Setting\(tile_m={setting.tile_m}"):
        setting.constants(True)
    with pytest.raises(ValueError, match="do not fit together"):
        cuda_best.matmul(*inputs("4x4x4"), setting=setting)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"rows": 0}, ValueError, "rows must be at least 1, got 0"),
        ({"tile_k": -8}, ValueError, "tile_k must be at least 1, got -8"),
        ({"max_registers": 0}, ValueError, "max_registers must be at least 1, got 0"),
        ({"tile_m": 128.0}, TypeError, "tile_m must be an int, got 128.0"),
        (
            {"tile_m": 1024, "tile_k": 32},
            ValueError,
            "has 2048 threads; a GPU allows 1024",
        ),
    ],
)
def test_impossible_sizes_are_quoted(change, error, message):
    with pytest.raises(error, match=message):
        replace(LARGE, **change).constants(True)


@pytest.mark.parametrize("setting", [(128, 256, 8), "LARGE", {"tile_m": 128}, 0, Setting])
def test_a_setting_of_another_type_is_refused(setting):
    with pytest.raises(TypeError, match="setting must be a Setting or None, got "):
        cuda_best.matmul(*inputs("4x4x4"), setting=setting)


# Which setting is picked


@pytest.mark.parametrize(
    ("m", "n", "k", "multiprocessors", "even", "kernel", "setting"),
    [
        # 512 blocks for 132 multiprocessors, and for 16.
        (4096, 4096, 4096, 132, True, "cuda_best_kernel", LARGE),
        (1024, 1024, 4096, 16, True, "cuda_best_kernel", LARGE),
        (64, 64, 64, 132, True, "cuda_best_kernel", SMALL),
        # Few tiles for so many multiprocessors: K is split.
        (256, 256, 16384, 132, True, "cuda_split_k_kernel", MIDDLE),
        (1024, 1024, 1024, 132, True, "cuda_split_k_kernel", MIDDLE),
        # Rows without aligned fours.
        (4096, 4093, 4096, 132, False, "cuda_split_k_kernel", LARGE),
    ],
)
def test_the_kernel_and_its_tiles_fit_the_shape(
    m, n, k, multiprocessors, even, kernel, setting, monkeypatch
):
    for module in (cuda_best, cuda_split_k):
        monkeypatch.setattr(module, "multiprocessors", lambda: multiprocessors)
    assert pick(Job(m, n, k, multiprocessors, even)).setting is setting
    launches = launch.launched(cuda_best.matmul, torch.empty(m, k), torch.empty(k, n))
    first = launches[0][0].py_func
    first = getattr(first, "as_written", first)
    tile = first.__globals__["TILE_M"], first.__globals__["TILE_N"]
    assert (first.__name__, tile) == (kernel, (setting.tile_m, setting.tile_n))


def test_the_launcher_asks_how_many_multiprocessors_there_are(monkeypatch):
    assert select().on_gpu or launch.multiprocessors() == 132
    launched = []
    monkeypatch.setattr(cuda_best, "launch", lambda kernel, *rest: launched.append(rest[:2]))
    a, b = inputs("132x512x1")
    for count in (132, 1):
        monkeypatch.setattr(cuda_best, "multiprocessors", lambda count=count: count)
        cuda_best.matmul(a, b)
    picked = [pick(Job(132, 512, 1, count)).setting for count in (132, 1)]
    assert picked[0] is not picked[1]
    assert [threads for _, threads in launched] == [(each.threads, 1) for each in picked]


# Rows of fours


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32])
def test_rows_of_aligned_fours_are_taken_as_they_are(dtype):
    b = torch.ones((3, 8), dtype=dtype, device=DEVICE)
    assert fours(b) and rows_of_fours(b) is b


@pytest.mark.parametrize(("columns", "wide"), [(1, 4), (5, 8), (6, 8), (7, 8)])
def test_shorter_rows_are_filled_up_with_zeros(columns, wide):
    (_, b) = inputs(f"1x{columns}x3")
    made = rows_of_fours(b)
    assert fours(made) and made.is_contiguous() and made.shape == (3, wide)
    assert torch.equal(made[:, :columns], b) and not made[:, columns:].any()


@pytest.mark.parametrize("columns", [8, 7])
def test_rows_that_begin_between_fours_are_copied(columns):
    (_, b) = inputs(f"1x{columns}x3")
    crooked = shifted(b)
    made = rows_of_fours(crooked)
    assert not fours(crooked) and fours(made)
    assert torch.equal(made[:, :columns], b) and torch.equal(crooked, b)


# Right at every edge

# M, N and K of 1, and a tile's size along K, one less and one more; test_ladder.py has more.


@pytest.mark.sample(8)
@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (3, 1, -1), (1, 4, 0), (2, 7, 1)])
@every_setting
def test_every_setting_is_right_at_every_edge(setting, m, n, k):
    k = k if (m, n, k) == (1, 1, 1) else setting.tile_k + k
    run_checked(cuda_best.matmul, *inputs(f"{m}x{n}x{k}", kind="normal"), setting=setting)


@pytest.mark.sample(3)
@pytest.mark.parametrize("shape", ["1x4x4", "3x8x8", "5x12x20"])
@pytest.mark.parametrize("name", BUFFERS)
def test_fours_at_every_edge(name, shape):
    # Any other shape is multiplied by the rung that they hand it to.
    run_checked(RUNGS[name].matmul, *inputs(shape, kind="normal"))


@pytest.mark.parametrize("shape", ["3x4x15", "5x6x16", "2x7x17"])
def test_asynchronous_copies_at_every_edge(shape):
    run_checked(cuda_async.matmul, *inputs(shape, kind="normal"))


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", RUNGS)
def test_more_than_one_block_each_way(name):
    # Past the last whole tile of 128×128, 64×128 or 32×64, by one row and by four columns.
    shape = {"cuda_async": "65x132x4", "cuda_best": "33x68x4"}.get(name, "129x132x4")
    t, right = ran(RUNGS[name].matmul, shape)
    assert right and not t.findings and t.grid[:2] == (2, 2)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", ["300x500x700", "257x131x70", "1x300x200", "300x1x200"])
@every_setting
def test_every_setting_is_right_on_the_gpu(setting, shape):
    run_checked(cuda_best.matmul, *inputs(shape, kind="normal"), setting=setting)


@pytest.mark.parametrize(
    ("name", "which"),
    [("cuda_unrolled", "a"), ("cuda_async", "b"), ("cuda_best", "b"), ("cuda_best", "out")],
)
def test_a_matrix_that_begins_between_fours_is_right_all_the_same(name, which):
    a, b = inputs("3x8x4")
    given = {"a": a, "b": b, "out": a.new_empty((3, 8))}
    given[which] = shifted(given[which])
    c = RUNGS[name].matmul(**given)
    assert c is given["out"] and torch.equal(c.double(), a.double() @ b.double())


@pytest.mark.parametrize(
    ("shape", "crooked"), [("3x8x2", False), ("3x8x2", True), ("3x6x2", False)]
)
def test_nothing_is_stored_beside_c(shape, crooked):
    a, b = inputs(shape)
    size = a.shape[0] * b.shape[1]
    room = torch.full((3 * size + 4,), -7.0, device=DEVICE)
    start = size + (1 if crooked else -size % 4)
    out = room[start : start + size].view(a.shape[0], b.shape[1])
    assert fours(out) == (out.shape[1] % 4 == 0 and not crooked)
    cuda_best.matmul(a, b, out=out, setting=TINY)
    assert torch.equal(out.double(), a.double() @ b.double())
    out[:] = -7.0
    assert bool((room == -7.0).all())


@pytest.mark.parametrize("name", [*BUFFERS, "cuda_async"])
@pytest.mark.sample(4)
def test_int32_wraps_around(name):
    # 8·3·(2^30 + 1) = 24 + 6·2^32
    a = torch.full((4, 8), 2**30 + 1, dtype=torch.int32, device=DEVICE)
    b = torch.full((8, 4), 3, dtype=torch.int32, device=DEVICE)
    assert bool((RUNGS[name].matmul(a, b) == 24).all())


# Planted faults: what each wait, each barrier and each commit is there for


@pytest.mark.parametrize("name", BUFFERS)
@pytest.mark.sample(6)
def test_the_microscope_finds_nothing_in_fours(name):
    # Of the other rungs, and of the one below: test_ladder_microscope.py.
    t, right = ran(RUNGS[name].matmul, "9x12x12", order="reverse")
    assert t.name.startswith(f"{name}_kernel") and right and not t.findings, t.findings


RACE, UNREADY = {"race"}, {"race", "uninitialised read"}
NEEDED = {  # a line, which of them, and what is found without it
    **{name: [("syncthreads", 0, RACE)] for name in BUFFERS},
    "cuda_async": [
        ("syncthreads", 0, RACE),
        ("wait_copies", 0, UNREADY),
        ("commit_copies", 0, UNREADY),
        ("commit_copies", 1, UNREADY),
    ],
    "cuda_best": [
        (text, nth, RACE if text == "syncthreads" else UNREADY)
        for text in ("syncthreads", "wait_copies", "commit_copies")
        for nth in (0, 1)
    ],
}


def looked_at(name, variant, tiles):
    """Return the kinds of what is found in a variant, on so many tiles along K; is it right?"""
    step, options = (TINY.tile_k, {"setting": TINY}) if name == "cuda_best" else (None, {})
    k = (tiles - 1) * (step or RUNGS[name].TILE_K) + 4
    t, right = ran(matmul_with(RUNGS[name], variant), f"3x4x{k}", **options)
    return {finding.kind for finding in t.findings}, right


def kernel(name):
    return getattr(RUNGS[name], f"{name}_kernel")


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    ("name", "text", "nth", "found"), [(name, *each) for name in NEEDED for each in NEEDED[name]]
)
def test_every_barrier_wait_and_commit_is_needed(name, text, nth, found):
    assert looked_at(name, without(kernel(name), text, nth), 2)[0] == found


@pytest.mark.parametrize("name", NEEDED)
def test_no_barrier_wait_or_commit_is_left_out_above(name):
    for text in ("syncthreads", "wait_copies", "commit_copies"):
        count = sum(text == each for each, *_ in NEEDED[name])
        message = f"has {count} lines" if count else "has no line"
        with pytest.raises(ValueError, match=message):
            without(kernel(name), text, count)


@pytest.mark.parametrize("name", BUFFERS)
@pytest.mark.sample(4)
def test_one_buffer_is_too_few_for_one_barrier(name):
    found, _ = looked_at(name, without(kernel(name), "now = 1 - now"), 2)
    assert found == RACE


@pytest.mark.long
def test_two_buffers_are_too_few_for_two_tiles_ahead():
    variant = edited(kernel("cuda_async"), "fill += 1", "fill = 1 - fill")
    assert looked_at("cuda_async", variant, 3)[0] == UNREADY


def test_another_number_of_buffers_is_right():
    variant = with_constants(kernel("cuda_async"), STAGES=2, AHEAD=0)
    assert looked_at("cuda_async", variant, 2) == (set(), True)


def test_one_group_more_may_not_be_under_way_and_one_less_may():
    wait = "wait_copies(AHEAD)"
    late = edited(kernel("cuda_async"), wait, "wait_copies(AHEAD + 1)")
    assert looked_at("cuda_async", late, 1) == (UNREADY, False)
    early = edited(kernel("cuda_async"), wait, "wait_copies(AHEAD - 1)")  # it is only slower
    assert looked_at("cuda_async", early, 1) == (set(), True)


def test_tiles_that_do_not_change_places_give_another_product():
    # Nobody races: the first tile is multiplied again and again.
    variant = without(kernel("cuda_best"), "use, fill = fill, use")
    assert looked_at("cuda_best", variant, 2) == (set(), False)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("name", "limit", "wrong"),
    [
        *((name, limit, "(1 << 40)") for name in BUFFERS for limit in ("M - 1", "N - 4")),
        ("cuda_async", "max(M,", "max(1 << 40,"),
        ("cuda_async", "max(B_ROW,", "max(1 << 40,"),
        ("cuda_best", "max(M,", "max(1 << 40,"),
        ("cuda_best", "max(B_ROW,", "max(1 << 40,"),
    ],
)
def test_an_edge_that_is_not_looked_at_is_read_beyond(name, limit, wrong):
    variant = edited(kernel(name), limit, wrong)
    assert looked_at(name, variant, 1)[0] == {"out of bounds"}
