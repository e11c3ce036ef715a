"""Chapter 13's rungs in Gluon: right for every kind of operand, refused before anything runs."""

import inspect
import re
from functools import partial

import pytest
import torch
import triton
from gluon_operands import PLACE, here, operands

from tiled_matmul.check import assert_matmul, run_checked
from tiled_matmul.kit.backend import select
from tiled_matmul.kit.gluon import multicasts
from tiled_matmul.kit.programs import can_overlap, launched
from tiled_matmul.kit.withheld import withheld
from tiled_matmul.ladder import (
    COMPILED,
    LADDER,
    gluon_blackwell,
    gluon_cluster,
    gluon_persistent,
    gluon_shapes,
    rung,
)
from tiled_matmul.languages import GLUON
from tiled_matmul.microscope.compiled.triton import tile_codes

RUNGS = [r.name for r in (*LADDER, *COMPILED) if r.language is GLUON]
STEPWISE = RUNGS[:5]  # chapter 13's
HOPPERS = [name for name in RUNGS if name != "gluon_blackwell"]
NEW = tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 8)
GROUPED = ["gluon_specialised", "gluon_persistent", "gluon_cluster"]
SHAPES = [(1, 1, 1), (128, 256, 64), (129, 257, 65), (300, 40, 700), (40, 520, 8), (500, 7, 333)]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", RUNGS)
def test_it_multiplies(name, shape, dtype):
    a, b = operands(shape, dtype)
    assert_matmul(run_checked(rung(name).matmul, a, b), a, b)


@pytest.mark.parametrize("layout", ["tn", "nt", "tt"])
@pytest.mark.parametrize("name", RUNGS)
def test_it_takes_operands_by_columns(name, layout):
    a, b = operands((136, 72, 200), layout=layout)
    assert_matmul(run_checked(rung(name).matmul, a, b), a, b)


@pytest.mark.parametrize("name", RUNGS)
def test_it_stores_to_views_and_nowhere_else(name):
    a, b = operands((70, 41, 96))
    whole = torch.full((80, 99), 5.0, dtype=torch.float16, device=PLACE)
    out = whole[3:73, 7:48]
    assert rung(name).matmul(a, b, out) is out
    assert_matmul(out, a, b)
    out.fill_(5.0)
    assert whole.eq(5.0).all()
    by_columns = torch.empty((41, 70), dtype=torch.float16, device=PLACE).T
    assert_matmul(rung(name).matmul(a, b, by_columns), a, b)


@pytest.mark.parametrize("name", GROUPED[1:])
@pytest.mark.parametrize("programs", [1, 2, 1000])
def test_programs_share_the_tiles(name, programs):
    a, b = operands((600, 300, 100))
    assert_matmul(run_checked(rung(name).matmul, a, b, programs=programs), a, b)


