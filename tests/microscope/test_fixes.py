"""fixes.py: bfloat16 and float8 in Triton's interpreter are what they are on a GPU."""

import numpy as np
import pytest
import torch

from tiled_matmul.kit.backend import select
from tiled_matmul.microscope.triton import fixes, narrow

pytestmark = pytest.mark.skipif(select().on_gpu, reason="the interpreter is switched off")


def test_every_bfloat16_is_widened_as_torch_does_it():
    bits = np.arange(2**16, dtype=np.uint16)
    theirs = torch.from_numpy(bits.view(np.int16)).view(torch.bfloat16).float().numpy()
    np.testing.assert_array_equal(narrow.widened(bits), theirs)


def test_every_float32_is_rounded_as_torch_does_it():
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 2**32, 200_000, dtype=np.uint32)
    between = np.arange(2**16, dtype=np.uint32) << 16 | 0x8000  # ties, each of them
    bits = np.concatenate([bits, between, between + 1, between - 1])
    values = bits.view(np.float32)
    theirs = torch.from_numpy(values.copy()).bfloat16().float().numpy()
    np.testing.assert_array_equal(narrow.widened(narrow.narrowed(values)), theirs)


def test_kernels_multiply_and_round_bfloat16():
    import triton
    import triton.language as tl

    fixes.apply_fixes()
    fixes.apply_fixes()  # once more changes nothing

    @triton.jit
    def kernel(a, b, c, d):
        i = tl.arange(0, 16)
        at = i[:, None] * 16 + i[None, :]
        product = tl.dot(tl.load(a + at), tl.load(b + at))
        tl.store(c + at, product.to(tl.bfloat16))
        tl.store(d + at, tl.load(a + at).to(tl.float16))

    generator = torch.Generator().manual_seed(3)
    a, b = (torch.randn(16, 16, generator=generator).bfloat16() for _ in range(2))
    c, d = torch.empty_like(a), torch.empty(16, 16, dtype=torch.float16)
    kernel[(1,)](a, b, c, d)
    exact = a.double() @ b.double()
    assert torch.equal(c, exact.bfloat16())
    assert torch.equal(d, a.half())


