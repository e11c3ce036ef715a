"""Rows in groups that only the GPU knows: right for any groups, and clear about what it refuses."""

import re

import pytest
import torch
from other_gpu import other_gpu

from tiled_matmul.check import MatmulError, assert_matmul
from tiled_matmul.kit.arguments import check_offsets
from tiled_matmul.kit.backend import select
from tiled_matmul.kit.programs import launched
from tiled_matmul.kit.ragged import MOST_ROWS, describe_ragged
from tiled_matmul.kit.variants import edited
from tiled_matmul.ladder import rung, triton_grouped
from tiled_matmul.microscope.compiled.triton import tile_codes

ON_GPU = select().on_gpu
PLACE = "cuda" if ON_GPU else "cpu"
SMALL = {"block": (16, 32, 16), "num_warps": 4, "num_stages": 2}
K, N = 24, 40
GROUPS = {
    "uneven": ((3, 20, 21, 37), 37),
    "some empty": ((0, 18, 18, 30), 30),
    "one has all": ((0, 20, 20, 20), 20),
    "rows beyond the last": ((4, 4, 20, 23), 60),
    "none has any": ((0, 0, 0, 0), 20),
}
every_group = pytest.mark.parametrize("name", GROUPS)


def ints(*shape, dtype="bfloat16", seed=5):
    numbers = torch.Generator().manual_seed(seed)
    return torch.randint(-4, 5, shape, generator=numbers).to(PLACE, getattr(torch, dtype))


def as_offsets(ends):
    return torch.tensor(ends, dtype=torch.int32, device=PLACE)


def assert_rows(c, a, b, ends):
    begin = 0
    for matrix, end in zip(b, ends, strict=True):
        if begin < end:
            assert_matmul(c[begin:end].contiguous(), a[begin:end].contiguous(), matrix.contiguous())
        begin = end
    assert not c[begin:].any()


def assert_along(c, a, b, ends):
    begin = 0
    for product, end in zip(c, ends, strict=True):
        if begin < end:
            parts = product, a[:, begin:end], b[begin:end]
            assert_matmul(*(x.contiguous() for x in parts))
        else:
            assert not product.any()
        begin = end


def run(a, b, ends, out=None, **options):
    shape = (len(a), b.shape[-1]) if b.ndim == 3 else (len(ends), len(a), b.shape[-1])
    if out is None:
        out = torch.full(shape, float("nan")).to(PLACE, a.dtype)
    assert triton_grouped.matmul(a, b, out, offsets=as_offsets(ends), **options) is out
    (assert_rows if b.ndim == 3 else assert_along)(out, a, b, ends)


def test_it_is_among_the_rungs_of_a_layer():
    assert rung("triton_grouped").matmul is triton_grouped.matmul
    assert rung("triton_grouped").kernel is triton_grouped.triton_grouped_kernel


@every_group
def test_rows_in_groups(name):
    ends, rows = GROUPS[name]
    run(ints(rows, K), ints(4, K, N), ends, programs=3, **SMALL)


@every_group
def test_groups_along_the_sum(name):
    ends, rows = GROUPS[name]
    run(ints(rows, K).T, ints(rows, N), ends, programs=3, **SMALL)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_other_dtypes(dtype):
    ends, rows = GROUPS["uneven"]
    a = ints(rows, K, dtype=dtype)
    run(a, ints(4, K, N, dtype=dtype), ends, **SMALL)
    run(a.T, ints(rows, N, dtype=dtype), ends, **SMALL)


def test_any_strides():
    ends, rows = (3, 9, 9), 12
    a, b, y = ints(rows, 20), ints(3, 20, 18), ints(rows, 18)

    def odd(x):
        return x.new_zeros(*x.shape[:-1], x.shape[-1] + 9)[..., 1:-8].copy_(x)

    for turn in (odd, lambda x: x.mT.contiguous().mT):
        run(turn(a), b, ends, **SMALL)
        run(a, turn(b), ends, out=turn(a.new_zeros(rows, 18)), **SMALL)
        run(turn(a.T), y, ends, out=turn(a.new_zeros(3, 20, 18)), **SMALL)
        run(a.T, turn(y), ends, **SMALL)


def test_halves():
    ends, rows = (3, 9, 9), 12
    block = {"block": (16, 256, 16), "num_warps": 4, "num_stages": 2}
    a = ints(rows, 20)
    run(a, ints(3, 20, 260), ends, **block)
    run(a.T, ints(rows, 260), ends, **block)


