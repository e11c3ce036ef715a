"""The rungs in Triton: right for every dtype, shape and stride, and clear about what they refuse.

Without a GPU Triton's interpreter runs them, in small blocks so that there are several. A rung that
joins the ladder is tested by that alone; SMALL holds its blocks where they are of another kind.
"""

import inspect
import re
import warnings
from functools import partial
from importlib import import_module

import pytest
import torch

from tiled_matmul.check import MatmulError, run_checked
from tiled_matmul.dispatch import costs, rule
from tiled_matmul.dispatch.candidates import candidates
from tiled_matmul.kit import gluon, programs, specialise, variants
from tiled_matmul.kit.backend import select
from tiled_matmul.kit.withheld import withheld
from tiled_matmul.ladder import (
    LADDER,
    gluon_shapes,
    triton_best,
    triton_specialised,
    triton_split_k,
    triton_tuned,
)
from tiled_matmul.ladder.triton_tuned import SMALL_SPACE, SPACE, Setting, Tuned
from tiled_matmul.languages import GLUON, TRITON
from tiled_matmul.machine import backend
from tiled_matmul.microscope.compiled.triton import tile_codes
from tiled_matmul.problem import LAYOUTS, Problem, as_layout

RUNGS = [r for r in LADDER if r.language in (TRITON, GLUON)]
MODULES = sorted({r.module for r in RUNGS})
SMALL = {"triton_two_widths": (32, (32, 16), 16), "gluon_shapes": (64, (32, 16), 32)}
SMALL |= {f"gluon_{name}": (64, 16, 32) for name in ("tile", "ring")}
ROLES = ("specialised", "persistent", "cluster", "shares")
SMALL |= {f"gluon_{name}": (128, 16, 32) for name in ROLES}
DTYPES = ("float16", "bfloat16", "float32")
RAGGED = ["33x17x1", "1x40x50", "40x1x50", "37x53x70", "64x48x32", "65x66x16"]
ON_GPU = select().on_gpu
PLACE = "cuda" if ON_GPU else "cpu"

every_module = pytest.mark.parametrize("module", MODULES)
every_dtype = pytest.mark.parametrize("dtype", DTYPES)


def launcher(module):
    return import_module(f"tiled_matmul.ladder.{module}").matmul


def takes(module, *names):
    return set(names) <= set(inspect.signature(launcher(module)).parameters)


def small(module):
    """Return the options of a launch in several blocks, of a launcher that takes blocks."""
    if takes(module, "space"):  # two, so that little is compiled on a GPU
        return {"space": tuple(Setting((rows, 32, 16), 4, 2) for rows in (32, 16))}
    return {"block": SMALL.get(module, (32, 32, 16))} if takes(module, "block") else {}


def those_with(*names):
    return pytest.mark.parametrize("module", [m for m in MODULES if takes(m, *names)])


def operands(shape="37x53x70", dtype="float16", kind="integers", seed=5):
    return Problem.parse(shape, dtype).inputs(seed, kind, PLACE)


# --- right ----------------------------------------------------------------------------------------


@pytest.mark.sample(4)
@every_dtype
@every_module
def test_ragged_shapes_in_several_blocks(module, dtype):
    """Masks do not depend on the dtype: bfloat16, of float16's size, has one shape."""
    for shape in ["37x53x70"] if dtype == "bfloat16" else RAGGED:
        for kind in ("normal", "integers") if shape == "37x53x70" else ("integers",):
            try:
                run_checked(launcher(module), *operands(shape, dtype, kind), **small(module))
            except Exception as error:
                error.add_note(f"{module} at {shape} in {dtype}, {kind} numbers")
                raise


@pytest.mark.gpu
@pytest.mark.parametrize(
    "shape", ["1x1x1", "130x70x95", "300x20x4000", "20x300x4000", "1000x1030x520"]
)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("r", RUNGS, ids=lambda r: r.name)
def test_larger_shapes_on_the_gpu(r, dtype, shape):
    for kind in ("normal", "integers"):
        run_checked(r.matmul, *operands(shape, dtype, kind))


@pytest.mark.gpu
@pytest.mark.parametrize("r", RUNGS, ids=lambda r: r.name)
def test_layouts_and_views_on_the_gpu(r):
    for layout in LAYOUTS:
        run_checked(r.matmul, *as_layout(*operands("300x264x520"), layout))
    for view in VIEWS.values():
        run_checked(r.matmul, *map(view, operands("300x264x520")))


@pytest.mark.gpu
@every_module
def test_float32_without_tf32_on_the_gpu(module):
    for shape in ("130x70x95", "256x256x256"):
        run_checked(launcher(module), *operands(shape, "float32", "normal"), **small(module))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("r", RUNGS, ids=lambda r: r.name)
