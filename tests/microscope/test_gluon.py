"""microscope/gluon/: what the interpreter computes, counts and finds."""

import importlib.util
import itertools

import gluon_example
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from triton.experimental.gluon.language.nvidia import hopper

from tiled_matmul.kit import gluon, withheld
from tiled_matmul.kit.backend import select
from tiled_matmul.kit.clusters import Cluster
from tiled_matmul.kit.gluon import of_rows
from tiled_matmul.ladder import (
    gluon_blackwell,
    gluon_cluster,
    gluon_persistent,
    gluon_ring,
    gluon_shapes,
    gluon_specialised,
    gluon_tile,
)
from tiled_matmul.microscope.gluon import GluonError, Unknown, timeline, trace_gluon
from tiled_matmul.microscope.gluon.record import lines
from tiled_matmul.microscope.gluon.values import Descriptor, Shares, Tile

M, N, K = 264, 264, 520  # two laps of the ring
ON_GPU = select().on_gpu
CLUSTERS = pytest.mark.skipif(not hasattr(hopper, "cluster"), reason="Triton 3.6 has no clusters")
pytestmark = pytest.mark.skipif(ON_GPU, reason="the interpreter takes the place of a GPU")


def operands(m=M, n=N, k=K, seed=0):
    draw = torch.Generator().manual_seed(seed)
    pair = (torch.randint(-2, 3, shape, generator=draw).half() for shape in ((m, k), (k, n)))
    return *pair, torch.full((m, n), 7.0).half()


@pytest.fixture(autouse=True)
def every_triton_multicasts(monkeypatch):
    """What Triton would compile does not matter here."""
    monkeypatch.setattr(gluon_cluster, "multicasts", lambda: True)
    monkeypatch.setattr(gluon, "multicasts", lambda: True)  # of changed modules


def traced(module, a, b, out, seed=None, **options):
    """Return the trace of what a rung's module launches."""
    [launch] = withheld.of(module.matmul, a, b, out=out, **options)
    return trace_gluon(launch.kernel, launch.grid, *launch.arguments, seed=seed, **launch.options)


@pytest.fixture
def changed(tmp_path):
    """Return a function that gives a rung's module with lines exchanged."""

    def change(module, *pairs):
        text = open(module.__file__, encoding="utf-8").read()
        for old, new in pairs:
            assert old in text, old
            text = text.replace(old, new)
        path = tmp_path / f"changed_{len(list(tmp_path.iterdir()))}.py"
        path.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        return made

    return change


CLUSTER = pytest.param(gluon_cluster, marks=CLUSTERS)
RIGHT = [gluon_tile, gluon_ring, gluon_persistent, CLUSTER, gluon_blackwell]


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
@pytest.mark.parametrize("module", RIGHT)
def test_a_right_kernel_has_no_fault_in_any_order(module, seed):
    a, b, out = operands()
    trace = traced(module, a, b, out, seed)
    assert trace.ok and str(trace).endswith("every role came to its end.")
    assert torch.equal(out, a @ b)


