"""cuda_split_k: right at any shape and any number of parts, which are added up in their order."""

import math
import random

import numpy as np
import pytest
import torch

from tiled_matmul.check import assert_matmul, poison
from tiled_matmul.dispatch.splits import COSTS, Job, pick
from tiled_matmul.kit.launch import launch
from tiled_matmul.kit.settings import Setting, cover
from tiled_matmul.ladder import cuda_split_k
from tiled_matmul.machine import backend
from tiled_matmul.measure import drawn

SMALL = Setting(32, 32, 16, 16, 32, 4, 4, max_registers=80)
DEVICE = "cuda" if backend.select().on_gpu else "cpu"


def operands(m, n, k, beyond=0):
    """Return a, b and out; b begins `beyond` elements after an address that a four could have."""
    numbers = torch.Generator().manual_seed(m + n + k)
    a = torch.randn(m, k, generator=numbers).to(DEVICE)
    b = torch.randn(k * n + beyond, generator=numbers).to(DEVICE)[beyond:].view(k, n)
    out = torch.empty(m, n, device=DEVICE)
    poison(out)
    return a, b, out


@pytest.mark.parametrize(
    ("shape", "splits"),
    [
        ((37, 40, 50), 1),  # rows of aligned fours
        ((33, 36, 67), 3),
        ((34, 39, 19), 1),  # single elements
        ((3, 33, 70), 5),
        ((1, 1, 1), 1),
    ],
)
def test_ragged_shapes_are_right_in_any_number_of_parts(shape, splits):
    a, b, out = operands(*shape)
    assert cuda_split_k.matmul(a, b, out=out, setting=SMALL, splits=splits) is out
    assert_matmul(out, a, b)


def test_a_view_whose_rows_begin_between_fours_is_right():
    a, b, out = operands(5, 8, 20, beyond=1)
    assert b.data_ptr() % 16
    assert_matmul(cuda_split_k.matmul(a, b, out=out, setting=SMALL, splits=2), a, b)


@pytest.mark.parametrize("splits", [1, 2])
def test_rows_of_b_may_be_padded_first(splits):
    a, b, out = operands(5, 7, 20)
    cuda_split_k.matmul(a, b, out=out, setting=SMALL, splits=splits, padded=True)
    assert_matmul(out, a, b)


@pytest.mark.parametrize("n", [8, 7])
def test_what_is_not_finite_stays_in_its_row_and_column(n):
    a, b, out = operands(6, n, 18)
    a[5, 17], b[17, n - 1] = math.inf, math.nan
    cuda_split_k.matmul(a, b, out=out, setting=SMALL, splits=2)
    finite = torch.isfinite(out)
    assert finite[:5, : n - 1].all() and not finite[5].any() and not finite[:, n - 1].any()


def test_the_rule_picks_when_nothing_is_said():
    a, b, out = operands(9, 12, 40)
    assert_matmul(cuda_split_k.matmul(a, b), a, b)
    assert_matmul(cuda_split_k.matmul(a, b, out=out, splits=2), a, b)


