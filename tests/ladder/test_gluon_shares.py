"""Equal shares in Gluon: right for every way to cut the steps, without a fault in any order."""

import pytest
import torch
from gluon_operands import PLACE, here, operands

from tiled_matmul.check import assert_matmul, run_checked
from tiled_matmul.kit import withheld
from tiled_matmul.kit.backend import select
from tiled_matmul.kit.programs import launched
from tiled_matmul.kit.shares import program_of
from tiled_matmul.ladder import gluon_shares
from tiled_matmul.microscope.compiled.triton import tile_codes
from tiled_matmul.microscope.gluon import trace_gluon

SHAPES = [(1, 1, 1), (128, 256, 64), (129, 257, 65), (300, 40, 700), (40, 520, 8), (500, 7, 333)]
BLOCKS = [{}, {"block": (128, 128, 64), "num_stages": 6}]
KERNELS = ["gluon_shares_kernel", "add_parts_kernel"]


def names(pair, **options):
    return [kernel.fn.__name__ for kernel, *_ in launched(gluon_shares.matmul, *pair, **options)]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_it_multiplies(shape, dtype):
    a, b = operands(shape, dtype)
    assert_matmul(run_checked(gluon_shares.matmul, a, b), a, b)


@pytest.mark.parametrize("options", BLOCKS, ids=str)
@pytest.mark.parametrize("whole", [None, 0, 1, 2, 1000])
@pytest.mark.parametrize("programs", [1, 2, 7, 1000])
def test_programs_share_the_steps(programs, whole, options):
    a, b = operands((600, 300, 300))  # 10 or 15 tiles of 5 steps
    options = options | {"programs": programs, "whole": whole}
    assert_matmul(run_checked(gluon_shares.matmul, a, b, **options), a, b)


@pytest.mark.parametrize("programs", [1, 2, 3, 7, 30])
@pytest.mark.parametrize("shape", [(100, 200, 2000), (400, 500, 64), (400, 500, 129)], ids=str)
def test_one_tile_and_few_steps(shape, programs):
    a, b = operands(shape, "bfloat16")
    assert_matmul(run_checked(gluon_shares.matmul, a, b, programs=programs, whole=0), a, b)


@pytest.mark.parametrize("layout", ["tn", "nt", "tt"])
@pytest.mark.parametrize("options", BLOCKS, ids=str)
def test_it_takes_operands_by_columns(options, layout):
    a, b = operands((136, 72, 200), layout=layout)
    assert_matmul(run_checked(gluon_shares.matmul, a, b, programs=3, **options), a, b)


@pytest.mark.parametrize("programs", [1, 5])
def test_it_stores_to_views_and_nowhere_else(programs):
    a, b = operands((170, 41, 96))
    whole = torch.full((180, 99), 5.0, dtype=torch.float16, device=PLACE)
    out = whole[3:173, 7:48]
    assert gluon_shares.matmul(a, b, out, programs=programs) is out
    assert_matmul(out, a, b)
    out.fill_(5.0)
    assert whole.eq(5.0).all()
    by_columns = torch.full((48, 176), 5.0, dtype=torch.float16, device=PLACE)
    out = by_columns[:41, :170].T
    assert_matmul(gluon_shares.matmul(a, b, out, programs=programs), a, b)
    out.fill_(5.0)
    assert by_columns.eq(5.0).all()


@pytest.mark.parametrize(
    "options",
    [
        {"block": (128, 64, 32), "num_stages": 2},
        {"block": (128, 16, 128), "num_stages": 3, "group_m": 1},
        {"block": (256, 128, 64), "num_stages": 3},
        {"block": (128, 32, 64), "num_stages": 2, "group_m": 2},
    ],
    ids=str,
)
def test_other_tiles(options):
    a, b = operands((300, 136, 264))
    assert_matmul(run_checked(gluon_shares.matmul, a, b, programs=4, **options), a, b)


@pytest.mark.skipif(not here(), reason="another kernel runs in its place on this GPU")
def test_every_call_returns_the_same_bits():
    a, b = operands((300, 300, 700))
    assert torch.equal(*(gluon_shares.matmul(a, b, programs=7, whole=0) for _ in range(2)))


