"""cuda_padded and cuda_transposed: right, loaded by neighbours, no conflicts."""

import pytest
import torch

from tiled_matmul.check import run_checked
from tiled_matmul.kit.arguments import check_pad, tensor_operands
from tiled_matmul.kit.backend import select
from tiled_matmul.kit.constants import with_constants
from tiled_matmul.ladder import cuda_padded, cuda_transposed, rung
from tiled_matmul.microscope.cuda import trace, watch
from tiled_matmul.problem import LAYOUTS, Problem, as_layout

DEVICE = "cuda" if select().on_gpu else "cpu"
SHAPES = ["1x1x1", "9x9x9", "1x40x7", "40x1x7", "33x17x1", "37x45x29"]
TYPES = ["float32", "float64", "int32"]
TRANSPOSED = [rung(f"cuda_transposed_{layout}") for layout in LAYOUTS[1:]]


def operands(shape, dtype="float32", layout="nn", kind="integers", seed=1):
    return as_layout(*Problem.parse(shape, dtype).inputs(seed, kind, DEVICE), layout)


def traced(matmul, layout="nn", shape="32x32x32", dtype="float32", **options):
    """Return the trace of one launch, and the product's layout of operands is `layout`."""
    with watch() as traces:
        matmul(*operands(shape, dtype, layout), **options)
    (t,) = traces
    return t


@pytest.mark.sample(3)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_transposed_operands_give_the_product(shape, layout):
    for dtype in TYPES if shape == SHAPES[-1] else TYPES[:1]:
        run_checked(cuda_transposed.matmul, *operands(shape, dtype, layout), tile=16)


@pytest.mark.sample(3)
@pytest.mark.parametrize("coalesced", [True, False])
@pytest.mark.parametrize("tile, pad", [(1, 0), (3, 3), (16, 0), (16, 2), (32, 1)])
def test_every_tile_and_padding_gives_the_product(tile, pad, coalesced):
    a, b = operands("37x20x29")
    run_checked(cuda_padded.matmul, a, b, tile=tile, pad=pad, coalesced=coalesced)
    a, b = operands("37x20x29", layout="tn" if coalesced else "nt")
    run_checked(cuda_transposed.matmul, a, b, tile=tile, pad=pad)


@pytest.mark.parametrize("r", TRANSPOSED, ids=lambda r: r.name)
def test_each_rung_takes_floats_in_its_layout(r):
    a, b = operands("33x40x35", layout=r.layout, kind="normal")
    assert [x.is_contiguous() for x in (a, b)] == [letter == "n" for letter in r.layout]
    run_checked(r.matmul, a, b)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [*SHAPES, "130x70x95", "127x129x131", "300x20x4000"])
def test_on_the_gpu(shape, layout, dtype):
    kind = "integers" if dtype == "int32" else "normal"
    a, b = operands(shape, dtype, layout, kind)
    for tile, pad in ((32, 0), (32, 1), (32, 4), (16, 2)):
        run_checked(cuda_transposed.matmul, a, b, tile=tile, pad=pad)
    a, b = as_layout(a, b, "nn")
    for coalesced in (True, False):
        run_checked(cuda_padded.matmul, a, b, coalesced=coalesced)
        run_checked(cuda_padded.matmul, a, b, tile=16, pad=0, coalesced=coalesced)


@pytest.mark.parametrize("matmul", [cuda_padded.matmul, cuda_transposed.matmul])
def test_int32_wraps_around(matmul):
    a = torch.full((3, 5), 2**30, dtype=torch.int32, device=DEVICE)
    b = torch.full((5, 2), 3, dtype=torch.int32, device=DEVICE)
    wrapped = (15 * 2**30 + 2**31) % 2**32 - 2**31
    assert bool((matmul(a, b) == wrapped).all())


# What a launcher takes


@pytest.mark.parametrize(
    "spoil",
    [
        lambda a: a[:, ::2],
        lambda a: a.repeat(1, 2)[:, : a.shape[1]],
        lambda a: a.repeat(1, 2)[:, : a.shape[1]].T.contiguous().T[::2],
        lambda a: a.T.repeat(1, 2)[:, : a.shape[0]].T,
        lambda a: a[:1].expand(a.shape),
    ],
)
@pytest.mark.parametrize("which", [0, 1])
def test_any_other_stride_is_refused(spoil, which):
    good = operands("6x6x6")
    pair = list(good)
    pair[which] = spoil(pair[which])
    pair[1 - which] = pair[1 - which][: pair[which].shape[1], : pair[which].shape[0]].contiguous()
    name = "ab"[which]
    with pytest.raises(ValueError, match=f"{name} must be row-major or column-major and contig"):
        tensor_operands(*pair, None, column_major=True)