def test_the_same_product_gives_the_same_bits(r, dtype):
    a, b = operands("1000x1030x2000", dtype, "normal")
    first = r.matmul(a, b)
    assert all(torch.equal(first, r.matmul(a, b)) for _ in range(3))


@pytest.mark.gpu
@pytest.mark.parametrize("shape", ["16x4096x4096", "512x512x16384"])
def test_parts_that_the_next_call_overwrites_are_added_up_before(shape):
    products = [operands(shape, "float16", "normal", seed) for seed in (1, 2)]
    wanted = [triton_split_k.matmul(a, b, overlap=False) for a, b in products]
    got = [triton_split_k.matmul(*products[turn % 2]) for turn in range(60)]
    assert all(torch.equal(c, wanted[turn % 2]) for turn, c in enumerate(got))


@pytest.mark.sample(3)
@pytest.mark.parametrize("layout", LAYOUTS)
@every_module
def test_matrices_that_lie_by_rows_or_by_columns(module, layout):
    run_checked(launcher(module), *as_layout(*operands(), layout), **small(module))


VIEWS = {
    "every second column": lambda x: torch.stack([x, -x], dim=2).flatten(1)[:, ::2],
    "every second row": lambda x: torch.stack([x, -x], dim=1).flatten(0, 1)[::2],
    "a part of a larger one": lambda x: torch.nn.functional.pad(x, (3, 5, 2, 1))[2:-1, 3:-5],
    "beginning beside 16 bytes": lambda x: torch.cat([x[0, :1], x.flatten()])[1:].view(x.shape),
    "one row for all": lambda x: x[:1].expand(x.shape),
    "one column for all": lambda x: x[:, :1].expand(x.shape),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@every_module
def test_views_of_any_strides(module, dtype):
    """bfloat16 has float16's strides; descriptors look at the bytes of a row."""
    for name, view in VIEWS.items():
        try:
            run_checked(launcher(module), *map(view, operands(dtype=dtype)), **small(module))
        except Exception as error:
            error.add_note(f"{module}, {name}, {dtype}")
            raise


@pytest.mark.sample(3)
@every_dtype
@every_module
def test_out_may_be_a_view_and_what_lies_around_it_stays(module, dtype):
    a, b = operands(dtype=dtype)
    wanted = launcher(module)(a, b, **small(module))
    for view in (lambda room: room[2:39, 3:56], lambda room: room[1:54, 4:41].T):
        room = torch.full((60, 60), -7.0, dtype=a.dtype, device=PLACE)
        out = view(room)
        assert launcher(module)(a, b, out=out, **small(module)) is out
        assert torch.equal(out, wanted)
        out.fill_(-7.0)
        assert bool((room == -7.0).all())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@every_module
def test_products_are_summed_in_float32(module, dtype):
    # Sums of some thousand: in float16 every addition would be rounded, in bfloat16 most lost.
    a, b = (x.abs() for x in operands("16x16x2048", dtype))
    run_checked(launcher(module), a, b, **small(module))


@pytest.mark.sample(4)
@those_with("group_m")
@pytest.mark.parametrize("group_m", [1, 2, 3, 100])
def test_any_group_gives_the_same_product(module, group_m):
    run_checked(launcher(module), *operands("150x90x40"), group_m=group_m, **small(module))


@those_with("hints", "mask_k")
@pytest.mark.parametrize("hints", [False, True])
@pytest.mark.parametrize("mask_k", [False, True, None])
def test_ingredients_can_be_switched_off(module, hints, mask_k):
    options = {"hints": hints, "mask_k": mask_k, **small(module)}
    run_checked(launcher(module), *operands("72x56x64"), **options)


@pytest.mark.parametrize("shape", ["70x56x64", "72x50x64", "4x4x4", "75x45x30"])
@those_with("hints")
def test_a_hint_that_is_false_is_refused(module, shape):
    with pytest.raises(ValueError, match="hints=True promises M and N that 8 divides, got M="):
        launcher(module)(*operands(shape), hints=True, **small(module))
    run_checked(launcher(module), *operands("68x52x64", "float32"), hints=True, **small(module))


@those_with("programs")
@pytest.mark.parametrize("programs", [1, 3, 1000])
def test_any_number_of_programs_gives_the_same_product(module, programs):
    run_checked(launcher(module), *operands("150x90x40"), programs=programs, **small(module))


# --- planted faults -------------------------------------------------------------------------------

NO_SUM = ("tl.dot(a_values, b_values, acc,", "tl.dot(a_values, b_values,")
FAULTS = {
    "K from the second block on": [("range(0, K, BLOCK_K)", "range(BLOCK_K, K, BLOCK_K)")],
    "K without its last block": [("range(0, K, BLOCK_K)", "range(0, K - BLOCK_K, BLOCK_K)")],
    "sums that do not go on": [NO_SUM],
    "sums in float16": [
        ("BLOCK_N), tl.float32)", "BLOCK_N), tl.float16)"),
        NO_SUM,
        ("acc = tl.dot(", "acc += tl.dot("),
        ("input_precision=PRECISION)", "input_precision=PRECISION).to(tl.float16)"),
    ],
}


@pytest.mark.skipif(ON_GPU, reason="it would compile each variant")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("module", ["triton_block_pointers", "triton_swizzled"])
def test_a_fault_in_the_kernel_is_caught(module, fault):
    home = import_module(f"tiled_matmul.ladder.{module}")
    wrong = getattr(home, f"{module}_kernel")
    for old, new in FAULTS[fault]:
        wrong = variants.edited(wrong, old, new)
    a, b = (x.abs() for x in operands("20x20x2048"))
    with pytest.raises(MatmulError):
        run_checked(variants.matmul_with(home, wrong), a, b, **small(module))


# --- refused --------------------------------------------------------------------------------------

POWER = "must be a power of two from 16 on, got"
BLOCKS = [
    ((48, 64, 64), ValueError, f"BLOCK_M {POWER} 48"),
    ((64, 8, 64), ValueError, f"BLOCK_N {POWER} 8"),
    ((64, 64, 1), ValueError, f"BLOCK_K {POWER} 1"),
    ((64, 64, 0), ValueError, "BLOCK_K must be at least 1, got 0"),
    ((-64, 64, 64), ValueError, "BLOCK_M must be at least 1, got -64"),
    ((64, 64, 64.0), TypeError, "BLOCK_K must be an int, got 64.0"),
    ((64, 64), TypeError, r"block must be \(BLOCK_M, BLOCK_N, BLOCK_K\), got \(64, 64\)"),
    (64, TypeError, r"block must be \(BLOCK_M, BLOCK_N, BLOCK_K\), got 64"),
]


@pytest.mark.parametrize(("block", "error", "message"), BLOCKS)
@pytest.mark.parametrize("module", [m for m in MODULES if takes(m, "block") and m not in SMALL])
def test_blocks_that_triton_cannot_multiply_are_quoted(module, block, error, message):
    with pytest.raises(error, match=message):
        launcher(module)(*operands("5x6x7"), block=block)


OPTIONS = [
    ("num_warps", 3, ValueError, "num_warps must be one of 1, 2, 4, 8, 16, got 3"),
    ("num_warps", 32, ValueError, "num_warps must be one of 1, 2, 4, 8, 16, got 32"),
    ("num_warps", 0, ValueError, "num_warps must be at least 1, got 0"),
    ("num_warps", "4", TypeError, "num_warps must be an int, got '4'"),
    ("num_stages", 0, ValueError, "num_stages must be at least 1, got 0"),
    ("group_m", 0, ValueError, "group_m must be at least 1, got 0"),
    ("group_m", -8, ValueError, "group_m must be at least 1, got -8"),
    ("group_m", 1.5, TypeError, "group_m must be an int, got 1.5"),
    ("group_m", 2**31, ValueError, r"group_m=2147483648 times 1 tiles along N is 2\^31 or more"),
    ("mask_k", False, ValueError, "mask_k=False reads beyond K=7, no multiple of BLOCK_K=64"),
    ("programs", 0, ValueError, "programs must be at least 1, got 0"),
    ("splits", 0, ValueError, "splits must be at least 1, got 0"),
    pytest.param(
        *("overlap", True, ValueError, "overlap=True needs a GPU of compute capability 9.0"),
        marks=pytest.mark.skipif(
            ON_GPU and triton_split_k.can_overlap(), reason="this GPU can overlap"
        ),
    ),
]


@pytest.mark.parametrize(("name", "value", "error", "message"), OPTIONS)
@every_module
def test_options_that_cannot_be_are_quoted(module, name, value, error, message):
    if takes(module, name):
        with pytest.raises(error, match=message):
            launcher(module)(*operands("5x6x7"), **{name: value})
    else:
        # In Gluon, a block says how many warps there are.
        fixed = ("num_stages",) if module.startswith("gluon_") else ("num_warps", "num_stages")
        fixed = fixed if module != "gluon_tile" else ()
        assert name not in fixed or not takes(module, "block")


@every_module
def test_an_out_whose_elements_are_one_is_quoted(module):
    a, b = operands("5x6x7")
    folded = torch.empty(1, 6, dtype=a.dtype, device=PLACE).expand(5, 6)
    with pytest.raises(ValueError, match=r"one in memory: shape \(5, 6\) with strides \(0, 1\)"):
        launcher(module)(a, b, out=folded)
    line = torch.empty(40, dtype=a.dtype, device=PLACE)
    with pytest.raises(ValueError, match=r"one in memory: shape \(5, 6\) with strides \(5, 1\)"):
        launcher(module)(a, b, out=line.as_strided((5, 6), (5, 1)))
    woven = torch.empty(5, 12, dtype=a.dtype, device=PLACE)  # each column of its own: fine
    launcher(module)(a, b, out=woven[:, ::2])


@every_module
def test_an_out_that_overlaps_an_input_is_refused(module):
    room = torch.zeros(100, dtype=torch.float16, device=PLACE)
    a, b = operands("5x6x7")
    mine = room[:35].view(5, 7)
    with pytest.raises(ValueError, match="shares memory with a"):
        launcher(module)(mine, b, out=room[30:60].view(5, 6))
    out = launcher(module)(mine, b, out=room[35:65].view(5, 6))
    assert bool((out == 0).all())


@every_module
def test_tensors_elsewhere_are_named(module, monkeypatch):
    a, b = operands("5x6x7")
    with pytest.raises(ValueError, match=f"a lies on meta, this back end needs it on {PLACE}"):
        launcher(module)(a.to("meta"), b)
    with pytest.raises(ValueError, match="b lies on meta"):
        launcher(module)(a, b.to("meta"))
    with pytest.raises(ValueError, match="out lies on meta"):
        launcher(module)(a, b, out=torch.empty(5, 6, dtype=a.dtype, device="meta"))
    if ON_GPU:
        with pytest.raises(ValueError, match="a lies on cpu, this back end needs it on cuda"):
            launcher(module)(a.cpu(), b.cpu())
    else:
        monkeypatch.setattr(backend, "select", lambda: backend.Backend("gpu", "for a test"))
        with pytest.raises(ValueError, match="a lies on cpu, this back end needs it on cuda"):
            launcher(module)(a, b)


@pytest.mark.gpu
@pytest.mark.gpus
@every_module
def test_tensors_on_two_gpus_are_named(module):
    a, b = operands("5x6x7")
    with pytest.raises(ValueError, match="a lies on cuda:0 and b on cuda:1"):
        launcher(module)(a, b.to("cuda:1"))


def test_a_grid_taller_than_a_gpu_allows_is_refused():
    tall = torch.zeros(1, 1, dtype=torch.float16, device=PLACE).expand(16 * 65536, 1)
    one = torch.zeros(1, 1, dtype=torch.float16, device=PLACE)
    message = "1048576 elements in blocks of 16 need 65536 programs; a GPU allows 65535 along y"
    with pytest.raises(ValueError, match=message):
        launcher("triton_block_pointers")(tall, one, block=(16, 16, 16))


def test_steps_along_k_that_need_more_than_32_bits_are_refused():
    a, b = operands("5x6x2")
    far = torch.empty(2**27 + 6, dtype=a.dtype, device=PLACE).as_strided((2, 6), (2**27, 1))
    message = r"b has the stride 134217728 along K: 16 such steps are 2\^31 or more"
    with pytest.raises(ValueError, match=message):
        launcher("triton_swizzled")(a, far, block=(16, 16, 16))
    with pytest.raises(ValueError, match="a has the stride 134217728"):
        launcher("triton_swizzled")(far.T, b, block=(16, 16, 16))


def test_a_block_that_needs_more_than_the_gpu_has_is_a_value_error():
    from triton.runtime.errors import OutOfResources

    class Greedy:
        __name__ = "greedy_kernel"

        def __getitem__(self, grid):
            def run(*arguments, **options):
                raise OutOfResources(262144, 232448, "shared memory")

            return run

    message = "greedy_kernel with {'num_warps': 8} needs more .* Required: 262144"
    with pytest.raises(ValueError, match=message):
        programs.launch(Greedy(), (1,), num_warps=8)


@pytest.mark.gpu
@those_with("block", "num_stages")
def test_a_block_that_does_not_fit_is_refused_before_the_launch(module):
    if module in SMALL:
        return
    with pytest.raises(ValueError, match="needs more than this GPU has"):
        launcher(module)(*operands("256x256x256"), block=(256, 256, 128), num_stages=6)


# --- tuned ----------------------------------------------------------------------------------------

FIRST, SECOND, HUGE = Setting((32, 32, 16), 4, 2), Setting((16, 32, 32), 4, 2), (256, 256, 128)


class Clock:
    """Stands for autotune's clock: each call takes what was said before, or does not fit."""

    def __init__(self, *outcomes):
        self.outcomes = iter(outcomes)

    def __call__(self, call, warmup, rep, quantiles):
        call()
        outcome = next(self.outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return [outcome] * len(quantiles)


@pytest.fixture
def no_pins():
    triton_tuned.forget()
    yield
    triton_tuned.forget()


def clocked(monkeypatch, *outcomes):
    import triton.testing

    monkeypatch.setattr(triton.testing, "do_bench", Clock(*outcomes))
    if not ON_GPU:
        chosen = backend.Backend("gpu", "for a test", backend.Gpu("a GPU", (9, 0), "13.0"))
        monkeypatch.setattr(triton_tuned, "select", lambda: chosen)


def test_the_fastest_wins_is_pinned_and_what_does_not_fit_is_told(monkeypatch, no_pins):
    from triton.runtime.errors import OutOfResources

    third = Setting((32, 64, 16), 4, 2)
    no_room = OutOfResources(294912, 232448, "shared memory")
    clocked(monkeypatch, 2.0, no_room, 1.0)  # and nothing after: a second tuning would stop
    a, b = operands()
    found = triton_tuned.choice_for(a, b, space=(FIRST, SECOND, third))
    assert found.setting == third and found.times_ms == {FIRST: 2.0, third: 1.0}
    assert list(found.refused) == [SECOND] and "294912" in found.refused[SECOND]
    assert "the fastest of 2; 1 did not fit" in str(found) and found.seconds > 0
    assert triton_tuned.choice_for(a, b, space=(FIRST, SECOND, third)) is found
    run_checked(triton_tuned.matmul, a, b, space=(FIRST, SECOND, third))
    with pytest.raises(StopIteration):  # another layout is another call
        triton_tuned.choice_for(a.T.contiguous().T, b, space=(FIRST, SECOND, third))


def test_a_space_in_which_nothing_fits_is_refused_with_its_settings(monkeypatch, no_pins):
    from triton.runtime.errors import OutOfResources

    class NeverFits:
        def __init__(self, kernel):
            self.fn = kernel
            self.arg_names = kernel.arg_names

        def run(self, *arguments, **options):
            raise OutOfResources(294912, 232448, "shared memory")

    clocked(monkeypatch)
    kernel = NeverFits(triton_tuned.triton_swizzled.triton_swizzled_kernel)
    monkeypatch.setattr(triton_tuned.triton_swizzled, "triton_swizzled_kernel", kernel)
    message = "no setting of the space fits .32×32×16, 4 warps, 2 stages; 16×32×32.*294912"
    with pytest.raises(ValueError, match=message):
        triton_tuned.choice_for(*operands(), space=(FIRST, SECOND))


def test_every_setting_is_timed_with_its_own_mask(monkeypatch, no_pins):
    masks = []
    clocked(monkeypatch, 1.0, 1.0)
    import triton

    original = triton.Config

    def listening(sizes, **options):
        masks.append((sizes["BLOCK_K"], sizes["MASK_K"]))
        return original(sizes, **options)

    monkeypatch.setattr(triton, "Config", listening)
    triton_tuned.choice_for(*operands("37x53x48"), space=(FIRST, SECOND))
    assert masks == [(16, False), (32, True)]


def test_without_a_clock_the_first_setting_is_taken():
    a, b = operands()
    ((_, arguments, options),) = programs.launched(triton_tuned.matmul, a, b, space=(SECOND, FIRST))
    assert arguments[12:15] == SECOND.block and options["num_stages"] == SECOND.num_stages
    assert str(Tuned(FIRST)) == "32×32×16, 4 warps, 2 stages: the first, not timed"
    if not ON_GPU:
        assert triton_tuned.choice_for(a, b) == Tuned(triton_tuned.SPACE[0])
        assert triton_tuned.choice_for(a.float(), b.float()).setting.block == (64, 64, 16)


SPACES = [
    ((), ValueError, "there is no setting to choose from"),
    ((FIRST, FIRST), ValueError, "a setting stands twice"),
    (((32, 32, 16),), TypeError, r"a space holds Settings, got \(32, 32, 16\)"),
    ((Setting((48, 32, 16), 4, 2),), ValueError, f"BLOCK_M {POWER} 48"),
    ((Setting((32, 32, 16), 3, 2),), ValueError, "num_warps must be one of"),
]


@pytest.mark.parametrize(("space", "error", "message"), SPACES)
def test_spaces_that_cannot_be_are_quoted(space, error, message):
    with pytest.raises(error, match=message):
        triton_tuned.matmul(*operands("5x6x7"), space=space)


@pytest.mark.gpu
def test_on_a_gpu_a_space_is_timed_and_what_is_too_large_refused(no_pins):
    a, b = operands("512x512x512")
    huge = Setting(HUGE, 8, 6)
    found = triton_tuned.choice_for(a, b, space=(FIRST, huge, SECOND))
    assert list(found.refused) == [huge] and "shared memory" in found.refused[huge]
    assert set(found.times_ms) == {FIRST, SECOND}
    assert found.times_ms[found.setting] == min(found.times_ms.values())
    with pytest.raises(ValueError, match="needs more than this GPU has"):
        triton_tuned.matmul(a, b, space=(huge,))


@pytest.mark.gpu
@pytest.mark.parametrize("setting", [*SPACE, *SMALL_SPACE], ids=str)
def test_every_setting_of_the_spaces_is_right_or_does_not_fit(setting):
    dtype = "float16" if setting in SPACE else "float32"
    a, b = operands("300x264x520", dtype, "normal")
    try:
        run_checked(triton_tuned.matmul, a, b, space=(setting,))
    except ValueError as error:
        assert "needs more than this GPU has" in str(error)


# --- warps with different work --------------------------------------------------------------------


IN_VAIN = [
    ("37x53x70", "float32", {}, "float32, 128 rows, 4 warps, 2 stages, K=70"),
    ("37x53x70", "float16", {"num_warps": 8}, "float16, 128 rows, 8 warps, 2 stages, K=70"),
    ("37x53x70", "float16", {"block": (64, 64, 64)}, "float16, 64 rows, 4 warps, 2 stages, K=70"),
    ("37x53x70", "float16", {"num_stages": 1}, "float16, 128 rows, 4 warps, 1 stages, K=70"),
    ("37x53x70", "float16", {"num_stages": 5}, "float16, 128 rows, 4 warps, 5 stages, K=70"),
    ("37x53x1", "float16", {}, "float16, 128 rows, 4 warps, 2 stages, K=1"),
]


@pytest.mark.parametrize(("shape", "dtype", "options", "message"), IN_VAIN)
def test_warps_that_would_not_get_different_work_are_refused(shape, dtype, options, message):
    options = {"block": (128, 64, 64), "num_warps": 4, "specialise": True} | options
    with pytest.raises(ValueError, match=f"specialise=True needs .* 9.0; got torch.{message}"):
        launcher("triton_specialised")(*operands(shape, dtype), **options)


@pytest.mark.parametrize("capability", [(8, 0), (10, 0), (12, 0)])
def test_other_gpus_are_not_asked_for_different_work(capability, monkeypatch):
    a, b = operands()
    block = triton_specialised.BLOCK
    hopper = backend.Backend("gpu", "for a test", backend.Gpu("a GPU", (9, 0), "13.0"))
    monkeypatch.setattr(specialise, "select", lambda: hopper)
    assert triton_specialised.specialises(block, 4, 3, a)
    other = backend.Backend("gpu", "for a test", backend.Gpu("one GPU", capability, "13.0"))
    monkeypatch.setattr(specialise, "select", lambda: other)
    assert not triton_specialised.specialises(block, 4, 3, a)
    version = ".".join(map(str, capability))
    with pytest.raises(ValueError, match=f"9.0; got .* K=70 and one GPU, {version}$"):
        triton_specialised.matmul(a, b, block=block, num_warps=4, specialise=True)


@pytest.mark.parametrize("given", ["no", 1, 0.0])
def test_a_switch_is_on_off_or_left_alone(given):
    with pytest.raises(TypeError, match=f"must be True, False or None, got {given!r}"):
        triton_specialised.matmul(*operands(), specialise=given)


def test_sizes_that_no_descriptor_in_a_kernel_can_hold_are_quoted():
    long = torch.zeros(1, 1, dtype=torch.float16, device=PLACE).expand(2**31, 1)
    with pytest.raises(ValueError, match=r"sizes under 2\^31, got \(1, 1, 2147483648\)"):
        triton_specialised.matmul(long.T, long)


SPECIALISED = [((128, 256, 64), n) for n in (2, 3)] + [((256, 128, 64), n) for n in (2, 3)]
SPECIALISED += [((128, columns, 64), n) for columns in (64, 128) for n in (2, 3, 4)]
SPECIALISED += [((128, 128, 128), 3), ((128, 32, 32), 4)]


@pytest.mark.gpu
@pytest.mark.parametrize(("block", "stages"), SPECIALISED)
def test_warps_with_different_work_are_right_in_every_run(block, stages):
    a, b = operands("1800x2000x1992")
    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("warps get different work on 9.0 alone")
    matmul = partial(triton_specialised.matmul, block=block, num_warps=4, num_stages=stages)
    first = run_checked(partial(matmul, specialise=True), a, b)
    assert all(torch.equal(first, matmul(a, b, specialise=True)) for _ in range(20))


# --- a kernel in Gluon ----------------------------------------------------------------------------

GLUON_BLOCKS = [
    ((192, (128, 64), 64), 4),
    ((192, (64, 32), 64), 5),
    ((192, 128, 64), 5),
    ((128, 256, 64), 4),
    ((128, (128, 32), 32), 3),
    ((256, (128, 64), 64), 3),
    ((64, (32, 16), 64), 2),
    ((64, 256, 64), 2),
    ((64, 16, 128), 8),
]
every_block = pytest.mark.parametrize(("block", "stages"), GLUON_BLOCKS)


@pytest.mark.sample(9)
@every_block
def test_every_block_of_gluon_is_compiled_without_spills(block, stages):
    jobs = {}
    for layout in ("nn", "tt"):
        a, b = as_layout(*operands("640x656x648"), layout)
        made = programs.launched(
            gluon_shapes.matmul, a, b, block=block, num_stages=stages, blocks=1
        )
        [jobs[layout]] = made
    for code in tile_codes(jobs, (9, 0)).values():
        assert code.count("wgmma") and code.count("warp specialisation") == 1
        assert code.count("TMA loads") and code.count("TMA stores")
        assert not code.spilled_bytes
        # Triton adds the barriers of the ring, and of its own.
        assert 0 <= code.shared_bytes - gluon.tile_of(block, stages).shared_bytes < 1024


@pytest.mark.gpu
@every_block
def test_every_block_of_gluon_is_right_in_every_run(block, stages):
    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("Gluon's wgmma is for 9.0 alone")
    for shape in ("1x1x1", "37x53x70", "500x330x2100", "1800x2000x1992"):
        for layout in LAYOUTS if shape != "1x1x1" else ("nn",):
            a, b = as_layout(*operands(shape), layout)
            for down in (False, True):
                options = {"block": block, "num_stages": stages, "down": down, "blocks": 1}
                matmul = partial(gluon_shapes.matmul, **options)
                first = run_checked(matmul, a, b)
                assert all(torch.equal(first, matmul(a, b)) for _ in range(5))


@pytest.mark.gpu
def test_programs_of_gluon_take_all_tiles():
    for number in (1, 7, 1000):
        for group_m in (1, 3, 50):
            options = {"programs": number, "group_m": group_m}
            run_checked(partial(gluon_shapes.matmul, **options), *operands("900x700x200"))


@pytest.mark.parametrize(
    ("block", "stages", "message"),
    [
        ((96, 128, 64), 4, "1 to 3 times 64 or 128 rows, got 96"),
        ((512, 128, 64), 4, "1 to 3 times 64 or 128 rows, got 512"),
        ((0, 128, 64), 4, "BLOCK_M must be at least 1, got 0"),
        ((192, 96, 64), 4, "wide must be one of 16, 32, 64, 128, 256, got 96"),
        ((192, (128, 8), 64), 4, "narrow must be one of 0, 16, 32, 64, 128, 256, got 8"),
        ((192, (128, 64), 16), 4, "k must be one of 32, 64, 128, got 16"),
        ((192, (128, 64), 64), 0, "num_stages must be at least 1, got 0"),
        ((192, (128, 64), 64), 5, "takes 270336 bytes of shared memory; there are 232448"),
        ((192, 256, 64), 2, "has 128 sums for each thread; 120 are possible"),
    ],
)
def test_a_block_that_cannot_be_is_refused_before_anything_runs(block, stages, message):
    out = torch.full((5, 6), 3.0, dtype=torch.float16, device=PLACE)
    with pytest.raises(ValueError, match=message):
        gluon_shapes.matmul(*operands("5x6x7"), out, block=block, num_stages=stages)
    assert bool((out == 3).all())


@pytest.mark.parametrize("block", [192, (192, 64), (192, (64, 64, 64), 64), "192x192x64"])
def test_what_is_no_block_is_quoted(block):
    with pytest.raises(TypeError, match=re.escape(repr(block))):
        gluon_shapes.matmul(*operands("5x6x7"), block=block)


@pytest.mark.parametrize(
    ("capability", "dtype", "kernel"),
    [((9, 0), "float16", "gluon_shapes_kernel"), ((9, 0), "bfloat16", "gluon_shapes_kernel")]
    + [((9, 0), "float32", "triton_descriptors_kernel")]
    + [(cc, "float16", "triton_descriptors_kernel") for cc in ((8, 0), (10, 0), (12, 0))],
)
def test_elsewhere_descriptors_take_its_place(capability, dtype, kernel, monkeypatch):
    here = backend.Backend("gpu", "for a test", backend.Gpu("a GPU", capability, "13.0"))
    for module in (gluon, programs):
        monkeypatch.setattr(module, "select", lambda: here)
    launches = programs.launched(gluon_shapes.matmul, *operands("70x80x90", dtype))
    assert [launch[0].fn.__name__ for launch in launches] == [kernel]


# --- Triton's versions ----------------------------------------------------------------------------


def test_no_launch_warns_and_other_warnings_pass():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for module in MODULES:
            launcher(module)(*operands("5x6x7"))
    with pytest.warns(UserWarning, match="of something else"), programs.without_notice():
        warnings.warn("of something else", stacklevel=1)


# --- the rule that picks --------------------------------------------------------------------------

PICKED = [
    ((512, 512, 512), "triton_descriptors", {"block": (64, 64, 128), "num_stages": 3}),
    ((1024, 1024, 1024), "triton_descriptors", {"block": (64, 128, 128)}),
    ((2048, 2048, 2048), "triton_persistent", {"num_stages": 3, "group_m": 4}),
    ((4096, 4096, 4096), "triton_persistent", {"num_stages": 4, "group_m": 12}),
    ((16, 4096, 4096), "triton_split_k", {"block": (16, 128, 128), "splits": 4}),
    ((1, 100000, 64), "triton_split_k", {"splits": 1}),
    ((5, 7, 300), "triton_split_k", {"block": (16, 128, 128), "splits": 3}),
    ((128, 4096, 4096), "triton_descriptors", {"block": (64, 64, 128), "num_stages": 6}),
    ((200, 6144, 2048), "triton_two_widths", {"block": (64, (128, 64), 64), "down": False}),
    ((300, 5000, 1000), "triton_descriptors", {"block": (128, 128, 64)}),
    ((512, 512, 16384), "triton_split_k", {"block": (64, 128, 128), "splits": 4}),
    ((3072, 768, 4096), "triton_two_widths", {"block": (64, (256, 32), 64), "down": True}),
    ((1500, 1500, 4096), "triton_two_widths", {"block": (64, (256, 64), 64), "down": False}),
]


@pytest.mark.parametrize(("shape", "module", "options"), PICKED)
def test_the_rule_that_picks_is_the_one_that_is_written(shape, module, options):
    choice = rule.pick(*shape, 132)
    assert choice.module == module and options.items() <= choice.options.items()
    assert str(choice).startswith(f"{module}(") and not choice.turned


def test_a_model_of_clocks_decides():
    shape, multiprocessors = (3072, 768, 4096), 132
    picked = rule.pick(*shape, multiprocessors)
    # 132 tiles of 288 × 64, a wave; 64 steps, in each 768 clocks of shared memory.
    wanted = costs.START + 64 * 768
    assert costs.clocks(picked, *shape, multiprocessors) == wanted
    choices = list(candidates(*shape, multiprocessors))
    assert picked in choices
    assert all(costs.clocks(c, *shape, multiprocessors) >= wanted for c in choices)
    # On 72 multiprocessors 128 × 256 makes a full wave, and the others several.
    assert rule.pick(*shape, 72).module == "triton_persistent"


@pytest.mark.gpu
@pytest.mark.parametrize("index", range(18))
def test_every_candidate_is_right_on_the_gpu(index):
    choices = list(candidates(500, 330, 2100, 132))
    assert len(choices) > index
    for choice in choices[index::18]:
        run_checked(partial(launcher(choice.module), **choice.options), *operands("500x330x2100"))


@pytest.mark.parametrize(
    ("capability", "bytes_each", "block"),
    [((7, 5), 2, (64, 64, 16)), ((9, 0), 4, (64, 64, 16)), ((8, 0), 2, (128, 128, 64))]
    + [((12, 0), 2, (128, 128, 64))],
)
def test_without_the_engine_or_tensor_cores_tiles_are_smaller(capability, bytes_each, block):
    choice = rule.pick(4096, 4096, 4096, 132, capability, bytes_each)
    assert choice.module == "triton_swizzled" and choice.options["block"] == block


def test_few_columns_are_made_as_few_rows():
    choice = rule.pick(4096, 16, 4096, 132)
    assert choice.turned and str(choice).endswith(" of the transposes")
    assert choice.options == rule.pick(16, 4096, 4096, 132).options
    assert not rule.pick(16, 16, 4096, 132).turned
    a, b = operands("16x4000x512")  # whose tiles have 16 columns, of the transpose
    assert triton_best.choice_for(a, b).turned
    run_checked(triton_best.matmul, a, b)


def test_what_is_withheld_is_told_and_not_launched():
    a, b = operands("5x6x7")
    out = torch.full((5, 6), 3.0, dtype=a.dtype, device=PLACE)
    with withheld() as launches:
        launcher("triton_swizzled")(a, b, out)
    ((kernel, grid, block, arguments, options),) = launches
    assert kernel.fn.__name__ == "triton_swizzled_kernel" and arguments[:2] == (a, b)
    assert grid == (1,) and block is None and options["num_stages"] > 0 and bool((out == 3).all())
    launcher("triton_swizzled")(a, b, out)
    assert bool((out != 3).any())