def test_one_group_and_no_rows():
    run(ints(20, K), ints(1, K, N), (20,), **SMALL)
    assert triton_grouped.matmul(ints(0, K), ints(2, K, N), offsets=as_offsets((0, 0))).shape == (
        0,
        N,
    )
    c = triton_grouped.matmul(ints(0, K).T, ints(0, N), offsets=as_offsets((0, 0)))
    assert c.shape == (2, K, N) and not c.any()


def test_other_groups_do_not_leak_in():
    """Tiles reach into the next group: what is there must not count."""
    ends = (5, 13, 20)
    a, b, y = ints(20, K), ints(3, K, N), ints(20, N)
    offsets = as_offsets(ends)
    rows = triton_grouped.matmul(a, b, offsets=offsets, **SMALL)[5:13]
    along = triton_grouped.matmul(a.T, y, offsets=offsets, **SMALL)[1]
    for x in (a, y):
        x[:5], x[13:] = float("nan"), float("inf")
    b[0], b[2] = float("nan"), float("inf")
    assert torch.equal(triton_grouped.matmul(a, b, offsets=offsets, **SMALL)[5:13], rows)
    assert torch.equal(triton_grouped.matmul(a.T, y, offsets=offsets, **SMALL)[1], along)


@pytest.mark.parametrize("ends", [(30, 5, -7, 90), (-(2**31), 2**31 - 1, -5, 3), (20, 0, 20, 0)])
def test_impossible_offsets_touch_no_other_memory(ends):
    a, b, y = ints(20, K), ints(4, K, N), ints(20, N)
    room, products = (torch.full(s, 3.0).to(a) for s in ((60, N), (8, K, N)))
    options = {"offsets": as_offsets(ends), "check": False} | SMALL
    triton_grouped.matmul(a, b, room[20:40], **options)
    triton_grouped.matmul(a.T, y, products[2:6], **options)
    for x in (room[:20], room[40:], products[:2], products[6:]):
        assert bool((x == 3).all())


@pytest.mark.parametrize(
    "line, other",
    [
        ("tl.load(offsets + group - 1,", "tl.load(offsets + group,"),
        ("passed = until <= tile // tiles_n", "passed = until < tile // tiles_n"),
        ("start = beyond +", "start = M + beyond +"),
        ("store_before(c, last, top, left, acc)", "store_before(c, M, top, left, acc)"),
    ],
)
def test_a_mistake_in_the_kernel_is_found(monkeypatch, line, other):
    if ON_GPU:
        pytest.skip("wrong kernels run in the interpreter")
    kernel = edited(triton_grouped.triton_grouped_kernel, line, other)
    monkeypatch.setattr(triton_grouped, "triton_grouped_kernel", kernel)
    with pytest.raises((MatmulError, AssertionError)):
        run(ints(30, K), ints(4, K, N), (3, 3, 20, 25), programs=2, **SMALL)


def test_a_mistake_along_the_sum_is_found(monkeypatch):
    if ON_GPU:
        pytest.skip("wrong kernels run in the interpreter")
    old = "load_before(a, end, k, top)"
    kernel = edited(triton_grouped.triton_along_kernel, old, "load_before(a, K, k, top)")
    kernel = edited(kernel, "load_before(b, end, k, left)", "load_before(b, K, k, left)")
    monkeypatch.setattr(triton_grouped, "triton_along_kernel", kernel)
    with pytest.raises(MatmulError):
        run(ints(20, K).T, ints(20, N), (3, 20), **SMALL)


def test_offsets_are_checked_where_that_costs_nothing_and_on_request():
    a, b = ints(20, K), ints(3, K, N)
    for ends, message in (
        ((5, 3, 20), "group 1 begins at 5 and ends at 3"),
        ((-1, 3, 20), "rise from 0 to 20 at most: group 0 begins at 0 and ends at -1"),
        ((5, 9, 21), "group 2 begins at 9 and ends at 21"),
    ):
        with pytest.raises(ValueError, match=message):
            triton_grouped.matmul(a, b, offsets=as_offsets(ends), check=True, **SMALL)
        with pytest.raises(ValueError, match=message):
            check_offsets(as_offsets(ends), 20)
    check_offsets(as_offsets((0, 0, 7)), 20)


