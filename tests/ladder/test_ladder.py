"""ladder/: every rung is right on ragged shapes and refuses what it cannot do."""

import re
from pathlib import Path

import numpy as np
import pytest

from tiled_matmul.check import MatmulError, run_checked
from tiled_matmul.files import rung_files
from tiled_matmul.kit.backend import select
from tiled_matmul.kit.launch import covering_grid
from tiled_matmul.ladder import LADDER, ORDERS, rung
from tiled_matmul.problem import DTYPES, Problem

RAGGED = ["1x1x1", "9x9x9", "17x33x65", "1x40x7", "40x1x7", "33x17x1"]
FOURS = "5x8x12"  # which rungs with wide loads multiply themselves
ON_GPU_ONLY = ["130x70x95", "127x129x131", "300x20x4000", "512x512x512"]
CPU = [r for r in LADDER if r.device == "cpu"]
GPU = [r for r in LADDER if r.device == "gpu"]
# A block that was chosen for 16 bits may need more shared memory than there is with twice as many.
TYPED = [
    (r, dtype)
    for r in LADDER
    for dtype in r.dtypes
    if not (r.in_triton and r.options and dtype == "float32")
]
REFUSED = [
    (r, dtype)
    for r in LADDER
    for dtype in DTYPES
    if dtype not in r.dtypes and not (dtype == "bfloat16" and r.device == "cpu")  # numpy has none
]
ON_GPU = [(r, t) for r, t in TYPED if r in GPU and not r.in_triton]  # test_ladder_triton.py
ANY_BLOCK = [r for r in GPU if r.chapter == 4]  # later ones fix the block's shape


def device(r) -> str:
    return "numpy" if r.device == "cpu" else ("cuda" if select().on_gpu else "cpu")


def ids(r) -> str:
    return getattr(r, "name", r)


def kinds(dtype) -> list[str]:
    return {"float64": ["normal"], "int32": ["integers"]}.get(dtype, ["normal", "integers"])


@pytest.mark.parametrize(("r", "dtype"), TYPED, ids=ids)
def test_right_on_ragged_shapes(r, dtype):
    """Whole numbers find a wrong index anywhere, normal ones a wrong type of the sums."""
    every_shape = dtype == r.dtype  # masks do not depend on the dtype, loads of 16 bytes do
    for shape in [*RAGGED, FOURS] if every_shape else ["1x40x7", "17x33x65", FOURS]:
        for kind in kinds(dtype) if shape == "17x33x65" else kinds(dtype)[-1:]:
            try:
                run_checked(r.matmul, *Problem.parse(shape, dtype).inputs(5, kind, device(r)))
            except Exception as error:
                error.add_note(f"{r.name} at {shape} in {dtype}, {kind} numbers")
                raise


@pytest.mark.parametrize("kind", ["normal", "integers"])
@pytest.mark.parametrize("shape", ["130x70x95", "127x129x131", "300x20x4000"])
@pytest.mark.parametrize("r", CPU[1:], ids=ids)
def test_compiled_rungs_are_right_on_larger_ragged_shapes(r, shape, kind):
    run_checked(r.matmul, *Problem.parse(shape).inputs(6, kind))


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [*RAGGED, *ON_GPU_ONLY])
@pytest.mark.parametrize(("r", "dtype"), ON_GPU, ids=ids)
def test_right_on_the_gpu(r, dtype, shape):
    for kind in kinds(dtype):
        run_checked(r.matmul, *Problem.parse(shape, dtype).inputs(7, kind, "cuda"))


