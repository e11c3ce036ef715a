"""check.py: right results pass, and every planted fault is caught and named."""

import numpy as np
import pytest

from tiled_matmul.check import MatmulError, assert_matmul, diagnose, gamma, poison, run_checked
from tiled_matmul.problem import Problem

SHAPES = ["1x1x1", "9x9x9", "17x33x65", "40x40x50", "3x50x1000"]


@pytest.fixture
def case():
    a, b = Problem(40, 40, 50).inputs(1)
    return a, b, a @ b


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["normal", "integers"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_right_products_pass(shape, kind, dtype):
    a, b = Problem.parse(shape, dtype).inputs(2, kind)
    wide = np.float64 if dtype == "float64" else np.float32
    report = assert_matmul((a.astype(wide) @ b.astype(wide)).astype(dtype), a, b)
    assert report.ok and 0 <= report.worst <= 1


@pytest.mark.parametrize("order", [1, -1])
def test_any_order_of_summation_stays_within_the_bound(order):
    a, b = Problem(8, 8, 3000).inputs(3)
    c = np.zeros((8, 8), np.float32)
    for k in range(3000)[::order]:
        c += np.outer(a[:, k], b[k])
    assert 0 < assert_matmul(c, a, b).worst < 1


def test_integer_inputs_leave_no_tolerance():
    a, b = Problem(20, 20, 20).inputs(0, "integers")
    c = a @ b
    c[3, 4] = np.nextafter(c[3, 4], np.float32(np.inf))
    report = diagnose(c, a, b)
    assert not report.ok and report.first == (3, 4) and "has to be equal" in report.message


def test_int32_wraps_around():
    a = np.full((2, 3), 2**30, np.int32)
    b = np.full((3, 2), 3, np.int32)
    assert assert_matmul(a @ b, a, b).ok
    assert not diagnose(a @ b + 1, a, b).ok


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_never_pass(case, value):
    a, b, c = case
    c[7, 8] = value
    report = diagnose(c, a, b)
    assert (report.ok, report.wrong, report.first) == (False, 1, (7, 8))
    assert report.pattern == "not finite"


def test_all_nan_never_passes(case):
    a, b, c = case
    assert diagnose(np.full_like(c, np.nan), a, b).wrong == c.size


def test_one_wrong_element_is_found_and_placed(case):
    a, b, c = case
    c[20, 33] += 1e-3
    report = diagnose(c, a, b, tile=16)
    assert report.wrong == 1 and report.first == (20, 33) and report.worst > 1
    assert "1 of 9 tiles of 16×16, first tile (1, 2)" in report.message


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("transposed", lambda a, b, c: c.T.copy()),
        ("transposed", lambda a, b, c: a[:, :40] @ b[:40].T),
        ("part of k", lambda a, b, c: a[:, :48] @ b[:48]),
        ("part of k", lambda a, b, c: a[:, :49] @ b[:49]),
        ("part of k", lambda a, b, c: a[:, 1:] @ b[1:]),
        ("scaled", lambda a, b, c: 2 * c),
        ("scaled", lambda a, b, c: -c),
        ("zero", lambda a, b, c: 0 * c),
        ("low precision", lambda a, b, c: a.astype(np.float16).astype(np.float32) @ b),
    ],
)
def test_known_mistakes_are_named(pattern, fault):
    a, b = Problem(40, 40, 40 if "T" in pattern else 50).inputs(1)
    if pattern == "transposed":
        a, b = Problem(40, 40, 40).inputs(1)
    report = diagnose(fault(a, b, a @ b), a, b)
    assert not report.ok
    assert report.pattern == pattern, report.message


def test_known_mistakes_are_named_for_exact_inputs_too():
    a, b = Problem(40, 40, 50).inputs(1, "integers")
    assert diagnose(3 * (a @ b), a, b).pattern == "scaled"
    assert diagnose(a[:, :48] @ b[:48], a, b).pattern == "part of k"
    assert "stops at 48 of 50" in diagnose(a[:, :48] @ b[:48], a, b).message