def test_bad_input_is_quoted():
    a, b, offsets = ints(8, 8), ints(2, 8, 8), as_offsets((3, 8))
    out = torch.empty(8, 8, dtype=a.dtype, device=PLACE)
    for arguments, ends, options, error, message in (
        ((a[0], b), offsets, {}, ValueError, "a must be 2-D, got shape (8,)"),
        ((a, b[0, 0]), offsets, {}, ValueError, "b must be 3-D, or 2-D for a sum in groups"),
        ((a[:, :7], b), offsets, {}, ValueError, "a (8, 7) has 7 columns, each matrix of b"),
        ((a, b[0, :7]), offsets, {}, ValueError, "a (8, 8) has 8 columns, b (7, 8) has 7 rows"),
        ((a, b[:, :, :0]), offsets, {}, ValueError, "only rows of a may be empty"),
        ((a[:0], b[0]), offsets, {}, ValueError, "only the sum may be empty"),
        ((a, b.half()), offsets, {}, TypeError, "a is bfloat16 and b is float16"),
        ((a.int(), b.int()), offsets, {}, TypeError, "a has dtype int32"),
        ((a, b), [3, 8], {}, TypeError, "offsets must be a torch tensor, got list"),
        ((a, b), None, {}, TypeError, "offsets must be a torch tensor, got NoneType"),
        ((a, b), offsets.long(), {}, TypeError, "offsets has dtype int64, it must be int32"),
        ((a, b), offsets[None], {}, ValueError, "offsets must be 1-D, got shape (1, 2)"),
        ((a, b), offsets[:1], {}, ValueError, "has 2 matrices, offsets has 1 groups"),
        ((a, b[:0]), offsets[:0], {}, ValueError, "there is no group"),
        ((a, b), as_offsets((3, 0, 8))[::2], {}, ValueError, "contiguous, got the stride 2"),
        ((a, b), offsets.to("meta"), {}, ValueError, "offsets lies on meta"),
        ((a, b, out[:7]), offsets, {}, ValueError, "out has shape (7, 8), the product has (8, 8)"),
        ((a, b[0], out), offsets, {}, ValueError, "the product has (2, 8, 8)"),
        ((a, b, out.float()), offsets, {}, TypeError, "out is float32, the inputs are bfloat16"),
        ((a, b, a), offsets, {}, ValueError, "shares memory with"),
        ((a, b), offsets, {"block": (32, 24, 16)}, ValueError, "BLOCK_N must be a power of two"),
        ((a, b), offsets, {"group_m": 0}, ValueError, "group_m must be at least 1, got 0"),
        ((a, b), offsets, {"programs": 0}, ValueError, "programs must be at least 1, got 0"),
    ):
        with pytest.raises(error, match=re.escape(message)):
            triton_grouped.matmul(*arguments, offsets=ends, **options)
    with pytest.raises(TypeError, match="offsets"):
        triton_grouped.matmul(a, b)
    with pytest.raises(ValueError, match="rows in groups may be 1073741824 at most"):
        describe_ragged(torch.empty((MOST_ROWS + 1, 8), device="meta"), 16, 8)


CAPABILITIES = ((7, 5), (8, 0), (8, 9), (9, 0), (10, 0), (12, 0))
CORES = {(7, 5): "FMAs", (9, 0): "wgmma", (10, 0): "tcgen05.mma"}  # mma.sync elsewhere


@pytest.mark.long
@pytest.mark.parametrize("capability", CAPABILITIES, ids=str)
def test_what_each_gpu_gets(capability):
    jobs = {}
    with other_gpu(capability):
        a, b, y = (torch.empty(s, dtype=torch.bfloat16, device=PLACE)
                   for s in ((2048, 512), (8, 512, 512), (2048, 512)))  # fmt: skip
        for name, left, right in (("rows", a, b), ("along", a.T, y)):
            options = {"offsets": as_offsets(range(8)), "check": False}
            ((kernel, arguments, options),) = launched(
                triton_grouped.matmul, left, right, **options
            )
            jobs[name] = kernel, arguments, options, capability
    for name, code in tile_codes(jobs).items():
        assert code.count(CORES.get(capability, "mma.sync")) > 0 and code.spilled_bytes == 0, name
        assert (
            bool(code.count("TMA loads"))
            == bool(code.count("TMA stores"))
            == (capability >= (9, 0))
        )
        if capability == (9, 0):  # tiles go from shared memory to the products as they are
            assert code.ttgir.count("local_load") == 0


# --- on a GPU -------------------------------------------------------------------------------------

LARGER = (
    ((5, 5, 30, 44), 50),
    ((0, 0, 0, 0), 20),
    ((300, 300, 300, 300), 300),
    ((1, 130, 131, 700), 700),
    ((3, 3, 3, 9000), 9000),
    ((100, 900, 1700, 2000), 2048),
)


@pytest.mark.gpu
@pytest.mark.parametrize("ends, rows", LARGER, ids=str)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_larger_groups_on_the_gpu(dtype, ends, rows):
    a, b, y = (ints(*s, dtype=dtype) for s in ((rows, 264), (4, 264, 520), (rows, 520)))
    for _ in range(2):  # the second goes by a plan
        run(a, b, ends)
        run(a, b.mT.contiguous().mT, ends)
        run(a.T, y, ends)
        run(a.T.contiguous(), y, ends)
        run(a, b, ends, out=torch.zeros((rows, 521), device="cuda").to(a)[:, 1:])


