"""grader/: kernels that compute something else than C = A·B, on any arrays."""

from dataclasses import replace

import numpy as np
import pytest

from tiled_matmul.check import diagnose_result
from tiled_matmul.grader import pool, practice
from tiled_matmul.grader.judge import judge
from tiled_matmul.grader.spec import (
    CUDA,
    TRITON,
    Case,
    Count,
    Exercise,
    Limits,
    Operation,
    Slip,
    cover,
)

SUMS = Operation(
    arrays=("a", "c"),
    shapes=lambda case: ((case.m, case.n), (case.m,)),
    result=lambda case, a: (a.sum(axis=1), abs(a).sum(axis=1)),
    terms=lambda case: case.n,
)
STORES = Count("global stores", lambda case: case.m, "Again.", best=lambda case: case.m)
ROWS = Exercise(
    name="99.1",
    title="sums of rows",
    points=2,
    entry="sums",
    parameters=("a", "c"),
    kind="cuda",
    rules=CUDA,
    launch=lambda case: ((cover(case.m, 32),), (32,)),
    cases=(Case(40, 35, 1), Case(5, 3, 1, draw="normal"), Case(7, 9, 1, "int32", draw="full")),
    counts=(STORES,),
    slips=(Slip(lambda case, a: a[:, :-1].sum(axis=1), "last", "The last column is left out."),),
    hints={"other": 1},
    operation=SUMS,
)
SUM = """@cuda.jit
def sums(a, c):
    i = cuda.grid(1)
    if i < a.shape[0]:
        acc = c.dtype.type(0)
        for k in range(a.shape[1]):
            acc += a[i, k]
        c[i] = acc
"""
BATCH = Exercise(
    name="99.2",
    title="a batch",
    points=2,
    entry="batch",
    parameters=tuple(
        "a b c M N K a_one a_row a_col b_one b_row b_col c_one c_row c_col BLOCK".split()
    ),
    kind="triton",
    rules=TRITON,
    launch=lambda case: ((cover(case.n, 16), cover(case.m, 16), case.parts), {"BLOCK": 16}),
    cases=(
        Case(20, 35, 40, "float16", parts=3),
        Case(9, 17, 33, "float16", parts=2, apart=True, draw="normal"),
    ),
    hints={"other": 1},
    operation=Operation(
        arrays=("a", "b", "c"),
        shapes=lambda case: tuple((case.parts, *shape[-2:]) for shape in case.shapes),
        product=lambda case, a, b: (a, b),
    ),
)
PRODUCT = """@triton.jit
def batch(a, b, c, M, N, K, a_one, a_row, a_col, b_one, b_row, b_col, c_one, c_row, c_col,
          BLOCK: tl.constexpr):
    z = tl.program_id(2)
    m = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[:, None]
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[None, :]
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, K, BLOCK):
        k = start + tl.arange(0, BLOCK)
        x = tl.load(a + z * a_one + m * a_row + k[None, :] * a_col,
                    mask=(m < M) & (k[None, :] < K), other=0.0)
        y = tl.load(b + z * b_one + k[:, None] * b_row + n * b_col,
                    mask=(k[:, None] < K) & (n < N), other=0.0)
        acc = tl.dot(x, y, acc)
    tl.store(c + z * c_one + m * c_row + n * c_col, acc, mask=(m < M) & (n < N))
"""

VECTOR = replace(
    BATCH,
    name="99.3",
    title="a matrix times a vector",
    entry="times",
    parameters=("a", "x", "c", "M", "K", "a_row", "a_col", "x_step", "c_step", "BLOCK"),
    launch=lambda case: ((case.m,), {"BLOCK": 16}),
    cases=(
        Case(9, 1, 40, "float16", draw="wide"),
        Case(5, 1, 33, "float16", apart=True, by_columns="c"),
        Case(7, 1, 20, "float16", by_columns="ax"),
    ),
    operation=Operation(
        arrays=("a", "x", "c"),
        shapes=lambda case: ((case.m, case.k), (case.k,), (case.m,)),
        product=lambda case, a, x: (a, x),
        sizes="mk",
    ),
)
TIMES = """@triton.jit
def times(a, x, c, M, K, a_row, a_col, x_step, c_step, BLOCK: tl.constexpr):
    m = tl.program_id(0)
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, K, BLOCK):
        k = start + tl.arange(0, BLOCK)
        left = tl.load(a + m * a_row + k * a_col, mask=k < K, other=0.0).to(tl.float32)
        sums += left * tl.load(x + k * x_step, mask=k < K, other=0.0)
    tl.store(c + m * c_step, tl.sum(sums, 0))
"""


