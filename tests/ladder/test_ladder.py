"""ladder/: every rung is right on ragged shapes and refuses what it cannot do."""

import re
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from tiled_matmul.check import MatmulError, run_checked
from tiled_matmul.files import rung_files
from tiled_matmul.kit.backend import select
from tiled_matmul.kit.launch import covering_grid
from tiled_matmul.ladder import ABROAD, COMPILED, LADDER, LAYER, ORDERS, rung
from tiled_matmul.languages import GLUON, NUMBA, NUMBA_CUDA, PYTHON, TRITON
from tiled_matmul.problem import DTYPES, Problem

RAGGED = ["1x1x1", "9x9x9", "17x33x65", "1x40x7", "40x1x7", "33x17x1"]
FOURS = "5x8x12"  # which rungs with wide loads multiply themselves
# Without a GPU: of each kind of edge one, and normal numbers, which find a wrong type of the sums,
# where one row has many products.
SIMULATED = [("1x1x1", "integers"), ("40x1x7", "integers"), ("1x7x40", "normal")]
ON_GPU_ONLY = ["130x70x95", "127x129x131", "300x20x4000", "512x512x512"]
RUNNING = [r for r in LADDER if r.language.runs_here()]
CPU = [r for r in RUNNING if r.device == "cpu"]
GPU = [r for r in RUNNING if r.device == "gpu"]
# A block that was chosen for 16 bits may need more shared memory than there is with twice as many.
TYPED = [
    (r, dtype)
    for r in RUNNING
    for dtype in r.dtypes
    if not (r.language.module == "triton" and r.options and dtype == "float32")
]
REFUSED = {
    r.name: [t for t in DTYPES if t not in r.dtypes and not (t == "bfloat16" and r in CPU)]
    for r in RUNNING  # numpy has no bfloat16
}
ON_GPU = [(r, t) for r, t in TYPED if r.language is NUMBA_CUDA]  # test_ladder_triton.py
ANY_BLOCK = [r for r in GPU if r.chapter == 4]  # later ones fix the block's shape


def device(r) -> str:
    return "numpy" if r.device == "cpu" else ("cuda" if select().on_gpu else "cpu")


def ids(r) -> str:
    return getattr(r, "name", r)


def kinds(dtype) -> list[str]:
    return {"float64": ["normal"], "int32": ["integers"]}.get(dtype, ["normal", "integers"])


@contextmanager
def noted(*parts):
    """Add to an exception what was tried."""
    try:
        yield
    except BaseException as error:  # pytest.fail's exception is no Exception
        error.add_note(", ".join(map(str, parts)))
        raise


@pytest.mark.parametrize(
    ("r", "dtype"),
    [pytest.param(r, t, marks=[] if t == r.dtype else pytest.mark.long) for r, t in TYPED],
    ids=ids,
)
def test_right_on_ragged_shapes(r, dtype):
    """Whole numbers find a wrong index anywhere, normal ones a wrong type of the sums."""
    # Masks do not depend on the dtype, loads of 16 bytes do. A thread's tile takes 8 of K at once.
    first = dtype == r.dtype
    deep = "17x33x65" if first and r.chapter not in (7, 8) else "17x33x20"
    for shape in (deep, FOURS):
        with noted(r.name, shape, dtype):
            inputs = Problem.parse(shape, dtype).inputs(5, kinds(dtype)[-1], device(r))
            run_checked(r.matmul, *inputs)


@pytest.mark.sample(5)
@pytest.mark.parametrize(("shape", "kind"), SIMULATED)
@pytest.mark.parametrize("r", RUNNING, ids=ids)
def test_right_where_an_edge_is_one(r, shape, kind):
    run_checked(r.matmul, *Problem.parse(shape, r.dtype).inputs(5, kind, device(r)))


@pytest.mark.parametrize("kind", ["normal", "integers"])
@pytest.mark.parametrize("shape", ["130x70x95", "127x129x131", "300x20x4000"])
@pytest.mark.parametrize("r", CPU[1:], ids=ids)
@pytest.mark.sample(6)
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


BAD = {
    "a row": (lambda a, b: (a[0], b, None), ValueError, "2-D and not empty"),
    "empty": (lambda a, b: (a[:0], b, None), ValueError, r"not empty, got shape \(0, 7\)"),
    "do not fit": (lambda a, b: (a, a, None), ValueError, r"7 columns.*5 rows"),
    "other shape of out": (lambda a, b: (a, b, a), ValueError, r"out has shape \(5, 7\)"),
    "columns apart": (lambda a, b: (a[:, ::2], b[::2], None), ValueError, "row-major"),
    "list": (lambda a, b: ([[1.0]], b, None), TypeError, "got list"),
    "out is a": (lambda a, b: (a[:, :6], b[:6], a[:, :6]), ValueError, "shares memory|row-major"),
}


def operands(r, dtype="", shape=(5, 6, 7)):
    return Problem(*shape, dtype or r.dtype).inputs(0, "integers", device(r))