@pytest.mark.gpu
def test_a_graph_follows_the_offsets_without_the_host():
    a, b, y = ints(700, 264), ints(4, 264, 520), ints(700, 520)
    offsets = as_offsets((1, 130, 131, 700))
    outs = a.new_empty(700, 520), a.new_empty(4, 264, 520)
    calls = (a, b, outs[0]), (a.T, y, outs[1])
    for call in calls:
        triton_grouped.matmul(*call, offsets=offsets)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            triton_grouped.matmul(*call, offsets=offsets)
    for ends in ((0, 10, 600, 690), (700, 700, 700, 700), (0, 0, 0, 0), (65, 66, 67, 68)):
        offsets.copy_(as_offsets(ends))
        for out in outs:
            out.fill_(9)
        graph.replay()
        assert_rows(outs[0], a, b, ends)
        assert_along(outs[1], a.T, y, ends)


@pytest.mark.gpu
def test_nothing_waits_for_the_gpu():
    a, b, y, offsets = ints(700, 264), ints(4, 264, 520), ints(700, 520), as_offsets((1, 2, 3, 700))
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(2):
            triton_grouped.matmul(a, b, offsets=offsets)
            triton_grouped.matmul(a.T, y, offsets=offsets)
        with pytest.raises(RuntimeError, match="synchroniz"):
            triton_grouped.matmul(a, b, offsets=offsets, check=True)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.gpu
def test_a_check_is_made_in_every_call():
    a, b = ints(20, K), ints(2, K, N)
    out = a.new_empty(20, N)
    for ends in ((3, 20), (20, 20)):
        run(a, b, ends, out=out, check=True)
    for _ in range(2):  # of the kind that was right before
        with pytest.raises(ValueError, match="group 1 begins at 5 and ends at 3"):
            triton_grouped.matmul(a, b, out, offsets=as_offsets((5, 3)), check=True)


def remembered():
    return [plan for plan in triton_grouped.matmul.plans.values() if plan.steps is not None]


@pytest.mark.gpu
def test_plans_take_other_offsets_for_what_they_are():
    """A plan is for a kind of offsets; their numbers and their address may be others."""
    triton_grouped.matmul.plans.clear()
    a, b, y = ints(700, 264), ints(4, 264, 520), ints(700, 520)
    for _ in range(3):
        for ends in ((1, 130, 131, 700), (0, 0, 600, 700)):
            run(a, b, ends)
            assert_along(triton_grouped.matmul(y.T, y, offsets=as_offsets(ends)), y.T, y, ends)
    assert len(remembered()) == 2
    odd = as_offsets((9, 1, 130, 131, 700))[1:]  # its address is no multiple of 16 bytes
    for _ in range(2):
        assert_rows(triton_grouped.matmul(a, b, offsets=odd), a, b, (1, 130, 131, 700))
    assert len(remembered()) == 3
    other = ints(700, 520, seed=6)  # not one tensor twice, as above
    for _ in range(2):
        c = triton_grouped.matmul(other.T, y, offsets=as_offsets((1, 130, 131, 700)))
        assert_along(c, other.T, y, (1, 130, 131, 700))
    assert len(remembered()) == 4
    triton_grouped.matmul(a, b, offsets=as_offsets((1, 130, 131, 700)), check=True)
    assert len(remembered()) == 4


@pytest.mark.gpu
def test_a_later_call_refuses_what_a_first_one_does():
    a, b = ints(64, 64), ints(4, 64, 64)
    room = torch.zeros(2**15, dtype=torch.uint8, device="cuda")
    offsets = room[:16].view(torch.int32).copy_(as_offsets((1, 2, 3, 64)))
    far, near = (room[i : i + 2**13].view(a.dtype).view(64, 64) for i in (2**14, 0))
    for _ in range(2):
        triton_grouped.matmul(a, b, far, offsets=offsets)
        with pytest.raises(ValueError, match="shares memory with"):
            triton_grouped.matmul(a, b, near, offsets=offsets)
        with pytest.raises(ValueError, match="shares memory with"):
            triton_grouped.matmul(a, b, a, offsets=offsets)
        with pytest.raises(TypeError, match="must be int32"):
            triton_grouped.matmul(a, b, offsets=offsets.long())
        with pytest.raises(TypeError, match="offsets must be a torch tensor, got NoneType"):
            triton_grouped.matmul(a, b, offsets=None)
        with pytest.raises(ValueError, match="offsets lies on cpu"):
            triton_grouped.matmul(a, b, offsets=offsets.cpu())