@pytest.fixture(scope="module")
def workers():
    with (
        pool.Worker("cuda", Limits(), confined=False) as cuda,
        pool.Worker("triton", Limits(), confined=False) as triton,
    ):
        yield {"cuda": cuda, "triton": triton}


def told(workers, exercise, source):
    return judge(exercise, source, seed=5, worker=workers[exercise.kind])


def test_a_right_kernel_passes_and_its_counts_stand_beside_the_best(workers):
    verdict = told(workers, ROWS, SUM)
    assert verdict.status == "PASS", verdict
    case, line = practice.counts(verdict)
    assert case == f"  In the whole launch, {ROWS.described(ROWS.cases[0])}:"
    assert line == "  global stores: 40; the target is at most 40"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("range(a.shape[1])", "range(a.shape[1] - 1)", "The last column is left out."),
        ("range(a.shape[1])", "range(0)", "The wrong elements are all zero."),
        ("c[i] = acc", "c[i] = acc + 1", "a 40×35, c 40: C (40, float32) is wrong in 40 of 40"),
        ("c[i] = acc", "c[i] += acc", "C is the right result plus what C held before"),
        ("c[i] = acc", "a[i, 0] = acc\n        c[i] = acc", "changes its input a"),
        ("a.shape[0]", "a.shape[0] - 1", "still hold what C held before"),
        (
            "            acc += a[i, k]",
            "            acc += a[i, k]\n            c[i] = acc",
            "Again",
        ),
    ],
)
def test_a_wrong_kernel_is_told_what_is_wrong(old, new, words, workers):
    assert old in SUM
    verdict = told(workers, ROWS, SUM.replace(old, new))
    assert verdict.status == "WRONG" and words in verdict.message, verdict


def test_a_batch_is_compared_matrix_by_matrix(workers):
    assert told(workers, BATCH, PRODUCT).status == "PASS"
    wrong = told(workers, BATCH, PRODUCT.replace("z * a_one", "0 * a_one"))
    assert "reads" in wrong.message and wrong.status == "WRONG"
    only = PRODUCT.replace("acc = tl.dot(x, y, acc)", "acc = tl.dot(x, y, acc) + (z == 2)")
    verdict = told(workers, BATCH, only)
    assert "Matrix 2 of the batch (1 of 3 are wrong): C (20×35, float16) is" in verdict.message


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("sums += left", "sums += (k > 0) * left", "The sum over k starts at 1 instead of 0."),
        ("tl.sum(sums, 0)", "2 * tl.sum(sums, 0)", "C is A·x times 2."),
        ("tl.sum(sums, 0)", "tl.sum(sums, 0) + 1000", "The wrong ones fill rows 0–8."),
        ("k * x_step", "k", "33 long: the load returns data of the tensor that x is a view of"),
        ("c + m * c_step", "c + m", "between its own of c, which is 5 long"),
        ("c + m * c_step", "c + m * x_step", "between its own of c, which is 5 long"),
        ("k * x_step", "k * c_step", "columns 33 to 48 of x, which is 33 long"),
    ],
)
def test_a_vector_is_a_matrix_of_one_column(old, new, words, workers):
    assert told(workers, VECTOR, TIMES).status == "PASS"
    assert old in TIMES
    verdict = told(workers, VECTOR, TIMES.replace(old, new))
    assert verdict.status == "WRONG" and words in verdict.message, verdict


def test_operations_need_an_output_and_one_way_to_judge():
    for fields, words in (
        ({"arrays": ("a",), "product": max}, "the last of the arrays is the output c"),
        ({"arrays": ("a", "b"), "product": max}, "the last of the arrays is the output c"),
        ({"arrays": ("a", "c")}, "either a `product` or a `result`"),
        ({"arrays": ("a", "c"), "product": max, "result": max}, "either a `product` or a `result`"),
    ):
        with pytest.raises(ValueError, match=words):
            Operation(shapes=SUMS.shapes, **fields)


def test_a_result_is_compared_within_its_own_bound():
    right, sizes = np.array([[0.1, 3.0]]), np.array([[8.0, 8.0]])
    old = np.zeros((1, 2), np.float32)
    near = (right + 15 * 2.0**-24 * 8).astype(np.float32)
    assert diagnose_result(near, right, sizes, 16, old).ok
    assert not diagnose_result(near, right, sizes, 8, old).ok
    nan = np.array([[np.nan, 3.0]], np.float32)
    assert diagnose_result(nan, right, sizes, 16, old).pattern == "not finite"
    whole = np.array([[1, 2]], np.int32)
    assert diagnose_result(whole, whole.astype(float), sizes, 1, whole).ok
    assert not diagnose_result(whole + 1, whole.astype(float), sizes, 1, whole).ok