def test_a_wrong_ragged_edge_is_named(case):
    a, b, c = case
    c[32:] += 1
    c[:, 32:] += 1
    assert diagnose(c, a, b, tile=16).pattern == "ragged edge"
    c[0, 0] += 1
    assert diagnose(c, a, b, tile=16).pattern != "ragged edge"


def test_stale_results_are_named(case):
    a, b, c = case
    before = np.full_like(c, 3)
    assert diagnose(c + before, a, b, previous=before).pattern == "stale"
    half = np.where(np.arange(40) < 20, c, before)
    assert diagnose(half, a, b, previous=before).pattern == "stale"


@pytest.mark.parametrize("wrong", [np.zeros((40, 39), np.float32), np.zeros((40, 40), np.float64)])
def test_wrong_shape_or_dtype_never_passes(case, wrong):
    a, b, _ = case
    with pytest.raises(MatmulError, match="shape|dtype"):
        assert_matmul(wrong, a, b)


def test_inputs_that_cannot_be_judged_are_refused(case):
    a, b, c = case
    with pytest.raises(ValueError, match="do not fit"):
        diagnose(c, a, b[:-1])
    with pytest.raises(ValueError, match="2-D and not empty"):
        diagnose(c, a[:0], b)
    with pytest.raises(TypeError, match="one dtype"):
        diagnose(c, a, b.astype(np.float64))
    with pytest.raises(TypeError, match="got list"):
        diagnose(c, [[1.0]], b)
    with pytest.raises(ValueError, match="tile must be positive"):
        diagnose(c, a, b, tile=0)
    with pytest.raises(TypeError, match=r"whole numbers, got \(8,\)"):
        diagnose(c, a, b, tile=(8,))
    with pytest.raises(TypeError, match="C must be an array or a tensor, got NoneType"):
        diagnose(None, a, b)
    a[2, 3] = np.nan
    with pytest.raises(ValueError, match=r"A\[2, 3\] is nan"):
        diagnose(c, a, b)


def test_no_bound_is_invented_where_none_exists():
    assert gamma(100, "float32") == pytest.approx(100 * 2**-24, rel=1e-4)
    with pytest.raises(ValueError, match="no error bound"):
        gamma(2**24, "float32")


def right(a, b, out):
    out[:] = a @ b
    return out


def test_a_product_that_leaves_float64_is_not_judged():
    a = np.full((2, 2), 1e200)
    with pytest.raises(ValueError, match="overflows float64"):
        diagnose(np.zeros((2, 2)), a, a)


def test_an_int64_that_is_off_by_its_top_bit_never_passes():
    a, b = np.array([[1]]), np.array([[5]])
    assert not diagnose(np.array([[5 - 2**63]]), a, b).ok


def test_subclasses_of_arrays_hide_nothing(case):
    a, b, c = case
    c[3, 4] = np.nan
    masked = np.ma.masked_invalid(c)
    assert diagnose(masked, a, b).first == (3, 4)

    class AlwaysFine(np.ndarray):
        def __le__(self, other):
            return np.ones(self.shape, bool)

    assert not diagnose((0 * c).view(AlwaysFine), a, b).ok


def test_arrays_and_tensors_are_not_compared(case):
    torch = pytest.importorskip("torch")
    a, b, c = case
    with pytest.raises(TypeError, match="C is Tensor and A is ndarray"):
        diagnose(torch.from_numpy(c), a, b)
    with pytest.raises(ValueError, match="C is on meta, A on cpu"):
        diagnose(torch.empty(40, 40, device="meta"), *map(torch.from_numpy, (a, b)))


@pytest.mark.parametrize("error", [1.6, 8])
def test_one_element_slightly_off_is_called_nothing_else(case, error):
    a, b, _ = case
    for right in (b, a.T.copy()):  # the second product is symmetric
        c = (a @ right).astype(np.float32)
        allowed = gamma(50, "float32") * (np.abs(a[2]) @ np.abs(right[:, 3]))
        c[2, 3] += error * allowed
        report = diagnose(c, a, right)
        assert report.wrong == 1 and report.pattern is None, report.message