@pytest.mark.parametrize(
    "options",
    [
        {"block": (128, 64, 32), "num_stages": 2},
        {"block": (128, 16, 128), "num_stages": 3, "group_m": 1},
        {"block": (256, 128, 64), "num_stages": 3},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", GROUPED)
def test_other_tiles(name, options):
    a, b = operands((300, 136, 264))
    assert_matmul(run_checked(rung(name).matmul, a, b, **options), a, b)


@pytest.mark.parametrize("blocks", [2, 4])
def test_clusters_of_several_sizes(blocks):
    a, b = operands((700, 264, 300))
    assert_matmul(run_checked(gluon_cluster.matmul, a, b, blocks=blocks), a, b)


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("layout", ["nn", "tt"])
@pytest.mark.parametrize("blocks", [1, 2, 4])
@pytest.mark.parametrize("block", [(192, (128, 64), 64), (64, 256, 64), (256, 128, 32)], ids=str)
def test_tiles_of_every_kind(block, blocks, layout, down):
    a, b = operands((424, 392, 200), layout=layout)
    options = {"block": block, "blocks": blocks, "down": down, "num_stages": 3}
    assert_matmul(run_checked(gluon_shapes.matmul, a, b, **options), a, b)


THIN = [(64, (64, 32), 64), (64, 16, 128), (192, (64, 16), 64), (128, 128, 64)]


@pytest.mark.parametrize("shape", [(424, 90, 1000), (70, 16, 72), (65, 131, 8)], ids=str)
@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("splits", [2, 3, 16])
@pytest.mark.parametrize("block", THIN, ids=str)
def test_parts_of_k(block, splits, down, shape):
    a, b = operands(shape)
    options = {"block": block, "blocks": 1, "down": down, "num_stages": 3, "splits": splits}
    assert_matmul(run_checked(gluon_shapes.matmul, a, b, **options), a, b)


@pytest.mark.parametrize("layout", ["nn", "tt"])
def test_parts_of_k_in_clusters_into_views(layout):
    a, b = operands((424, 90, 1000), "bfloat16", layout)
    out = torch.empty((430, 99), dtype=a.dtype, device=PLACE)[3:427, 7:97]
    gluon_shapes.matmul(a, b, out, blocks=2, splits=3)
    assert_matmul(out, a, b)
    once = out.clone()
    gluon_shapes.matmul(a, b, out, blocks=2, splits=3)
    assert out.equal(once)


@pytest.mark.parametrize("name", ["gluon_shapes", "triton_split_k"])
def test_an_early_start_is_asked_for_by_true_false_or_none(name):
    out = torch.full((64, 64), 3.0, dtype=torch.float16, device=PLACE)
    with pytest.raises(TypeError, match="overlap must be None, True or False, got 'early'"):
        rung(name).matmul(*operands((64, 64, 64)), out, overlap="early")
    if not can_overlap():
        with pytest.raises(ValueError, match="overlap=True needs a GPU of compute capability 9.0"):
            rung(name).matmul(*operands((64, 64, 64)), out, overlap=True)
    assert out.eq(3.0).all()
    a, b = operands((70, 50, 90))
    assert_matmul(run_checked(rung(name).matmul, a, b, overlap=False), a, b)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"splits": 0}, "splits must be at least 1, got 0"),
        ({"blocks": 3}, "blocks must be one of 1, 2, 4, 8, 16, got 3"),
        ({"block": (100, 128, 64)}, "1 to 3 times 64 or 128 rows, got 100"),
        ({"block": (128, (128, 48), 64)}, "narrow must be one of 0, 16, 32, 64, 128, 256, got 48"),
        ({"num_stages": 7}, "of shared memory; there are 232448"),
        ({"num_stages": 1}, "num_stages must be 2 or more, got 1"),
        ({"block": (384, 256, 64), "num_stages": 2}, "256 sums for each thread"),
    ],
)
def test_tiles_that_cannot_be(options, message):
    out = torch.full((64, 64), 3.0, dtype=torch.float16, device=PLACE)
    with pytest.raises(ValueError, match=message):
        gluon_shapes.matmul(*operands((64, 64, 64)), out, **options)
    assert out.eq(3.0).all()


def test_without_multicast_blocks_are_alone(monkeypatch):
    monkeypatch.setattr(gluon_shapes, "multicasts", lambda: False)
    monkeypatch.setattr(gluon_shapes, "hopper", lambda a: True)
    made = []
    monkeypatch.setattr(gluon_shapes, "launch", lambda *x, **options: made.append(options))
    gluon_shapes.matmul(*operands((64, 64, 64)), blocks=4)
    assert made == [{"num_warps": 4, "num_ctas": 1, "launch_pdl": can_overlap()}]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"block": (128, 128)}, TypeError, r"\(BLOCK_M, BLOCK_N, BLOCK_K\), got \(128, 128\)"),
        ({"block": (96, 128, 64)}, ValueError, "BLOCK_M must be one of 64, 128, 256, got 96"),
        ({"block": (128, 100, 64)}, ValueError, "BLOCK_N must be one of 16, 32, 64, 128, 256"),
        ({"block": (128, 128, 16)}, ValueError, "BLOCK_K must be one of 32, 64, 128, got 16"),
        ({"block": (256, 256, 64)}, ValueError, "at most 128 sums for each of 128 threads"),
        ({"group_m": 0}, ValueError, "group_m"),
    ],
)
@pytest.mark.parametrize("name", STEPWISE)
def test_what_cannot_be_is_refused(name, options, error, message):
    out = torch.full((64, 64), 3.0, dtype=torch.float16, device=PLACE)
    with pytest.raises(error, match=message):
        rung(name).matmul(*operands((64, 64, 64)), out, **options)
    assert out.eq(3.0).all()