@pytest.mark.parametrize(
    ("parts", "total"),
    [
        ([1e8, 1.0, -1e8], 0.0),  # the 1 is lost beside 1e8
        ([1e8, -1e8, 1.0], 1.0),
        ([1.0, 1e8, -1e8], 0.0),
    ],
)
def test_parts_are_added_up_in_their_order(parts, total):
    out = torch.empty((1, 2), device=DEVICE)
    both = torch.tensor([[[x, 2.0, math.nan]] for x in parts], device=DEVICE)  # padded
    launch(cuda_split_k.sum_parts_kernel, (1, 1), (32, 1), both, out)
    assert out.tolist() == [[total, 6.0]]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"splits": 0}, ValueError, "splits must be at least 1 and at most .*, got 0"),
        ({"setting": SMALL, "splits": 4}, ValueError, "at most 3, got 4"),
        ({"setting": SMALL, "splits": 2.0}, TypeError, "splits must be an int, got 2.0"),
        ({"setting": (32, 32, 16)}, TypeError, r"must be a Setting or None, got \(32, 32, 16\)"),
        ({"setting": Setting(32, 32, 16, 16, 16, 4, 4, 80)}, ValueError, "do not fit together"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(options, error, message):
    a, b, out = operands(5, 7, 40)
    out.fill_(math.nan)
    with pytest.raises(error, match=message):
        cuda_split_k.matmul(a, b, out=out, **options)
    assert torch.isnan(out).all()


def test_operands_are_checked_as_elsewhere():
    a, b, _ = operands(4, 8, 8)
    with pytest.raises(TypeError, match="float64; this rung takes float32"):
        cuda_split_k.matmul(a.double(), b.double())
    with pytest.raises(ValueError, match="row-major"):
        cuda_split_k.matmul(a, b.T.contiguous().T)


def test_a_pick_can_be_launched_whatever_the_shape():
    draw = random.Random(5)
    chosen, padded = set(), set()
    for _ in range(300):
        m, n, k = (round(2 ** draw.uniform(0, 15)) for _ in range(3))
        even = n % 4 == 0
        choice = pick(Job(m, n, k, 132, even))
        assert 1 <= choice.splits <= cover(k, choice.setting.tile_k)
        assert not (even and choice.padded)
        chosen.add(choice.setting)
        padded.add(choice.padded)
    assert chosen == {costs.setting for costs in COSTS}  # none is there for nothing
    assert padded == {False, True}
    for costs in COSTS:
        for wide in (4, 1):
            assert costs.setting.split_constants(wide, True)["B_COPIES"] >= 1


def test_costs_are_near_what_was_measured():
    """Of products that the costs were not fitted to."""
    _, _, taken = drawn.load(drawn.SHAPES / "h200-float32.json")
    gaps = []
    for each in taken:
        p = each.product
        job = Job(p.m, p.n, p.k, 132, p.n % 4 == 0)
        least = min(c.microseconds(job, n) for c in COSTS for n in c.splits(job))
        gaps.append(abs(math.log(least / (each.ms["cuda_split_k"] * 1e3))))
    assert len(gaps) == drawn.COUNT_FLOAT32 and np.median(gaps) < 0.16


def test_tiles_that_threads_cannot_copy_one_by_one_are_refused():
    wide = Setting(64, 256, 8, 64, 128, 16, 16, max_registers=255)  # 64 threads
    assert wide.split_constants(4, True)["B_STEP"] == 1
    with pytest.raises(ValueError, match="64 threads do not copy these tiles of B"):
        wide.split_constants(1, True)


@pytest.mark.parametrize("cc", [(8, 0), (9, 0), (12, 0)])
@pytest.mark.parametrize("wide", [4, 1])
@pytest.mark.long
def test_it_compiles_without_a_gpu_and_keeps_its_sums_in_registers(cc, wide):
    from numba import types

    from tiled_matmul.kit.constants import with_constants
    from tiled_matmul.microscope.compiled import cuda as compiler

    pytest.importorskip("cuda.bindings", reason="no compiler for CUDA without numba-cuda[cu13]")
    flat, parts = (types.Array(types.float32, axes, "C") for axes in (1, 3))
    jobs = {}
    for number, costs in enumerate(COSTS):
        made = costs.setting.split_constants(wide, wide == 4)
        kernel = with_constants(
            cuda_split_k.cuda_split_k_kernel, max_registers=costs.setting.max_registers, **made
        )
        jobs[str(number)] = (kernel, flat, flat, parts, types.float32)
    try:
        made = compiler.compiled_all(jobs, cc)
    except compiler.NoCompiler as error:
        pytest.skip(str(error))
    for each in made.values():
        assert each.spilled_bytes <= (0 if wide == 4 else 96), each
        if wide == 4 and cc == (9, 0):  # where the settings were measured
            assert each.same_bank <= 1, each


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(1000, 1000, 1000), (257, 301, 4099), (40, 5752, 1561)])
def test_on_a_gpu_every_setting_is_right_and_gives_the_same_bits_again(shape):
    a, b, out = operands(*shape)
    for costs in COSTS:
        for splits in (1, 3):
            poison(out)
            cuda_split_k.matmul(a, b, out=out, setting=costs.setting, splits=splits)
            assert_matmul(out, a, b)
            again = cuda_split_k.matmul(a, b, setting=costs.setting, splits=splits)
            assert torch.equal(out, again)


def test_numpy_is_refused():
    with pytest.raises(TypeError, match="torch tensor"):
        cuda_split_k.matmul(np.ones((2, 2), np.float32), np.ones((2, 2), np.float32))
