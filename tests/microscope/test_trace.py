"""The interface of a trace: counts that add up, views of the record, what it says of itself."""

import numpy as np
import pytest
import torch
from numba import cuda, float32

from tiled_matmul.kit.backend import select
from tiled_matmul.ladder import rung
from tiled_matmul.microscope.cuda import Trace, events, trace, watch
from tiled_matmul.problem import Problem

T = 4


@cuda.jit
def tiled(a, b, c):
    a_tile = cuda.shared.array((T, T), float32)
    b_tile = cuda.shared.array((T, T), float32)
    col, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    acc = float32(0)
    for start in range(0, a.shape[1], T):
        a_tile[y, x] = a[row, start + x]
        b_tile[y, x] = b[start + y, col]
        cuda.syncthreads()
        for k in range(T):
            acc += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()
    c[row, col] = acc


@cuda.jit
def forgets_the_second_barrier(x, y):
    s = cuda.shared.array(32, float32)
    i = cuda.threadIdx.x
    for turn in range(2):
        s[i] = x[turn, i]
        cuda.syncthreads()
        y[turn, i] = s[31 - i]


def numbers(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def tiled_trace(n=8, **options) -> Trace:
    a, b = numbers(n, n), numbers(n, n)
    return trace(tiled, (n // T, n // T), (T, T), a, b, np.zeros((n, n), np.float32), **options)


def test_counts_of_a_tiled_product():
    t = tiled_trace()
    # 4 blocks of one warp with 16 lanes; 2 tiles; a tile's row is 16 bytes, so half a sector.
    assert t.global_loads.requests == 4 * 2 * 2 and t.global_loads.lanes == 4 * 2 * 2 * 16
    assert t.global_loads.sectors == 4 * 2 * 2 * 4 and t.global_loads.bytes == 4 * 2 * 2 * 4 * 32
    assert t.global_loads.asked_bytes == 4 * t.global_loads.lanes
    assert t.global_stores.requests == 4 and t.global_stores.sectors == 4 * 4
    assert t.shared_loads.requests == 4 * 8 * 2 and t.shared_stores.requests == 4 * 2 * 2
    assert t.shared_stores.wavefronts == 16 and t.shared_stores.bank_conflicts == 0
    assert t.global_atomics.requests == t.shared_atomics.requests == 0
    assert t.findings == []


def test_parts_add_up_to_the_whole():
    t = tiled_trace()
    lines = {site.line for site in t.sites}
    for space, op in (("global", "load"), ("shared", "load"), ("shared", "store")):
        whole = t.count(space, op)
        for parts in (
            [t.count(space, op, line=line) for line in lines],
            [t.count(space, op, array=info.id) for info in t.arrays],
            [t.count(space, op, block=block) for block in t.blocks],
            [t.count(space, op, warp=0)],
        ):
            assert sum(p.requests for p in parts) == whole.requests
            assert sum(p.lanes for p in parts) == whole.lanes
    for table, count in ((t.by_line(), 7), (t.by_array(), 7), (t.by_block(), 4), (t.by_warp(), 1)):
        assert len(table.cells) == count


def test_accesses_and_requests_tell_the_same():
    t = tiled_trace()
    accesses = t.accesses((1, 0))
    requests = t.requests((1, 0), 0)
    assert len(requests) == len(np.unique(accesses["request"])) == 2 * 4 + 2 * 8 + 1
    for number, request in enumerate(requests):
        rows = accesses[accesses["request"] == number]
        assert sorted(rows["lane"]) == list(request.lanes) == list(range(16))
        assert sorted(rows["element"]) == sorted(request.elements)
        assert (rows["site"] == request.site.id).all() and (rows["phase"] == request.phase).all()
        assert (rows["width"] == 4).all() and request.width == 4
    texts = [request.site.text for request in requests[:6]]
    assert texts == [
        "a[row, start + x]",
        "a_tile[y, x]",
        "b[start + y, col]",
        "b_tile[y, x]",
        "a_tile[y, k]",
        "b_tile[k, x]",
    ]
    first = requests[0]
    assert first.indices[5] == (1, 1) and first.elements[5] == 9 and first.addresses[5] == 36
    assert first.sectors == (0, 1, 2, 3) and first.banks == () and first.wavefronts == 0
    use = requests[5]
    assert use.banks == (0, 1, 2, 3) * 4 or set(use.banks) == {16, 17, 18, 19}
    assert use.wavefronts == 1 and use.sectors == () and use.phase == 1


def test_blocks_may_be_chosen():
    t = tiled_trace(blocks=[(1, 1)])
    assert t.blocks == ((1, 1, 0),)
    assert t.global_stores.lanes == 16
    assert "1 of the grid's blocks" in repr(t)
    with pytest.raises(ValueError, match=r"block \(0, 0\) was not followed"):
        t.requests((0, 0))
    with pytest.raises(ValueError, match=r"block \(2, 0\) is not in the grid"):
        tiled_trace(blocks=[(2, 0)])


def test_a_trace_shows_counts_and_findings():
    t = trace(forgets_the_second_barrier, 1, 32, numbers(2, 32), np.zeros((2, 32), np.float32))
    (race,) = t.races
    assert t.findings == [race] and race.array == "s" and race.count == 32
    assert race.texts == ("s[i] = x[turn, i]", "y[turn, i] = s[31 - i]")
    text, page = repr(t), t._repr_html_()
    for shown in (text, page):
        assert "1 finding" in shown and str(race.lines[0]) in shown and "syncthreads" in shown
        assert all(line in shown for line in race.texts)
    assert "0 findings" in repr(tiled_trace())


def test_the_same_inputs_give_the_same_trace():
    one, two = tiled_trace(order="shuffle", seed=7), tiled_trace(order="shuffle", seed=7)
    assert (one.accesses() == two.accesses()).all()
    other = tiled_trace(order="reverse")
    assert not (one.accesses()["thread"] == other.accesses()["thread"]).all()
    assert one.global_loads == other.global_loads and one.shared_loads == other.shared_loads


def test_unknown_counts_warps_and_orders_are_quoted():
    t = tiled_trace()
    with pytest.raises(ValueError, match="not local load"):
        t.count("local", "load")
    with pytest.raises(ValueError, match="warps 0 to 0, got 1"):
        t.requests((0, 0), 1)
    with pytest.raises(ValueError, match="got 'sideways'"):
        tiled_trace(order="sideways")


def test_a_launcher_can_be_watched():
    device = "cuda" if select().on_gpu else "cpu"
    a, b = Problem(20, 35, 9).inputs(0, "integers", device)
    with watch(blocks=[(0, 0)]) as traces:
        rung("cuda_naive").matmul(a, b)
    assert [t.name for t in traces] == ["cuda_naive_kernel"]
    assert traces[0].blocks == ((0, 0, 0),)
    with watch() as traces:
        c = rung("cuda_coalesced").matmul(a, b)
    assert torch.equal(c, a @ b) and traces[0].global_stores.lanes == 20 * 35
    rung("cuda_naive").matmul(a, b)
    assert len(traces) == 1


@pytest.mark.gpu
def test_a_trace_beside_the_gpu_writes_what_the_gpu_does():
    a, b = Problem(8, 8, 8).inputs(0, "integers", "cuda")
    traced, launched = torch.empty_like(a), torch.empty_like(a)
    t = trace(tiled, (2, 2), (T, T), a, b, traced)
    tiled[(2, 2), (T, T)](a, b, launched)
    assert torch.equal(traced, launched) and torch.equal(traced, a @ b)
    assert t.global_loads == tiled_trace().global_loads


@pytest.mark.gpu
def test_views_of_one_tensor_on_the_gpu_share_memory_in_the_trace():
    written = []
    for device in ("cuda", "cpu"):
        x = torch.arange(65, dtype=torch.float32, device=device)
        y = x[1:].view(2, 32)
        t = trace(forgets_the_second_barrier, 1, 32, x[:64].view(2, 32), y)
        assert {"x", "y"} & {race.array for race in t.races}
        written.append(x.cpu())
    assert torch.equal(*written) and written[0][1] != 1


def test_packed_fields_sort_as_they_do_even_where_they_do_not_fit():
    fields = [np.array(f) for f in ([2**40, 1, 2**40, 1], [2**30, 7, 0, 2**30], [1, 3, 2, 0])]
    packed, shifts = events.pack(*fields)
    assert np.argsort(packed).tolist() == np.lexsort(fields[::-1]).tolist()
    assert shifts == [-1, 2, 0] and (packed >> 2 & (1 << 31) - 1).tolist() == fields[1].tolist()
    packed, shifts = events.pack(*fields[1:])
    assert shifts == [2, 0] and (packed >> 2).tolist() == fields[1].tolist()