@pytest.mark.gpu
@pytest.mark.parametrize("r", GPU, ids=ids)
def test_follows_torchs_current_stream(r):
    import torch

    a, b = Problem.square(512, r.dtype).inputs(device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        late = torch.zeros_like(a)
        torch.cuda._sleep(50_000_000)
        late.copy_(a)
        c = r.matmul(late, b)
    stream.synchronize()
    assert torch.equal(c, r.matmul(a, b))


@pytest.mark.parametrize("r", LADDER, ids=ids)
def test_without_out_a_new_array_is_returned(r):
    a, b = Problem(5, 6, 7, r.dtype).inputs(0, "integers", device(r))
    c = r.matmul(a, b)
    assert tuple(c.shape) == (5, 6) and bool((c == run_checked(r.matmul, a, b)).all())


BAD = {
    "not a matrix": (lambda a, b: (a[0], b, None), ValueError, "2-D and not empty"),
    "empty": (lambda a, b: (a[:0], b, None), ValueError, r"not empty, got shape \(0, 7\)"),
    "do not fit": (lambda a, b: (a, a, None), ValueError, r"7 columns.*5 rows"),
    "other shape of out": (lambda a, b: (a, b, a), ValueError, r"out has shape \(5, 7\)"),
    "columns apart": (lambda a, b: (a[:, ::2], b[::2], None), ValueError, "row-major"),
    "list": (lambda a, b: ([[1.0]], b, None), TypeError, "got list"),
}


@pytest.mark.parametrize("fault", BAD)
@pytest.mark.parametrize("r", LADDER, ids=ids)
def test_bad_operands_are_quoted(r, fault):
    make, error, message = BAD[fault]
    a, b, out = make(*Problem(5, 6, 7, r.dtype).inputs(device=device(r)))
    if fault == "columns apart" and r.in_triton:  # which takes any strides
        run_checked(r.matmul, a, b)
        return
    with pytest.raises(error, match=message):
        r.matmul(a, b, out=out)


@pytest.mark.parametrize(("r", "dtype"), REFUSED, ids=ids)
def test_bad_dtypes_are_quoted(r, dtype):
    a, b = Problem(5, 6, 7, dtype).inputs(kind="integers", device=device(r))
    with pytest.raises(TypeError, match=f"a has dtype {dtype}; this rung takes {r.dtype}"):
        r.matmul(a, b)
    taken, _ = Problem(5, 6, 7, r.dtype).inputs(kind="integers", device=device(r))
    with pytest.raises(TypeError, match=f"b has dtype {dtype}; this rung takes {r.dtype}"):
        r.matmul(taken, b)


@pytest.mark.parametrize(
    ("r", "dtype"), [each for each in TYPED if each[1] != each[0].dtype], ids=ids
)
def test_two_dtypes_are_quoted(r, dtype):
    a, _ = Problem(5, 6, 7, r.dtype).inputs(kind="integers", device=device(r))
    _, b = Problem(5, 6, 7, dtype).inputs(kind="integers", device=device(r))
    with pytest.raises(TypeError, match=f"a is {r.dtype} and b is {dtype}; they must have one"):
        r.matmul(a, b)


def test_every_rung_takes_what_it_is_measured_in_first():
    assert all(r.dtypes[0] == r.dtype for r in LADDER)
    assert {r.dtype for r in LADDER if not r.in_triton} == {"float32"}
    assert {r.dtype for r in LADDER if r.in_triton} == {"float16"}
    assert rung("cuda_naive").dtypes == ("float32", "float64")
    assert rung("cuda_best").dtypes == ("float32",)


@pytest.mark.parametrize("r", LADDER, ids=ids)
def test_out_may_not_be_an_input(r):
    a, b = Problem.square(4, r.dtype).inputs(device=device(r))
    with pytest.raises(ValueError, match="shares memory"):
        r.matmul(a, b, out=a)


@pytest.mark.parametrize("r", LADDER, ids=ids)
def test_three_matrices_of_one_buffer_are_fine_and_an_overlap_is_not(r):
    a, b = Problem.square(4, r.dtype).inputs(0, "integers", device(r))
    flat = np.empty(48, np.float32) if r.device == "cpu" else a.new_empty(48)
    x, y, out, overlapping = (flat[i : i + 16].reshape(4, 4) for i in (0, 16, 32, 8))
    x[:], y[:] = a, b
    assert bool((r.matmul(x, y, out=out) == r.matmul(a, b)).all())
    with pytest.raises(ValueError, match="shares memory"):
        r.matmul(x, y, out=overlapping)


@pytest.mark.parametrize("r", CPU, ids=ids)
def test_a_read_only_out_is_refused(r):
    a, b = Problem.square(4).inputs()
    out = np.empty((4, 4), np.float32)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="out is read-only"):
        r.matmul(a, b, out=out)


@pytest.mark.parametrize("r", GPU, ids=ids)
def test_tensors_that_want_gradients_are_refused(r):
    a, b = Problem.square(4, r.dtype).inputs(device=device(r))
    with pytest.raises(ValueError, match="a requires grad"):
        r.matmul(a.requires_grad_(), b)


def test_arrays_and_tensors_are_not_mixed_up():
    a, b = Problem.square(4).inputs()
    tensors = Problem.square(4).inputs(device="cpu")
    with pytest.raises(TypeError, match="numpy array, got Tensor"):
        rung("njit_ikj").matmul(*tensors)
    with pytest.raises(TypeError, match="torch tensor, got ndarray"):
        rung("cuda_naive").matmul(a, b)


@pytest.mark.gpu
def test_a_tensor_on_the_wrong_device_is_named():
    with pytest.raises(ValueError, match="lies on cpu, this back end needs it on cuda"):
        rung("cuda_naive").matmul(*Problem.square(4).inputs(device="cpu"))


@pytest.mark.parametrize(
    ("block", "error", "message"),
    [
        ((0, 16), ValueError, "block x must be at least 1, got 0"),
        ((16, -1), ValueError, "block y must be at least 1, got -1"),
        ((64, 32), ValueError, "2048 threads; a GPU allows 1024"),
        ((2.0, 2), TypeError, "must be an int, got 2.0"),
        (16, TypeError, r"pair \(x, y\), got 16"),
    ],
)
@pytest.mark.parametrize("r", ANY_BLOCK, ids=ids)
def test_impossible_blocks_are_refused(r, block, error, message):
    with pytest.raises(error, match=message):
        r.matmul(*Problem.square(4).inputs(device=device(r)), block=block)