@pytest.mark.parametrize("name", STEPWISE[1:])
def test_a_ring_has_to_fit(name):
    pair = operands((64, 64, 64))
    with pytest.raises(
        ValueError, match=r"9 stages of .* bytes of shared memory; there are 232448"
    ):
        rung(name).matmul(*pair, num_stages=9)
    with pytest.raises(ValueError, match="num_stages"):
        rung(name).matmul(*pair, num_stages=0)


def test_a_ring_of_one_stage_cannot_run_ahead():
    with pytest.raises(ValueError, match="num_stages must be 2 or more, got 1"):
        rung("gluon_ring").matmul(*operands((64, 64, 64)), num_stages=1)


@pytest.mark.parametrize("blocks", [1, 3, 32])
def test_a_cluster_has_2_4_8_or_16_blocks(blocks):
    with pytest.raises(ValueError, match=f"blocks must be one of 2, 4, 8, 16, got {blocks}"):
        gluon_cluster.matmul(*operands((64, 64, 64)), blocks=blocks)


def test_an_older_triton_does_not_compile_a_cluster(monkeypatch):
    with withheld():  # as for the compiler
        assert multicasts() == NEW
        monkeypatch.setattr(triton, "__version__", "3.7.1")
        assert not multicasts()
        monkeypatch.setattr(triton, "__version__", "3.10.0")
        assert multicasts()


def test_without_multicast_the_rung_before_runs(monkeypatch):
    ran = []
    monkeypatch.setattr(gluon_cluster, "multicasts", lambda: False)
    monkeypatch.setattr(gluon_cluster, "hopper", lambda a: True)
    monkeypatch.setattr(gluon_persistent, "matmul", lambda *x, **options: ran.append(options))
    gluon_cluster.matmul(*operands((64, 64, 64)))
    assert ran == [{"block": gluon_cluster.BLOCK, "num_stages": gluon_cluster.STAGES}]


@pytest.fixture(scope="module")
def codes():
    one = torch.empty((1024, 1024), dtype=torch.float16, device=PLACE)
    jobs = {name: launched(rung(name).matmul, one, one)[0] for name in HOPPERS}
    return tile_codes(jobs)


@pytest.mark.skipif(not here(), reason="other kernels run in their place on this GPU")
def test_what_they_compile_to(codes):
    for name, code in codes.items():
        assert code.spilled_bytes == 0, name
        assert "wgmma.mma_async" in code.ptx and "cp.async.bulk.tensor.2d.shared" in code.ptx
        # Triton sets no fence between a barrier's init and the first copy that counts there.
        first_copy = code.ptx.index("cp.async.bulk.tensor.2d.shared")
        assert "fence.proxy.async" in code.ptx[code.ptx.index("mbarrier.init") : first_copy], name
        clusters = name in ("gluon_cluster", "gluon_shapes") and NEW
        assert ("multicast::cluster" in code.ptx) == clusters
        # Else each block would arrive at a barrier of its own, and nobody wait for the other.
        assert ("mbarrier.arrive.shared::cluster" in code.ptx) == clusters
        assert ("setmaxnreg" in code.ptx) == (name in (*GROUPED, "gluon_shapes", "gluon_shares"))