@pytest.mark.parametrize("r", RUNNING, ids=ids)
def test_bad_operands_are_quoted(r):
    """The checks are shared, and tested in tests/kit: here, that every rung makes them."""
    for fault, (make, error, message) in BAD.items():
        a, b, out = make(*operands(r))
        with noted(fault):
            if fault == "columns apart" and r.language.strided:
                run_checked(r.matmul, a, b)
            else:
                with pytest.raises(error, match=message):
                    r.matmul(a, b, out=out)
    if r.device == "gpu":
        a, b = operands(r)
        if a.is_floating_point():
            with pytest.raises(ValueError, match="a requires grad"):
                r.matmul(a.requires_grad_(), b)
    else:
        out = np.empty((5, 6), np.float32)
        out.flags.writeable = False
        with pytest.raises(ValueError, match="out is read-only"):
            r.matmul(*operands(r), out=out)


@pytest.mark.parametrize("r", RUNNING, ids=ids)
def test_bad_dtypes_are_quoted(r):
    right = operands(r)
    for dtype in REFUSED[r.name]:
        wrong = operands(r, dtype)
        for name, given in (("a", (wrong[0], right[1])), ("b", (right[0], wrong[1]))):
            message = f"{name} has dtype {dtype}; this rung takes {r.dtype}"
            with noted(dtype), pytest.raises(TypeError, match=message):
                r.matmul(*given)
    for dtype in r.dtypes[1:]:
        message = f"a is {dtype} and b is {r.dtype}; they must have one"
        with noted(dtype), pytest.raises(TypeError, match=message):
            r.matmul(operands(r, dtype)[0], right[1])


@pytest.mark.sample(4)
@pytest.mark.parametrize("r", RUNNING, ids=ids)
def test_out_is_new_or_what_was_given_and_shares_no_memory(r):
    """Three matrices that lie in one buffer are fine; if they overlap, they are not."""
    a, b = operands(r, shape=(4, 4, 4))
    flat = np.empty(48, np.float32) if r.device == "cpu" else a.new_empty(48)
    x, y, out, overlapping = (flat[i : i + 16].reshape(4, 4) for i in (0, 16, 32, 8))
    x[:], y[:] = a, b
    new = r.matmul(x, y)
    assert tuple(new.shape) == (4, 4) and r.matmul(x, y, out=out) is out
    assert bool((new == run_checked(r.matmul, a, b)).all()) and bool((out == new).all())
    for wrong in (overlapping, x):
        with pytest.raises(ValueError, match="shares memory"):
            r.matmul(x, y, out=wrong)


def test_every_rung_takes_what_it_is_measured_in_first():
    assert all(r.dtypes[0] == r.dtype for r in LADDER)
    loops, programs = (PYTHON, NUMBA, NUMBA_CUDA), (TRITON, GLUON)
    assert {r.dtype for r in LADDER if r.language in loops} == {"float32"}
    assert {r.dtype for r in LADDER if r.language in programs} == {"float16"}
    assert rung("cuda_naive").dtypes == ("float32", "float64")
    assert rung("cuda_best").dtypes == ("float32",)


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

    rungs = sorted((*LADDER, *COMPILED, *LAYER, *ABROAD), key=lambda r: r.chapter)
    names = [r.name for r in rungs]
    assert len(set(names)) == len(names)
    folder = Path(ladder.__file__).parent
    files = sorted(path.name for path in folder.glob("*.py") if path.name != "__init__.py")
    modules = list(dict.fromkeys(r.module for r in rungs))
    assert list(rung_files(folder)) == modules  # the files sort as the ladder is climbed
    chapters = {r.module: r.chapter for r in rungs}
    for file, module in zip(files, modules, strict=True):
        assert re.fullmatch(rf"ch{chapters[module]:02}_(\d_)?{module}\.py", file)


def test_every_name_of_the_ladder_is_found_at_the_front_door():
    import tiled_matmul

    for name in [r.name for r in LADDER if r.available]:
        found = tiled_matmul.rung(name)
        assert found.name == name and callable(found.matmul)
        assert Path(found.home.__file__) == found.source, name
        assert found.home.__name__ == f"tiled_matmul.ladder.{found.module}"
        assert (found.kernel is None) == (name == "triton_best")
        assert found.below is None or LADDER.index(found.below) != LADDER.index(found)


def test_going_down_from_any_rung_ends_at_a_first_one():
    firsts = set()
    for each in LADDER:
        seen = []
        while each is not None:
            assert each not in seen
            seen.append(each)
            each = each.below
        firsts.add(seen[-1].name)
    assert firsts >= {"loops_python", "triton_block_pointers"}


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
LONGER = {"cuda_async": 133, "cuda_best": 173, "cuda_split_k": 221}
LONGER |= {
    "gluon_specialised": 128,
    "gluon_persistent": 139,
    "gluon_cluster": 173,
    "gluon_shapes": 279,
    "gluon_shares": 196,
    "gluon_blackwell": 135,
}


def too_long(lines: dict[str, int]) -> list[str]:
    """Return the rungs with more lines than a screen has."""
    return [name for name, count in lines.items() if count > LONGER.get(name, SCREEN)]


def test_a_rung_fits_on_a_screen():
    lines = {
        r.module: len(r.source.read_text(encoding="utf-8").splitlines())
        for r in (*LADDER, *COMPILED)
    }
    assert too_long(lines) == []
    assert all(lines[name] > SCREEN for name in LONGER)  # an exception that is needed no more goes
    assert too_long(lines | {"cuda_naive": SCREEN + 1}) == ["cuda_naive"]