def test_integers_are_never_called_imprecise():
    a, b = (np.full((9, 9), 100, np.int32) for _ in range(2))
    assert diagnose(a @ b + np.arange(9, dtype=np.int32) + 1, a, b).pattern is None


def test_an_honest_value_that_looks_unwritten_is_not_named():
    a, b = np.eye(2, dtype=np.int8), np.array([[-89, 1], [2, 3]], np.int8)  # -89 is 0xA7
    report = diagnose(b + np.array([[0, 0], [0, 1]], np.int8), a, b)
    assert report.wrong == 1 and report.pattern is None


def test_worst_is_the_largest_error_and_not_the_first(case):
    a, b, c = case
    c[0, 0] += 1e-2
    first = diagnose(c, a, b).worst
    c[30, 30] += 1
    assert diagnose(c, a, b).worst > 10 * first
    c[31, 31] = np.nan
    assert diagnose(c, a, b).worst == np.inf


def test_run_checked_refuses_inputs_before_it_runs_anything(case):
    a, b, _ = case
    a[1, 2] = np.nan

    def never(a, b, out):
        raise AssertionError("it ran")

    with pytest.raises(ValueError, match=r"A\[1, 2\] is nan"):
        run_checked(never, a, b)
    with pytest.raises(TypeError, match="A must be an array or a tensor, got list"):
        run_checked(never, [[1.0]], b)


def test_run_checked_returns_the_launchers_result(case):
    a, b, c = case
    assert (run_checked(right, a, b) == c).all()


@pytest.mark.parametrize("kind", ["numpy", "cpu"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
def test_an_element_never_written_is_caught(kind, dtype):
    a, b = Problem(9, 8, 7, dtype).inputs(0, "integers", kind)

    def forgets_the_last_row(a, b, out):
        out[:-1] = (a @ b)[:-1]
        return out

    with pytest.raises(MatmulError, match=r"never written: 8, the first of them C\[8, 0\]"):
        run_checked(forgets_the_last_row, a, b)


def test_run_checked_refuses_launchers_that_cheat(case):
    a, b, _ = case

    def returns_another(a, b, out):
        return a @ b

    def overwrites_its_input(a, b, out):
        a *= 0
        return right(a, b, out)

    with pytest.raises(MatmulError, match="must return out"):
        run_checked(returns_another, a, b)
    with pytest.raises(MatmulError, match="changed its input a"):
        run_checked(overwrites_its_input, a, b)


def test_poison_is_neither_zero_nor_nan():
    for dtype in (np.float16, np.float32, np.float64, np.int32):
        value = poison(np.empty((2, 2), dtype))[0, 0]
        assert value != 0 and value == value


def test_tensors_are_judged_like_arrays(case):
    torch = pytest.importorskip("torch")
    a, b, c = (torch.from_numpy(x) for x in case)
    assert diagnose(c, a, b).worst == pytest.approx(diagnose(*(case[i] for i in (2, 0, 1))).worst)
    c[1, 2] = float("nan")
    assert diagnose(c, a, b).first == (1, 2)


def test_bfloat16_sums_in_float32():
    torch = pytest.importorskip("torch")
    a, b = (x.to(torch.bfloat16) for x in Problem(9, 9, 300).inputs(device="cpu"))
    right = (a.float() @ b.float()).to(torch.bfloat16)
    assert diagnose(right, a, b).ok
    assert not diagnose(right * 1.02, a, b).ok


@pytest.mark.gpu
def test_tf32_is_told_apart_from_float32():
    import torch

    a, b = Problem(64, 64, 64).inputs(device="cuda")
    before = torch.backends.cuda.matmul.allow_tf32
    try:
        torch.backends.cuda.matmul.allow_tf32 = True
        assert diagnose(a @ b, a, b).pattern == "low precision"
        torch.backends.cuda.matmul.allow_tf32 = False
        assert diagnose(a @ b, a, b).ok
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
