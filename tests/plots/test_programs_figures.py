"""plots/programs.py: what is drawn and said of a program's tiles is what the trace holds."""

import re

import pytest
import torch

pytest.importorskip("triton")
import triton
import triton.language as tl

from tiled_matmul.microscope.triton import trace_tiles
from tiled_matmul.plots import programs, style

M, N, K, TILE = 48, 80, 70, 32
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@triton.jit
def product_kernel(
    a, b, c, M, N, K, TILE: tl.constexpr, MASK_K: tl.constexpr, AROUND: tl.constexpr
):
    m = tl.program_id(0) * TILE + tl.arange(0, TILE)[:, None]
    n = tl.program_id(1) * TILE + tl.arange(0, TILE)[None, :]
    row = m % M if AROUND else m
    acc = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, K, TILE):
        k = start + tl.arange(0, TILE)
        down, across = k[:, None], k[None, :]
        if MASK_K:
            x = tl.load(a + row * K + across, mask=(row < M) & (across < K), other=0.0)
            y = tl.load(b + down * N + n, mask=(down < K) & (n < N), other=0.0)
        else:
            x = tl.load(a + row * K + across, mask=row < M, other=0.0)
            y = tl.load(b + down * N + n, mask=n < N, other=0.0)
        acc = tl.dot(x, y, acc, input_precision="ieee")
    tl.store(c + m * N + n, acc, mask=(m < M) & (n < N))


@triton.jit
def copy_kernel(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at))


def traced(mask_k=True, around=False):
    sizes = (M, K), (K, N), (M, N)
    a, b, c = (torch.randn(size, device=DEVICE) for size in sizes)
    return trace_tiles(product_kernel, (2, 3), a, b, c, M, N, K, TILE, mask_k, around)


def texts(figure):
    return re.findall(r"<text[^>]*>([^<]*)</text>", figure.svg)


def test_a_walk_says_which_tiles_and_numbers_them_by_step():
    figure = programs.tile_walk(traced(), (0, 1))
    assert figure.alt.startswith(
        "Program (0, 1): 3 tiles of a and 3 tiles of b make 1 tile of c. a below left"
    )
    assert "a: rows 0 to 31, columns 0 to 31, then rows 0 to 31, columns 32 to 63" in figure.alt
    assert "c: rows 0 to 31, columns 32 to 63." in figure.alt
    # The third step's tiles are slivers of six, too thin for a number.
    assert [text for text in texts(figure) if text.isdigit()] == ["0", "1", "0", "1"]
    assert {"a: K →", "b: K →", "c"} <= set(texts(figure))


def test_what_is_asked_for_outside_has_the_colour_of_a_fault():
    clean, faulty = (programs.tile_walk(traced(mask_k=mask), (1, 1)) for mask in (True, False))
    fault = re.compile(style.FAULT, re.IGNORECASE)
    assert not fault.search(clean.svg) and fault.search(faulty.svg)
    beyond = 2 * TILE - M, 3 * TILE - K
    outside = (TILE - beyond[0]) * beyond[1] + beyond[1] * TILE
    assert f"and {outside:,} elements are outside" in faulty.alt


def test_rows_that_wrap_around_are_drawn_where_they_are_read():
    straight, around = (programs.tile_walk(traced(around=wraps), (1, 0)) for wraps in (False, True))
    filled = [figure.svg.lower().count(f"fill: {style.A.lower()}") for figure in (straight, around)]
    assert filled == [3, 6]  # each of three tiles in two pieces
    dashed = [figure.svg.count("stroke-dasharray") for figure in (straight, around)]
    # A's tiles stick out below (1 + 1 + 2) and beside (1), or beside in two pieces; B's and C's 1.
    assert dashed == [5 + 2, 2 + 2]


def test_figures_are_the_same_each_time():
    t = traced()
    assert programs.tile_walk(t, 1).svg == programs.tile_walk(t, (1, 0, 0)).svg


def test_what_cannot_be_drawn_is_refused():
    t = traced()
    with pytest.raises(ValueError, match="no program is at"):
        programs.tile_walk(t, (2, 0))
    x = torch.zeros(16, device=DEVICE)
    copied = trace_tiles(copy_kernel, (1,), x, torch.zeros_like(x), BLOCK=16)
    with pytest.raises(ValueError, match=r"fit each other; it has x \(1×16\), y \(1×16\)"):
        programs.tile_walk(copied)