@pytest.mark.skipif(not here(), reason="another kernel runs in its place on this GPU")
def test_parts_are_added_only_where_tiles_are_cut():
    pair = operands((512, 512, 128))  # 8 tiles of 2 steps
    assert names(pair, programs=8) == names(pair, programs=4, whole=0) == KERNELS[:1]
    assert names(operands((512, 512, 64)), programs=3, whole=0) == KERNELS[:1]  # of 1 step
    assert names(pair, programs=3, whole=0) == names(pair, programs=16) == KERNELS
    assert names(pair, programs=1000) == KERNELS  # no more programs than steps: one each
    [first, _] = withheld.of(gluon_shares.matmul, *pair, programs=1000)
    assert first.grid == (16,)


def test_the_second_kernel_knows_in_whose_run_a_step_is():
    for steps in range(1, 40):
        for programs in range(1, 45):
            share, extra = divmod(steps, programs)
            owners = [p for p in range(programs) for _ in range(share + (p < extra))]
            found = [program_of.fn(s, share, extra) for s in range(steps)]
            assert found == owners


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"block": (128, 128)}, TypeError, r"\(BLOCK_M, BLOCK_N, BLOCK_K\), got \(128, 128\)"),
        ({"block": (96, 128, 64)}, ValueError, "BLOCK_M must be one of 64, 128, 256, got 96"),
        ({"block": (128, 128, 16)}, ValueError, "BLOCK_K must be one of 32, 64, 128, got 16"),
        ({"block": (256, 256, 64)}, ValueError, "at most 128 sums for each of 128 threads"),
        ({"num_stages": 5}, ValueError, r"5 stages of .* bytes of shared memory; there are 232448"),
        ({"num_stages": 0}, ValueError, "num_stages must be at least 1, got 0"),
        ({"num_stages": 1}, ValueError, "num_stages must be 2 or more, got 1"),
        ({"group_m": 0}, ValueError, "group_m must be at least 1, got 0"),
        ({"programs": 0}, ValueError, "programs must be at least 1, got 0"),
        ({"programs": 1.5}, TypeError, "programs must be an int, got 1.5"),
        ({"whole": -1}, ValueError, "whole must be None or an int from 0 on, got -1"),
        ({"whole": "all"}, ValueError, "whole must be None or an int from 0 on, got 'all'"),
        ({"whole": True}, ValueError, "whole must be None or an int from 0 on, got True"),
    ],
)
def test_what_cannot_be_is_refused(options, error, message):
    out = torch.full((64, 64), 3.0, dtype=torch.float16, device=PLACE)
    with pytest.raises(error, match=message):
        gluon_shares.matmul(*operands((64, 64, 64)), out, **options)
    assert out.eq(3.0).all()


def test_steps_are_counted_in_32_bits():
    one = torch.ones((1, 1), dtype=torch.float16, device=PLACE)
    a, b = one.expand(300, 2**36), one.expand(2**36, 1)
    message = r"3 tiles of 1073741824 steps each: that is 2\^31 steps or more"
    with pytest.raises(ValueError, match=message):
        gluon_shares.matmul(a, b)


@pytest.mark.skipif(select().on_gpu, reason="the interpreter takes the place of a GPU")
@pytest.mark.parametrize("seed", [None, 1, 2, 3])
@pytest.mark.parametrize("programs", [2, 5, 60])
def test_it_has_no_fault_in_any_order(programs, seed):
    pair = operands((264, 264, 520), layout="tn")
    first, *_ = withheld.of(gluon_shares.matmul, *pair, programs=programs)
    trace = trace_gluon(first.kernel, first.grid, *first.arguments, seed=seed, **first.options)
    assert trace.ok and str(trace).endswith("every role came to its end.")


@pytest.fixture(scope="module")
def codes():
    """The code of both kernels, with the second one's early start, as a GPU gets it."""
    one = torch.empty((1024, 1024), dtype=torch.float16, device=PLACE)
    jobs = {}
    for number, options in enumerate(BLOCKS):
        for layout, pair in (("nn", (one, one)), ("tt", (one.T, one.T))):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(gluon_shares, "can_overlap", lambda: True)
                made = launched(gluon_shares.matmul, *pair, programs=100, **options)
            jobs |= {(number, layout, i): job for i, job in enumerate(made)}
    return tile_codes(jobs)


@pytest.mark.skipif(not here(), reason="another kernel runs in its place on this GPU")
def test_what_it_compiles_to(codes):
    for (number, layout, i), code in codes.items():
        assert code.spilled_bytes == 0, (number, layout, i)
        if i == 0:
            assert "wgmma.mma_async" in code.ptx and "setmaxnreg" in code.ptx
            assert "cp.async.bulk.tensor.2d.shared" in code.ptx
        else:
            assert "griddepcontrol.wait" in code.ptx