def test_a_constant_to_the_left_of_a_tensor_gives_a_tensor():
    import triton
    import triton.language as tl

    fixes.apply_fixes()

    @triton.jit
    def kernel(x, out):
        seven = tl.constexpr(7)
        i = tl.arange(0, 16)
        n, one = tl.load(x + i), tl.load(x + 3)
        tl.store(out + i, (seven + n).to(tl.int64))
        tl.store(out + 16 + i, (seven - n).to(tl.int64) * (seven * n).to(tl.int64))
        tl.store(out + 32 + i, (seven // n).to(tl.int64) + (seven % n).to(tl.int64) * 100)
        tl.store(out + 48 + i, (seven < n).to(tl.int64) + (seven >= n).to(tl.int64) * 2)
        tl.store(out + 64 + i, (seven == n).to(tl.int64) + (seven != n).to(tl.int64) * 2)
        tl.store(out + 80 + i, (seven & n).to(tl.int64) + (seven | n) * 100 + (seven ^ n) * 10_000)
        tl.store(out + 96 + i, (seven << n).to(tl.int64) + (seven >> n) * 10_000_000)
        tl.store(out + 112 + i, ((seven / n).to(tl.float64) * 1e6).to(tl.int64))
        tl.store(out + 128 + i, i + (seven - one).to(tl.int64) + (seven <= one) + (seven > one))

    n = np.arange(1, 17)
    out = torch.zeros(9, 16, dtype=torch.int64)
    kernel[(1,)](torch.from_numpy(n.astype(np.int32)), out)
    wanted = [
        *(7 + n, (7 - n) * 7 * n, 7 // n + 7 % n * 100, (7 < n) + (n <= 7) * 2),
        *((n == 7) + (n != 7) * 2, (7 & n) + (7 | n) * 100 + (7 ^ n) * 10_000),
        *((7 << n) + (7 >> n) * 10_000_000, (np.float32(7) / n.astype(np.float32)) * 1e6),
        np.arange(16) + 3 + 1,
    ]
    for row, expected in zip(out.numpy(), wanted, strict=True):
        np.testing.assert_allclose(row, expected, atol=1)  # a quotient is cut off
    np.testing.assert_array_equal(out[:7].numpy(), wanted[:7])


@pytest.mark.parametrize("shape", [[16], [8, 32], [1, 1, 4], [2, 4, 8, 2]], ids=str)
@pytest.mark.parametrize("kind", ["float16", "int1", "a pointer", "a constant pointer"])
def test_types_and_tensors_that_are_remembered_are_those_of_triton(shape, kind):
    import triton.language as tl

    pointers = {
        "a pointer": tl.pointer_type(tl.float32),
        "a constant pointer": tl.pointer_type(tl.float32, const=True),
    }
    element = pointers.get(kind) or getattr(tl, kind)
    made = []
    for block in (plain(tl.block_type), tl.block_type, tl.block_type):
        for sizes in (shape, [tl.constexpr(size) for size in shape]):
            one = block(element, sizes)
            assert one.element_ty is element and one.numel == np.prod(shape)
            made.append((str(one), list(one.shape), one.numel, one.mangle(), one.scalar))
            for tensor in (plain(tl.tensor), tl.tensor, tl.tensor):
                value = tensor("a handle", tl.block_type(element, sizes))
                assert value.handle == "a handle" and value.dtype is element
                assert [size.value for size in value.shape] == shape
                assert value.numel.value == np.prod(shape) and value.type == one
    assert all(one == made[0] for one in made)


def plain(kind):
    """Return the class as it is in Triton, without what apply_fixes() changed."""
    fixes.apply_fixes()
    (init,) = [
        cell.cell_contents
        for name, cell in zip(
            kind.__init__.__code__.co_freevars, kind.__init__.__closure__, strict=True
        )
        if name == "init"
    ]
    assert init.__module__ == kind.__module__
    return type(kind.__name__, (kind,), {"__init__": init})


@pytest.mark.parametrize("shape", [[3], [1.0], [True], [], [0], ["2"], [-4]], ids=str)
def test_a_shape_that_triton_refuses_is_refused_every_time(shape):
    import triton.language as tl

    fixes.apply_fixes()
    tl.block_type(tl.float16, [1])
    told = []
    for block in (plain(tl.block_type), tl.block_type, tl.block_type):
        try:
            told.append(str(block(tl.float16, shape)))
        except (TypeError, ValueError, AttributeError) as error:
            told.append(repr(error))
    assert told[0] == told[1] == told[2]


def test_a_type_has_the_array_that_triton_gives_it():
    import triton.language as tl
    from triton.runtime import interpreter

    fixes.apply_fixes()
    names = ("float16", "float32", "bfloat16", "int1", "int8", "uint8", "int32", "int64", "uint64")
    for scalar in (*(getattr(tl, name) for name in names), tl.pointer_type(tl.int8)):
        for kind in (scalar, tl.block_type(scalar, [4, 2])):
            wanted = np.dtype(kind_of(scalar))
            assert interpreter._get_np_dtype(kind) == interpreter._get_np_dtype(kind) == wanted


def kind_of(scalar):
    """Return numpy's name for what is stored: bits of bfloat16, numbers of pointers."""
    if scalar.is_ptr():
        return "uint64"
    return {"bf16": "uint16", "int1": "bool"}.get(scalar.name) or {
        "fp16": "float16",
        "fp32": "float32",
    }.get(scalar.name, scalar.name)


FLOAT8 = {"fp8e4nv": torch.float8_e4m3fn, "fp8e5": torch.float8_e5m2}


@pytest.mark.parametrize("name", FLOAT8)
def test_every_float8_is_what_torch_says_in_products_and_in_casts(name):
    import triton
    import triton.language as tl

    fixes.apply_fixes()

    @triton.jit
    def kernel(a, one, product, cast):
        i, j = tl.arange(0, 256), tl.arange(0, 16)
        at = i[:, None] * 16 + j[None, :]
        values = tl.load(a + at)
        tl.store(product + at, tl.dot(values, tl.load(one + j[:, None] * 16 + j[None, :])))
        tl.store(cast + at, values.to(tl.float32))

    a, one = torch.zeros(2, 256, 16).to(FLOAT8[name])
    a[:, 0] = torch.arange(256, dtype=torch.uint8).view(FLOAT8[name])
    one = one[:16].clone()
    one[0] = 1.0
    theirs = a[:, :1].float().expand(256, 16)
    np.testing.assert_array_equal(narrow.FLOAT8[name], theirs[:, 0].numpy())
    product, cast = torch.empty(2, 256, 16)
    with np.errstate(invalid="ignore"):
        kernel[(1,)](a, one, product, cast)
    finite = theirs.isfinite()
    assert torch.equal(product[finite], theirs[finite])
    assert torch.equal(product.isfinite(), finite)
    assert torch.equal(cast[:, 0].nan_to_num(7), theirs[:, 0].nan_to_num(7))