@pytest.mark.parametrize("block", [(1, 1), (3, 3), (32, 2), (2, 32), (1, 64)])
@pytest.mark.parametrize("r", ANY_BLOCK, ids=ids)
def test_any_block_gives_the_same_product(r, block):
    run_checked(r.matmul, *Problem(10, 11, 5).inputs(1, "integers", device(r)), block=block)


def test_a_grid_taller_than_a_gpu_allows_is_refused():
    with pytest.raises(ValueError, match="need 65536 blocks"):
        covering_grid(1, 65536, (1, 1))


@pytest.mark.parametrize("tile", [1, 3, 16, 64, 1000])
def test_any_tile_gives_the_same_product(tile):
    run_checked(rung("loops_tiled").matmul, *Problem(33, 17, 41).inputs(1), tile=tile)


@pytest.mark.parametrize("tile", [0, -4])
def test_impossible_tiles_are_refused(tile):
    with pytest.raises(ValueError, match=f"tile must be at least 1, got {tile}"):
        rung("loops_tiled").matmul(*Problem.square(4).inputs(), tile=tile)


def test_unknown_rungs_and_orders_are_quoted():
    with pytest.raises(ValueError, match="unknown rung 'fast'; the ladder has loops_python"):
        rung("fast")
    with pytest.raises(ValueError, match="got 'iij'"):
        rung("njit_ijk").matmul.func(*Problem.square(4).inputs(), order="iij")


def test_names_are_unique_and_every_module_is_on_the_ladder():
    import tiled_matmul.ladder as ladder

    names = [r.name for r in LADDER]
    assert len(set(names)) == len(names)
    folder = Path(ladder.__file__).parent
    files = sorted(path.name for path in folder.glob("*.py") if path.name != "__init__.py")
    modules = list(dict.fromkeys(r.module for r in LADDER))
    assert list(rung_files(folder)) == modules  # the files sort as the ladder is climbed
    chapters = {r.module: r.chapter for r in LADDER}
    for file, module in zip(files, modules, strict=True):
        assert re.fullmatch(rf"ch{chapters[module]:02}_(\d_)?{module}\.py", file)


@pytest.mark.parametrize("name", [r.name for r in LADDER])
def test_every_name_of_the_ladder_is_found_at_the_front_door(name):
    import tiled_matmul

    found = tiled_matmul.rung(name)
    assert found.name == name and callable(found.matmul)
    assert Path(found.home.__file__) == found.source
    assert found.home.__name__ == f"tiled_matmul.ladder.{found.module}"
    assert (found.kernel is None) == (name == "triton_best")
    assert found.below is None or LADDER.index(found.below) != LADDER.index(found)


def test_going_down_from_any_rung_ends_at_a_first_one():
    for each in LADDER:
        seen = []
        while each is not None:
            assert each not in seen
            seen.append(each)
            each = each.below
        assert seen[-1].name in ("loops_python", "triton_block_pointers")


def test_changes_are_the_lines_of_the_kernel_that_differ():
    assert rung("cuda_coalesced").changes().splitlines() == [
        "    ...",
        "-    row = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x",
        "-    col = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y",
        "+    row = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y",
        "+    col = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x",
    ]
    with_launcher = rung("cuda_coalesced").changes(launcher=True)
    assert "+    launch(cuda_coalesced_kernel, covering_grid(n, m, block)" in with_launcher
    assert '"""' not in with_launcher and "Return a (M, K)" not in with_launcher
    assert rung("cuda_shared_32").changes() == "nothing differs"
    first = rung("loops_python").changes().splitlines()
    assert first[1] == "+def kernel(a, b, c):" and all(line[0] == "+" for line in first[1:])


def test_an_unknown_rung_is_quoted_with_the_nearest():
    with pytest.raises(ValueError, match="'cuda_niave'; the nearest are cuda_naive"):
        rung("cuda_niave")


def test_a_rung_that_skips_the_last_tile_is_caught():
    def skips_the_last_tile_of_k(a, b, out):
        return rung("njit_ikj").matmul(a[:, :32].copy(), b[:32].copy(), out)

    a, b = Problem(20, 20, 40).inputs(3)
    with pytest.raises(MatmulError, match="stops at 32 of 40"):
        run_checked(skips_the_last_tile_of_k, a, b)


def test_all_six_orders_give_the_same_bits():
    a, b = Problem(30, 31, 32).inputs(9)
    products = [rung(f"njit_{order}").matmul(a, b) for order in ORDERS]
    assert all(np.array_equal(products[0], other) for other in products)


# Lines of a rung's file: one screen. Two kernels alone are most of one.
SCREEN = 115
LONGER = {"cuda_async": 130, "cuda_best": 165}


def too_long(lines: dict[str, int]) -> list[str]:
    """Return the rungs with more lines than a screen has."""
    return [name for name, count in lines.items() if count > LONGER.get(name, SCREEN)]


def test_a_rung_fits_on_a_screen():
    lines = {r.module: len(r.source.read_text(encoding="utf-8").splitlines()) for r in LADDER}
    assert too_long(lines) == []
    assert all(lines[name] > SCREEN for name in LONGER)  # an exception that is needed no more goes
    assert too_long(lines | {"cuda_naive": SCREEN + 1}) == ["cuda_naive"]