WAIT_FULL = "            mbarrier.wait(full.index(slot), lap % 2)\n"
WAIT_EMPTY = "            mbarrier.wait(empty.index(slot), lap % 2 ^ 1)"
LAST = "        mbarrier.arrive(empty.index((step + STAGES - 1) % STAGES))\n"
FAULTS = {
    "a wait for the copies is missing": ((WAIT_FULL, ""), "not written"),
    "a wait for the wrong phase of the copies": (
        (WAIT_FULL, WAIT_FULL.replace("lap % 2", "lap % 2 ^ 1")), "not written",
    ),
    "the copies wait for the wrong phase": ((WAIT_EMPTY, WAIT_EMPTY[:-5] + ")"), "deadlock"),
    "the copies do not wait": ((WAIT_EMPTY, "            pass"), "too early"),
    "a stage is given back before its product is done": (
        ("warpgroup_mma_wait(1, ", "warpgroup_mma_wait(2, "), "unfinished product",
    ),
    "sums are used before the last product is done": (
        ("        acc = warpgroup_mma_wait(0, deps=[acc])\n", ""), "unfinished sums",
    ),
    "one group's arrival is enough": (("count=GROUPS)", "count=1)"), "deadlock"),
    "more bytes are expected than come": (
        ("b.block_shape[1]) * BLOCK_K", "b.block_shape[1] + 8) * BLOCK_K"), "deadlock",
    ),
    "fewer bytes are expected than come": (
        ("b.block_shape[1]) * BLOCK_K", "b.block_shape[1] - 8) * BLOCK_K"), "deadlock",
    ),
    "the last stage is not given back": ((LAST, ""), "deadlock"),
    "the store is not waited for at the end": (
        ("    tma.store_wait(0)\n", "    pass\n"), "unfinished store",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(changed, name):
    pair, kind = FAULTS[name]
    a, b, out = operands()
    wrong = changed(gluon_persistent, pair)
    trace = traced(wrong, a, b, out, programs=3)
    kinds = {finding.kind for finding in trace.findings}
    assert kind in kinds, kinds
    first = next(finding for finding in trace.findings if finding.kind == kind)
    line = open(wrong.__file__, encoding="utf-8").read().splitlines()[first.line - 1]
    assert any(word in line for word in ("wait", "warpgroup_mma", "async_load", "store")), line
    with pytest.raises(GluonError, match=str(first.line)):
        trace.require()


WAIT_DONE = "    mbarrier.wait(done, 0)\n"
ARRIVE = "use_acc=step > 0, mbarriers=[empty.index(slot)]"
GIVE_BACK = "mbarrier.arrive(empty.index(slot))"
THERE = {
    "sums are loaded at once": ((WAIT_DONE, ""), "not written"),
    "nobody says that the products are done": (("tcgen05_commit(done)", "pass"), "deadlock"),
    "the products give no stage back": (
        (ARRIVE, ARRIVE.replace("[empty.index(slot)]", "[]")), "deadlock",
    ),
    "a product gives back a stage that it reads": (
        ("        tcgen05_mma(", f"        {GIVE_BACK}\n        tcgen05_mma("),
        "unfinished product",
    ),
    "the first product adds to what is there": (
        (ARRIVE, ARRIVE.replace("step > 0", "True")), "not written",
    ),
    "the wait for the copies is missing": (
        ("        mbarrier.wait(full.index(slot), lap % 2)\n", ""), "unfilled",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", THERE)
def test_a_planted_fault_in_tensor_memory_is_found(changed, name):
    pair, kind = THERE[name]
    trace = traced(changed(gluon_blackwell, pair), *operands())
    kinds = {finding.kind for finding in trace.findings}
    assert kind in kinds, kinds


def test_sums_that_are_under_way_are_not_there(changed):
    early = "        if step == 3:\n            mbarrier.arrive(done)\n    tcgen05_commit(done)"
    wrong = changed(gluon_blackwell, ("    tcgen05_commit(done)", early))
    trace = traced(wrong, *operands())
    assert "unfinished sums" in {finding.kind for finding in trace.findings}


def test_a_product_without_barriers_is_waited_for(changed):
    a, b, out = operands(128, 128, 200)
    wrong = changed(gluon_blackwell, (", mbarriers=[empty.index(slot)]", ""))
    assert traced(wrong, a, b, out).ok and torch.equal(out, a @ b)  # fewer steps than stages


@pytest.mark.parametrize("seed", range(4))
def test_faults_do_not_depend_on_whose_turn_it_is(changed, seed):
    wrong = changed(gluon_persistent, ("warpgroup_mma_wait(1, ", "warpgroup_mma_wait(2, "))
    trace = traced(wrong, *operands(), seed=seed, programs=2)
    assert {finding.kind for finding in trace.findings} == {"unfinished product"}


def test_a_ring_without_its_last_wait_overwrites_what_is_read(changed):
    wrong = changed(gluon_ring, ("warpgroup_mma_wait(1, ", "warpgroup_mma_wait(2, "))
    trace = traced(wrong, *operands())
    [a, b] = trace.findings
    assert (a.kind, b.kind) == ("unfinished product",) * 2
    assert "the copy of a fills a_tiles[" in a.message and "may still read it" in a.message


def test_stores_of_threads_need_a_fence(changed):
    trace = traced(changed(gluon_tile, ("    fence_async_shared()\n", "")), *operands())
    [finding] = trace.findings
    assert finding.kind == "no fence" and finding.buffer == "c_tile"


@CLUSTERS
def test_the_first_block_has_to_wait_for_the_other_one(changed):
    wait = "            mbarrier.wait(shared.index(slot), lap % 2 ^ 1)"
    a, b, out = operands()
    trace = traced(changed(gluon_cluster, (wait, "            pass")), a, b, out)
    [finding] = trace.findings
    assert finding.kind == "other block" and "of block 1" in finding.message
    assert torch.equal(out, a @ b)  # which is why nobody would see it


@CLUSTERS
def test_blocks_have_to_end_together(changed):
    a, b, out = operands()
    trace = traced(changed(gluon_cluster, ("    leave_together()", "    pass")), a, b, out)
    [finding, other] = trace.findings
    assert finding.kind == other.kind == "block gone"
    assert "arrives at shared[" in finding.message and "of block 0, which may" in finding.message
    assert torch.equal(out, a @ b)


@CLUSTERS
def test_each_block_has_to_wait_for_its_own_roles(changed):
    trace = traced(changed(gluon_cluster, (WAIT_EMPTY, "            pass")), *operands())
    assert {"too many arrivals", "deadlock"} <= {finding.kind for finding in trace.findings}


def test_roles_that_wait_for_ever_say_for_what(changed):
    wrong = changed(gluon_persistent, (LAST, ""))
    trace = traced(wrong, *operands(), programs=1)
    assert [each.role for each in trace.findings] == ["multiply 0", "multiply 1", "copy 2"]
    text = str(trace)
    assert "waits for a phase of parity" in text and "lacks 2 of 2 arrivals" in text


@pytest.mark.parametrize(("m", "n", "k"), [(128, 256, 64), (264, 264, 200), (1, 8, 1)])
def test_copies_are_counted(m, n, k):
    a, b, out = operands(m, n, k)
    trace = traced(gluon_persistent, a, b, out)
    high, wide, deep = gluon_persistent.BLOCK
    steps = -(-m // high) * -(-n // wide) * -(-k // deep)
    assert trace.copies["a"].copies == 2 * steps and trace.copies["b"].copies == steps
    assert trace.copies["a"].bytes == 2 * steps * high * deep
    assert trace.copies["b"].bytes == 2 * steps * wide * deep
    assert trace.memories["a_tiles"] == 2 * gluon_persistent.STAGES * high * deep


@CLUSTERS
@pytest.mark.parametrize("blocks", [2, 4])
def test_a_multicast_asks_once_for_all_blocks(blocks):
    a, b, out = operands(512, 256, 128)
    alone = traced(gluon_persistent, a, b, out).copies
    together = traced(gluon_cluster, a, b, out, blocks=blocks).copies
    assert together["b"].lines * blocks == alone["b"].lines
    assert together["b"].bytes == alone["b"].bytes


@pytest.mark.parametrize("columns", [64, 72, 136, 200, 256])
def test_lines_are_those_of_128_bytes(columns):
    matrix = torch.empty(40, columns).half()
    descriptor = Descriptor("b", of_rows(matrix, 32, 128), 1)
    for row, column in itertools.product((0, 8, 32), (0, 64, 128)):
        touched = 0
        start = 2 * matrix.storage_offset()
        for y, first in itertools.product(range(row, min(row + 32, 40)), (column, column + 64)):
            inside = range(first, min(first + 64, columns))
            touched += len({(start + 2 * (y * columns + x)) // 128 for x in inside})
        assert lines(descriptor, [row, column]) == touched


def test_a_descriptor_has_zeros_outside_and_stores_nothing_there():
    matrix = torch.arange(48.0).reshape(6, 8).half()
    descriptor = Descriptor("a", of_rows(matrix, 4, 8), 1)
    tile = descriptor.read([4, 0])
    assert torch.equal(tile[:2], matrix[4:]) and not tile[2:].any()
    descriptor.write([4, 0], torch.ones(4, 8).half())
    assert matrix[4:].eq(1).all() and matrix[3, 0] == 24
    assert not descriptor.read([8, 0]).any()


def test_blocks_share_tiles_as_the_bases_say():
    stacked = Shares(((1, 0), (2, 0)), 2)
    assert stacked.parts == (4, 1) and stacked.local([256, 64]) == (64, 64)
    assert [stacked.place(x) for x in range(4)] == [(0, 0), (1, 0), (2, 0), (3, 0)]
    assert [stacked.leader(x) for x in range(4)] == [0, 1, 2, 3]
    mixed = Shares(((1, 0), (0, 0)), 2)
    assert mixed.local([128, 64]) == (64, 64) and mixed.group(1) == [1, 3]
    with pytest.raises(ValueError, match=r"\[62, 64\] has no \[4, 1\] equal shares"):
        stacked.local([62, 64])


def test_a_tile_is_reshaped_with_its_shares():
    whole = Tile(torch.arange(32.0).reshape(2, 16), [4, 16], "fp32")  # one of two blocks' rows
    near, far = whole.reshape((4, 2, 8)).permute(0, 2, 1).split()
    assert near.shape == [4, 8] and torch.equal(near.data, whole.data[:, :8])
    assert torch.equal(far.data, whole.data[:, 8:])
    with pytest.raises(ValueError, match="several blocks share"):
        whole.reshape((8, 8))
    with pytest.raises(AttributeError, match="knows no `sum` of a tile"):
        whole.sum(0)


def test_bad_launches_are_refused():
    a, b, out = operands(64, 64, 64)
    [launch] = withheld.of(gluon_tile.matmul, a, b, out=out)
    given = launch.arguments
    with pytest.raises(TypeError, match="takes a function under @gluon.jit, got"):
        trace_gluon(gluon_tile.matmul, (1,))
    for grid in ((0,), (1, 1), 3, (True,)):
        with pytest.raises(ValueError, match="grid must be a tuple of one positive int"):
            trace_gluon(launch.kernel, grid, *given)
    with pytest.raises(ValueError, match="num_ctas must be 1, 2, 4, 8 or 16, got 3"):
        trace_gluon(launch.kernel, (1,), *given, num_ctas=3)
    with pytest.raises(ValueError, match="num_ctas=2 needs layouts with a cga_layout of 1 bases"):
        trace_gluon(launch.kernel, (1,), *given, num_ctas=2)
    with pytest.raises(TypeError, match="missing a required argument"):
        trace_gluon(launch.kernel, (1,), *given[:-1])


@pytest.mark.parametrize(
    ("old", "new", "error", "message"),
    [
        ("full.index(slot), BYTES", "full.index(STAGES), BYTES", IndexError, "full has no index 4"),
        ("mbarrier.expect(full.index(slot)", "mbarrier.expect(full", TypeError, "several barriers"),
        ("mbarrier.wait(full.index(slot), lap % 2)", "mbarrier.wait(full.index(slot), lap + 2)",
         ValueError, "a phase of 0 or 1, got 2"),
        ("step += 1\n\n", "step += gl.atomic_add(a, 1)\n\n", Unknown, "gl.atomic_add"),
        ("step = 0\n", "step = cover(0, 1)\n", Unknown, "cover is a function of Python's"),
        ("async_load(b, [k, left], full", "async_load(a, [k, left], full", ValueError,
         "a copies tiles of"),
    ],
)  # fmt: skip
def test_what_gluon_refuses_is_refused(changed, old, new, error, message):
    with pytest.raises(error, match=message):
        traced(changed(gluon_persistent, (old, new)), *operands())


def test_a_launch_raises_for_a_fault(changed):
    wrong = changed(gluon_tile, ("    fence_async_shared()\n", ""))
    with pytest.raises(GluonError, match="Call `fence_async_shared"):
        wrong.matmul(*operands())
    with pytest.raises(TypeError, match="gluon_tile_kernel is a kernel in Gluon"):
        gluon_tile.gluon_tile_kernel()


def test_events_are_in_order_and_by_line():
    trace = traced(gluon_ring, *operands(128, 128, 256))
    kinds = [e.kind for e in trace.events if e.buffer in ("full[0]", "a_tiles[0]")]
    assert kinds[:3] == ["expect", "copy", "landed"]
    assert [e.number for e in trace.events] == list(range(len(trace.events)))
    landed = [e for e in trace.events if e.kind == "landed" and e.barrier == "full[0]"]
    assert [e.completes for e in landed] == [False, True]  # of A, then of B: both tiles
    table = repr(trace.by_line())
    assert "product" in table and "a_tiles" in table
    assert "buffers filled" in repr(trace.by_array())
    with pytest.raises(ValueError, match="views by line and by array"):
        trace.by_warp()


def test_a_cluster_says_who_shares():
    assert Cluster(1).own == [] and Cluster(4).own == [[1], [2]]
    assert Cluster(4).stacked == [[1, 0], [2, 0]] and Cluster(2).same == [[0, 0]]


@pytest.mark.parametrize("copy_time", [1, 4, 9])
@pytest.mark.parametrize(
    "module", [gluon_tile, gluon_ring, gluon_specialised, gluon_persistent, CLUSTER]
)
def test_a_timeline_keeps_what_waits_for_what(module, copy_time):
    a, b, out = operands(256, 512, 512)
    stages = getattr(module, "STAGES", 1)
    trace = traced(module, a, b, out)
    role = "first" if module in (gluon_tile, gluon_ring) else "multiply 0"
    ring = timeline(trace.events, stages=stages, copy_time=copy_time, role=role)
    products = [work for work in ring.work if work.tile is not None]
    came = {copy.tile: copy for copy in ring.copies}
    assert [work.tile for work in products] == list(range(len(products)))
    for work in products:
        copy = came[work.tile]
        assert copy.end <= work.begin and copy.buffer == work.buffer
        if work.tile + stages in came:
            assert work.end <= came[work.tile + stages].begin
    assert all(one.end <= two.begin for one, two in itertools.pairwise(ring.work))
    assert ring.time == ring.work[-1].end


def test_a_ring_hides_the_copies_and_one_tile_does_not():
    a, b, out = operands(128, 128, 64 * 8)
    times = {}
    for module in (gluon_tile, gluon_ring):
        trace = traced(module, a, b, out)
        stages = getattr(module, "STAGES", 1)
        ring = timeline(trace.events, stages=stages, copy_time=4, multiply_time=2, role="first")
        times[module] = ring.work[-1].begin  # of the store
    assert times[gluon_tile] == 8 * (4 + 2)
    assert times[gluon_ring] == 4 + 8 * 2  # three copies ahead are enough


def test_a_timeline_needs_a_role_that_multiplied():
    trace = traced(gluon_tile, *operands())
    with pytest.raises(ValueError, match="no role 'multiply 0' multiplied; there are first"):
        timeline(trace.events, stages=1)


def test_pointers_and_tiles_in_registers():
    source, target = torch.arange(100.0), torch.full((110,), 7.0)
    gluon_example.copy_kernel[(4,)](source, target, 100, 32)
    assert torch.equal(target[:100], source * 2) and target[100:].eq(7).all()
    matrix = torch.randn(8, 16)
    sums, largest = torch.zeros(8), torch.zeros(9)
    gluon_example.rows_kernel[(1,)](matrix, sums, largest, 8, 16)
    wanted = torch.where(matrix < 0, 1 - matrix, matrix.clamp(min=0.5))
    assert torch.allclose(sums, wanted.sum(1)) and torch.equal(largest[:8], wanted.max(1).values)
    assert largest[8] == matrix[0, 0] / 2 + 4


def test_an_access_beyond_a_tensor_is_refused():
    whole = torch.zeros(64)
    gluon_example.beyond_kernel[(1,)](whole[:32], 32)
    assert torch.equal(whole[:32], torch.arange(32.0)) and not whole[32:].any()
    with pytest.raises(IndexError, match="target has 64 elements .* element 64 is accessed"):
        gluon_example.beyond_kernel[(1,)](whole, 128)
    assert not whole[32:].any()


def test_a_tile_is_indexed_by_new_dimensions_only():
    tile = Tile(torch.arange(4.0), [4], "fp32")
    assert tile[:, None].shape == [4, 1] and (-tile)[None, :].data.sum() == -6
    with pytest.raises(IndexError, match="takes : and None as an index, got 0"):
        tile[0]
    shared = Tile(torch.zeros(2, 4), [4, 4], "fp32")
    with pytest.raises(ValueError, match="reduces no tile of .* that blocks share"):
        shared.reduced(torch.sum, 0)
    assert (2.0 - shared).shape == [4, 4]


def test_tensors_without_memory_are_refused():
    with FakeTensorMode():
        a, b = torch.empty(33, 64, dtype=torch.half), torch.empty(64, 48, dtype=torch.half)
        with pytest.raises(ValueError, match=r"a is FakeTensor \(33, 64\) without memory"):
            gluon_shapes.matmul(a, b, blocks=1)
