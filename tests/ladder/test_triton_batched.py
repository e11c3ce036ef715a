"""A batch of products in one launch: right for any strides, and clear about what it refuses."""

import re

import pytest
import torch
from other_gpu import other_gpu

from tiled_matmul.check import MatmulError, assert_matmul
from tiled_matmul.kit import programs
from tiled_matmul.kit.backend import select
from tiled_matmul.kit.layouts import with_settled_strides
from tiled_matmul.kit.programs import launched
from tiled_matmul.kit.variants import edited
from tiled_matmul.ladder import rung, triton_batched
from tiled_matmul.microscope.compiled.triton import tile_codes

ON_GPU = select().on_gpu
PLACE = "cuda" if ON_GPU else "cpu"
SMALL = {"block": (32, 32, 16), "num_warps": 4, "num_stages": 2}
LARGER = (
    *((3, 300, 520, 264), (3, 130, 36, 70), (2, 77, 99, 65), (5, 1, 300, 512)),
    *((2, 300, 1, 512), (40, 32, 32, 32), (9, 64, 64, 64), (3, 600, 601, 72)),
)
TURNS = {
    "as it is": lambda x: x,
    "by columns": lambda x: x.mT.contiguous().mT,
    "one for all": lambda x: x[:1].expand(x.shape),
    "in a wider one": lambda x: x.new_zeros(*x.shape[:2], x.shape[2] + 9)[:, :, 1:-8].copy_(x),
    "every second": lambda x: torch.stack([x, x], 1).flatten(0, 1)[::2],
    "heads inside": lambda x: x.movedim(0, 1).contiguous().movedim(1, 0),
}


def operands(batch=2, m=37, n=40, k=24, dtype="float16", seed=5):
    numbers = torch.Generator().manual_seed(seed)
    shapes = (batch, m, k), (batch, k, n)
    made = (torch.randint(-4, 5, shape, generator=numbers) for shape in shapes)
    return [x.to(PLACE, getattr(torch, dtype)) for x in made]


def assert_products(c, a, b):
    for each in zip(c, a, b, strict=True):
        assert_matmul(*(x.contiguous() for x in each))


def run(a, b, **options):
    out = torch.full((a.shape[0], a.shape[1], b.shape[2]), float("nan")).to(a.device, a.dtype)
    assert triton_batched.matmul(a, b, out=out, **options) is out
    assert_products(out, a, b)


def test_it_is_among_the_rungs_of_a_layer():
    assert rung("triton_batched").matmul is triton_batched.matmul
    assert rung("triton_batched").kernel is triton_batched.triton_batched_kernel