def test_column_major_is_taken_where_it_is_asked_for_only():
    a, b = operands("5x6x7", layout="tn")
    assert tensor_operands(a, b, None, column_major=True)[:3] == (5, 6, 7)
    with pytest.raises(ValueError, match="a must be row-major and contiguous"):
        tensor_operands(a, b, None)
    with pytest.raises(ValueError, match="b must be row-major and contiguous"):
        cuda_padded.matmul(*operands("5x6x7", layout="nt"))


def test_out_is_row_major_always():
    a, b = operands("6x6x6", layout="tt")
    with pytest.raises(ValueError, match="out must be row-major and contiguous"):
        cuda_transposed.matmul(a, b, out=torch.empty_like(a.T).T)
    with pytest.raises(ValueError, match=r"out \(6, 6\) .* shares memory with a"):
        cuda_transposed.matmul(a, b, out=a.T)
    assert cuda_transposed.matmul(a, b).is_contiguous()


@pytest.mark.parametrize("matmul", [cuda_padded.matmul, cuda_transposed.matmul])
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"tile": 0}, ValueError, "tile must be at least 1 and at most 32, got 0"),
        ({"tile": 33}, ValueError, "at most 32, got 33"),
        ({"tile": 2.0}, TypeError, "tile must be an int"),
        ({"pad": -1}, ValueError, "pad must be at least 1 and at most 32, got -1"),
        ({"tile": 4, "pad": 5}, ValueError, "at most 4, got 5"),
        ({"pad": False}, TypeError, "pad must be an int, got False"),
    ],
)
def test_impossible_tiles_and_paddings_are_quoted(matmul, options, error, message):
    with pytest.raises(error, match=message):
        matmul(*operands("4x4x4"), **options)


def test_a_padding_of_nothing_is_one():
    assert check_pad(0, 8) == 0 and check_pad(8, 8) == 8


# What the microscope says of them


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_padded_rows_have_no_conflict_and_bare_ones_do(dtype):
    free = traced(cuda_padded.matmul, dtype=dtype)
    assert not free.findings
    assert free.shared_loads.bank_conflicts == free.shared_stores.bank_conflicts == 0
    bare = traced(cuda_padded.matmul, dtype=dtype, pad=0)
    # 32 warps read down a column 32 times: 31 wavefronts more than one, or 30 more than two.
    assert bare.shared_loads.bank_conflicts == 32 * 32 * (31 if dtype == "float32" else 30)
    assert bare.shared_stores.bank_conflicts == 0


def test_each_remedy_mends_its_own_half():
    sectors, conflicts, stores = {}, {}, {}
    for pad in (0, 2):
        for coalesced in (False, True):
            t = traced(cuda_padded.matmul, tile=16, pad=pad, coalesced=coalesced)
            sectors[pad, coalesced] = t.global_loads.sectors
            conflicts[pad, coalesced] = t.shared_loads.bank_conflicts
            stores[pad, coalesced] = t.shared_stores.bank_conflicts / t.shared_stores.requests
    # 4 blocks, 2 tiles, 8 warps, A and B: 16 sectors each, or 4.
    assert sectors[0, False] == sectors[2, False] == 4 * sectors[0, True] == 4 * 2 * 8 * 32
    assert sectors[2, True] == sectors[0, True]
    # Of two loads, the one down the column has 7 wavefronts too many.
    assert conflicts[0, False] == conflicts[0, True] == 4 * 2 * 8 * 16 * 7
    assert conflicts[2, False] == conflicts[2, True] == 0
    # A warp stores two columns, or two rows; rows of 16 meet where they do not begin 16 apart.
    assert stores == {(0, False): 7, (0, True): 0, (2, False): 0, (2, True): 1}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", ["32x32x32", "33x8x5"])
def test_transposed_operands_are_loaded_by_neighbours_without_conflict(layout, shape):
    t = traced(cuda_transposed.matmul, layout, shape)
    assert not t.findings
    assert t.shared_loads.bank_conflicts == t.shared_stores.bank_conflicts == 0
    if shape == "32x32x32":
        assert t.global_loads.sectors == 2 * 32 * 4


def test_a_loader_that_ignores_the_layout_is_seen():
    kernel = with_constants(cuda_transposed.cuda_transposed_kernel, A_BY_COLUMNS=False)
    a, b = operands("32x32x32", layout="tt")
    t = trace(kernel, 1, (32, 32), a, b, torch.empty_like(a))
    assert t.global_loads.sectors == 32 * 4 + 32 * 32


def test_a_store_across_bare_rows_is_seen():
    t = traced(cuda_transposed.matmul, "tn", pad=0)
    assert t.shared_stores.bank_conflicts == 32 * 31 and t.shared_loads.bank_conflicts == 0