@pytest.mark.skipif(not here(), reason="other kernels run in their place on this GPU")
def test_it_waits_before_it_reads_and_lets_the_next_one_start_when_it_has_read():
    one = torch.empty((512, 512), dtype=torch.float16, device=PLACE)
    tile = {"block": (64, 64, 64), "num_stages": 3, "blocks": 1}
    jobs = {
        (overlap, splits): launched(
            gluon_shapes.matmul, one, one, overlap=overlap, splits=splits, **tile
        )[0]
        for overlap in (True, False)
        for splits in (1, 2)
    }
    for (overlap, splits), code in tile_codes(jobs).items():
        wait, lead = ("griddepcontrol." + each for each in ("wait", "launch_dependents"))
        assert code.ptx.count(wait) == overlap
        assert code.ptx.count(lead) == (overlap and splits == 1)
        if overlap:
            assert code.ptx.index(wait) < code.ptx.index("cp.async.bulk.tensor.2d.shared")
        if lead in code.ptx:
            assert code.ptx.index(lead) > code.ptx.rindex("cp.async.bulk.tensor.2d.shared")


@pytest.mark.gpu
@pytest.mark.parametrize("size", [64, 512, 1536])
def test_products_of_products_are_right_though_each_starts_early(size):
    """Each product needs the one before it, and rungs alternate, in a graph and out of it."""
    order = torch.randperm(size, device=PLACE)
    swap = torch.eye(size, dtype=torch.float16, device=PLACE)[order]
    first = torch.randint(-9, 10, (size, size), dtype=torch.float16, device=PLACE)
    rungs = [partial(gluon_shapes.matmul, block=(64, 64, 64), num_stages=3, blocks=1)]
    rungs += [partial(rungs[0], splits=3), rung("triton_uneven").matmul, rung("triton_best").matmul]
    rungs += [partial(rung("triton_uneven").matmul, block=(32, 32, 32), splits=2), torch.matmul]
    rungs += [gluon_shapes.matmul, rung("triton_split_k").matmul] if size > 64 else []
    both = first.clone(), torch.empty_like(first)

    def run():
        for i, one in enumerate(rungs + rungs[::-1]):
            one(swap, both[i % 2], out=both[(i + 1) % 2])

    run()
    wanted = first
    for _ in range(2 * len(rungs)):
        wanted = wanted[order]
    assert both[0].equal(wanted)
    both[0].copy_(first)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    graph.replay()
    assert both[0].equal(wanted)


@pytest.mark.skipif(select().on_gpu, reason="a GPU without tensor memory gets another kernel")
@pytest.mark.parametrize("columns", [32, 64, 128])
def test_what_blackwell_gets(columns):
    one = torch.empty((1024, 1024), dtype=torch.float16)
    [job] = launched(gluon_blackwell.matmul, one, one, block=(128, columns, 64))
    [code] = tile_codes({"gluon_blackwell": job}, cc=(10, 0)).values()
    assert code.spilled_bytes == 0
    assert re.search(rf"tcgen05\.alloc\S+ \[%r\d+\], {columns};", code.ptx)
    assert code.ptx.count("tcgen05.mma.cta_group::1.kind::f16") == 64 // 16  # 16 of K each
    assert "tcgen05.ld.sync" in code.ptx and "wgmma" not in code.ptx


def test_tensor_memory_has_128_rows():
    with pytest.raises(ValueError, match="has 128 rows: BLOCK_M must be that, got 64"):
        gluon_blackwell.matmul(*operands((64, 64, 64)), block=(64, 128, 64))


@pytest.mark.parametrize("name", [*STEPWISE, "gluon_blackwell"])
def test_a_kernel_is_short(name):
    """The page shows it whole."""
    home = rung(name).home
    functions = [x for x in vars(home).values() if getattr(x, "__module__", "") == home.__name__]
    own = [x.fn for x in functions if hasattr(x, "fn")]
    assert sum(len(inspect.getsource(f).splitlines()) for f in own) < 80


@pytest.mark.parametrize("name", [*GROUPED, "gluon_ring"])
def test_one_stage_is_refused_for_it_would_wait_for_ever(name):
    out = torch.full((64, 64), 3.0, dtype=torch.float16, device=PLACE)
    with pytest.raises(ValueError, match="num_stages must be 2 or more, got 1"):
        rung(name).matmul(*operands((64, 64, 64)), out, num_stages=1)
    assert out.eq(3.0).all()