@pytest.mark.parametrize("pointers", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_ragged_shapes_in_several_blocks(dtype, pointers):
    run(*operands(dtype=dtype), pointers=pointers, **SMALL)
    run(*operands(2, 35, 21, 37, dtype), pointers=pointers, **SMALL)


@pytest.mark.parametrize("name", TURNS)
def test_any_strides(name):
    a, b = operands(2, 20, 24, 18)
    for x, y in ((TURNS[name](a), b), (a, TURNS[name](b))):
        for pointers in (None, True):
            run(x, y, pointers=pointers, **SMALL)
    if name != "one for all":
        out = TURNS[name](a.new_zeros(2, 20, 24))
        assert triton_batched.matmul(a, b, out=out, **SMALL) is out
        assert_products(out, a, b)


def test_one_row_and_one_column():
    for sizes in ((2, 1, 40, 33), (2, 40, 1, 33), (1, 1, 1, 1)):
        a, b = operands(*sizes)
        run(a, b, **SMALL)
        run(a, b.mT.contiguous().mT, **SMALL)
    a, b = operands(2, 1, 40, 32)
    assert triton_batched.described(1, 40, *map(with_settled_strides, (a, b[:, :, :1])))


def test_loops_and_halves():
    a, b = operands(2, 20, 260, 24)
    for flatten in (False, True):
        run(a, b, block=(32, 256, 16), num_warps=4, num_stages=2, programs=3, flatten=flatten)


def test_other_matrices_do_not_leak_in():
    """Tiles reach beyond a matrix, into the next one: what is there must not count."""
    a, b = operands(3, 20, 24, 20)
    wanted = triton_batched.matmul(a, b, **SMALL)[1]
    for x in (a, b):
        x[0], x[2] = float("nan"), float("inf")
    for pointers in (False, True):
        assert torch.equal(triton_batched.matmul(a, b, pointers=pointers, **SMALL)[1], wanted)


@pytest.mark.parametrize(
    "line, other",
    [
        ("of_a, of_b = batch * a_step, batch * b_step", "of_a, of_b = batch * 0, batch * b_step"),
        ("batch = tile // each", "batch = tile % each"),
        ("grouped(tile % each,", "grouped(tile // each,"),
    ],
)
def test_a_mistake_in_the_kernel_is_found(monkeypatch, line, other):
    if ON_GPU:
        pytest.skip("wrong kernels run in the interpreter")
    kernel = edited(triton_batched.triton_batched_kernel, line, other)
    monkeypatch.setattr(triton_batched, "triton_batched_kernel", kernel)
    with pytest.raises(MatmulError):
        run(*operands(), pointers=False, **SMALL)


def test_bad_input_is_quoted():
    a, b = operands(2, 8, 8, 8)
    out = torch.empty(2, 8, 8, dtype=a.dtype, device=PLACE)
    negated = torch.zeros(2, 8, 8, dtype=torch.complex64, device=PLACE).conj().imag
    for arguments, options, error, message in (
        ((a[0], b), {}, ValueError, "a must be 3-D, got shape (8, 8)"),
        ((a, b[None]), {}, ValueError, "b must be 3-D, got shape (1, 2, 8, 8)"),
        ((a[:, :0], b), {}, ValueError, "a must not be empty, got shape (2, 0, 8)"),
        ((a[:0], b[:0]), {}, ValueError, "a must not be empty, got shape (0, 8, 8)"),
        ((a[:1], b), {}, ValueError, "a (1, 8, 8) has 1 matrices, b (2, 8, 8) has 2"),
        ((a[:, :, :7], b), {}, ValueError, "have 7 columns, those of b (2, 8, 8) have 8 rows"),
        ((a, b.float()), {}, TypeError, "a is float16 and b is float32"),
        ((a.int(), b.int()), {}, TypeError, "a has dtype int32"),
        ((a.tolist(), b), {}, TypeError, "a must be a torch tensor, got list"),
        ((a, b.to("meta")), {}, ValueError, "b lies on meta"),
        ((a.float().requires_grad_(), b.float()), {}, ValueError, "a requires grad"),
        ((a, b, out[:1]), {}, ValueError, "out has shape (1, 8, 8), the product has (2, 8, 8)"),
        ((a, b, out.float()), {}, TypeError, "out is float32, the inputs are float16"),
        ((a, b, a), {}, ValueError, "shares memory with a"),
        ((negated, negated), {}, ValueError, "a is to be negated when it is read"),
        ((a, b, out[:1].expand(2, 8, 8)), {}, ValueError, "each element needs its own address"),
        ((a, b), {"block": (32, 32)}, TypeError, "block must be"),
        ((a, b), {"block": (32, 24, 16)}, ValueError, "BLOCK_N must be a power of two"),
        ((a, b), {"group_m": 0}, ValueError, "group_m must be at least 1, got 0"),
        ((a, b), {"programs": 0}, ValueError, "programs must be at least 1, got 0"),
        ((a, b), {"num_warps": 3}, ValueError, "num_warps must be one of"),
    ):
        with pytest.raises(error, match=re.escape(message)):
            triton_batched.matmul(*arguments, **options)
    with pytest.raises(ValueError, match="a program counts them in 32 bits"):
        programs.check_count(2**31)


CAPABILITIES = ((7, 5), (8, 0), (8, 9), (9, 0), (10, 0), (12, 0))
CORES = {(7, 5): "FMAs", (9, 0): "wgmma", (10, 0): "tcgen05.mma"}  # mma.sync elsewhere


@pytest.mark.long
@pytest.mark.parametrize("capability", CAPABILITIES, ids=str)
def test_what_each_gpu_gets(capability):
    sizes = {"large": (4, 1024, 1024, 1024), "even": (4, 1024, 1024, 64), "odd": (4, 100, 300, 100)}
    jobs = {}
    with other_gpu(capability):
        for name, (batch, m, n, k) in sizes.items():
            a, b = (torch.empty(s, dtype=torch.float16, device=PLACE)
                    for s in ((batch, m, k), (batch, k, n)))  # fmt: skip
            ((kernel, arguments, options),) = launched(triton_batched.matmul, a, b)
            jobs[name] = kernel, arguments, options, capability
    codes = tile_codes(jobs)
    for name, code in codes.items():
        assert code.count(CORES.get(capability, "mma.sync")) > 0, name
        assert code.spilled_bytes <= (8 if capability == (12, 0) else 0), name
        by_descriptors = capability in ((9, 0), (10, 0)) and name != "odd"
        assert bool(code.count("TMA loads")) == bool(code.count("TMA stores")) == by_descriptors
    if capability == (9, 0):
        assert set(codes["odd"].widths["copies"]) == {8}  # 4 elements: what the strides allow
        for name in ("large", "even"):  # tiles go from shared memory to the products as they are
            assert codes[name].ttgir.count("local_load") == 0


@pytest.mark.gpu
@pytest.mark.parametrize("name", TURNS)
def test_larger_batches_on_the_gpu(name):
    for sizes in LARGER:
        a, b = operands(*sizes)
        for _ in range(2):  # the second goes by a plan
            run(TURNS[name](a), b)
            run(a, TURNS[name](b))


@pytest.mark.gpu
def test_offsets_beyond_31_bits_on_the_gpu():
    a = torch.ones((3, 2**16, 2**14), dtype=torch.float16, device="cuda")
    a[:, -1] = 2
    b = torch.ones((3, 2**14, 8), dtype=torch.float16, device="cuda")
    for pointers in (False, True):
        c = triton_batched.matmul(a, b, pointers=pointers)
        assert bool((c[:, :-1] == 2**14).all()) and bool((c[:, -1] == 2**15).all())
