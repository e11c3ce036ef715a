"""triton_uneven: how wide loads are where rows begin anywhere, and that all of C is right there."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from tiled_matmul.check import assert_matmul, poison  # noqa: E402
from tiled_matmul.kit.layouts import layout_of  # noqa: E402
from tiled_matmul.kit.programs import launched  # noqa: E402
from tiled_matmul.ladder.triton_uneven import matmul  # noqa: E402
from tiled_matmul.machine.backend import select  # noqa: E402
from tiled_matmul.microscope.compiled.triton import tile_codes  # noqa: E402
from tiled_matmul.problem import LAYOUTS, as_layout  # noqa: E402

DEVICE = "cuda" if select().on_gpu else "cpu"
SMALL = {"block": (16, 32, 16), "num_warps": 4}


def test_the_grain_divides_the_rows_and_their_distance():
    x = torch.empty(40, 100, dtype=torch.float16)
    assert layout_of(x) == (100, 4, False)
    assert layout_of(x.T) == (100, 4, True)
    assert layout_of(x[:, :96]) == (100, 4, False)  # the distance counts
    assert layout_of(x[:, :50]) == (100, 2, False)  # and the length
    assert layout_of(x[:, :51]) == (100, 1, False)
    assert layout_of(torch.empty(3, 4096)) == (4096, 8, False)
    assert layout_of(torch.empty(7, 1)) == (1, 1, True)


def test_loads_are_as_wide_as_the_grain():
    """Copies past the registers take 16, 8 or 4 bytes; odd rows are loaded by 2."""
    jobs = {}
    for size in (4096, 4100, 4098, 4097):
        a = torch.empty(256, size, dtype=torch.float16)
        for kernel, arguments, options in launched(matmul, a, a.T):
            jobs[str(size)] = (kernel, arguments, options)
    codes = tile_codes(jobs)
    widths = {size: set(code.widths["copies"]) for size, code in codes.items()}
    assert widths == {"4096": {16}, "4100": {8}, "4098": {4}, "4097": set()}
    assert set(codes["4097"].widths["loads"]) == {2}
    assert all(code.count("wgmma") for code in codes.values())


@pytest.mark.parametrize("splits", [1, 3])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_right_for_rows_of_every_grain(layout, splits):
    numbers = torch.Generator().manual_seed(splits)
    shapes = (33, 20, 50), (17, 36, 34), (5, 72, 33), (1, 1, 1), (1, 16, 40), (40, 1, 17)
    for number, (m, n, k) in enumerate(shapes, LAYOUTS.index(layout)):
        a = torch.randn(m, k, generator=numbers).half().to(DEVICE)
        b = torch.randn(k, n, generator=numbers).half().to(DEVICE)
        rows = poison(torch.empty(m, n, dtype=a.dtype, device=DEVICE))
        columns = poison(torch.empty(n, m, dtype=a.dtype, device=DEVICE)).T
        apart = poison(torch.empty(m, 2 * n, dtype=a.dtype, device=DEVICE))[:, ::2]
        outs = rows, columns, apart
        for out in outs if select().on_gpu else [outs[number % 3]]:
            assert_matmul(matmul(*as_layout(a, b, layout), out=out, splits=splits, **SMALL), a, b)


def test_what_lies_beyond_the_edges_does_not_matter():
    """NaN around a, b and out: none is read into C, none is overwritten."""
    around = [torch.full((50, 60), float("nan"), device=DEVICE).half() for _ in range(3)]
    a, b, out = around[0][3:36, 5:46], around[1][1:42, 7:36], around[2][2:35, 3:32]
    a.copy_(torch.randn(33, 41))
    b.copy_(torch.randn(41, 29))
    for options in ({}, {"ahead": False}, {"splits": 2}):
        assert_matmul(matmul(a, b, out=poison(out), **SMALL, **options), a, b)
    out.fill_(float("nan"))
    assert all(
        torch.isnan(whole).sum() == whole.numel() - inner.numel()
        for whole, inner in zip(around[:2], (a, b), strict=True)
    )
    assert torch.isnan(around[2]).all()


def test_a_matrix_without_a_stride_of_1_is_copied():
    a, b = torch.randn(40, 30).half().to(DEVICE), torch.randn(15, 9).half().to(DEVICE)
    assert_matmul(matmul(a[::2, ::2], b, **SMALL), a[::2, ::2], b)


@pytest.mark.parametrize("splits", [0, -1, 1.0, True])
def test_bad_splits_are_quoted(splits):
    a = torch.ones(16, 16, device=DEVICE).half()
    with pytest.raises((TypeError, ValueError), match="splits must be"):
        matmul(a, a, splits=splits)
