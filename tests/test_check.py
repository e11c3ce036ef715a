"""check.py: right results pass, and every planted fault is caught and named."""

import numpy as np
import pytest
import torch

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


def test_whole_numbers_have_a_tolerance_where_a_partial_sum_is_too_large_to_be_exact():
    a, b = np.array([[2.0**24, 1, -(2.0**24)]], np.float32), np.ones((3, 1), np.float32)
    assert diagnose(np.zeros((1, 1), np.float32), a, b).ok  # 2²⁴ + 1 is 2²⁴ in float32


def test_whole_numbers_times_others_have_a_tolerance():
    a, _ = Problem(20, 30, 300).inputs(1, "integers")
    _, b = Problem(20, 30, 300).inputs(1)
    assert diagnose(a @ b, a, b).ok


def test_products_too_small_for_the_type_may_be_zero():
    a, b = (np.full((2, 2), value, np.float32) for value in (2.0**-100, 2.0**-60))
    assert diagnose(a @ b, a, b).ok


def test_worst_of_a_right_product_is_its_largest_error(case):
    a, b, _ = case
    c = (a.astype(np.float64) @ b).astype(np.float32)
    c[5, 6] += 0.7 * gamma(50, "float32") * (np.abs(a[5]) @ np.abs(b[:, 6]))
    report = diagnose(c, a, b)
    assert report.ok and 0.6 < report.worst < 0.8


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


def test_rows_and_columns_are_not_confused():
    a, b = Problem(40, 60, 50).inputs(1)
    c = a @ b
    c[32:36, 50:55] += 1
    message = diagnose(c, a, b, tile=(16, 20)).message
    assert "fill rows 32–35, columns 50–54: 1 of 9 tiles of 16×20, first tile (2, 2)" in message
    c = a @ b
    c[32:] += 1
    assert diagnose(c, a, b, tile=(16, 7)).pattern == "ragged edge"
    assert diagnose(c, a, b, tile=(7, 16)).pattern is None


def test_products_that_a_sum_lacks_are_counted(case):
    a, b, _ = case
    message = diagnose(a[:, :48] @ b[:48], a, b).message
    assert "stops at 48 of 50" in message and "last 2 products" in message
    assert "starts at 3 instead of 0" in diagnose(a[:, 3:] @ b[3:], a, b).message


def test_one_number_is_no_multiple():
    a, b = Problem(1, 1, 50).inputs(1)
    assert diagnose(3 * (a @ b), a, b).pattern is None


def test_an_error_of_a_tenth_is_not_called_rounding(case):
    a, b, c = case
    magnitude = np.abs(a) @ np.abs(b)
    assert diagnose(c + 0.1 * magnitude, a, b).pattern is None


def test_stale_results_are_named(case):
    a, b, c = case
    before = np.full_like(c, 3)
    assert diagnose(c + before, a, b, previous=before).pattern == "on top"
    half = np.where(np.arange(40) < 20, c, before)
    assert diagnose(half, a, b, previous=before).pattern == "stale"
    half[0, 39] = 4
    assert diagnose(half, a, b, previous=before).pattern is None


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
    with pytest.raises(TypeError, match=r"integer or .rows, columns., got \(8,\)"):
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
    b[3, 4] = np.inf

    def never(a, b, out):
        raise AssertionError("it ran")

    with pytest.raises(ValueError, match=r"B\[3, 4\] is inf"):
        run_checked(never, a, b)
    a[1, 2] = np.nan
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

    def overwrites_one_element(a, b, out):
        right(a, b, out)
        b[3, 4] += 1
        return out

    with pytest.raises(MatmulError, match="must return out"):
        run_checked(returns_another, a, b)
    with pytest.raises(MatmulError, match="changed its input a"):
        run_checked(overwrites_its_input, a, b)
    with pytest.raises(MatmulError, match="changed its input b"):
        run_checked(overwrites_one_element, a, b)


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


# --- sixteen bits, summed in thirty-two -----------------------------------------------------------


def tensors(shape, dtype, kind="normal", seed=2):
    return Problem.parse(shape, dtype).inputs(seed, kind, "cpu")


def rounded_each_time(a, b, kind, step=1):
    """Return A·B as a kernel makes it whose accumulator is of `kind`, `step` products at a time."""
    acc = torch.zeros(a.shape[0], b.shape[1], dtype=kind)
    for k in range(0, a.shape[1], step):
        acc += (a[:, k : k + step].float() @ b[k : k + step].float()).to(kind)
    return acc.to(a.dtype)


def tf32(x):
    """Return float32 numbers rounded to the 11 bits that TF32 keeps."""
    bits = x.view(torch.int32)
    return ((bits + 0xFFF + (bits >> 13 & 1)) & ~0x1FFF).view(torch.float32)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["normal", "integers"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_products_of_16_bits_summed_in_float32_pass(shape, kind, dtype):
    a, b = tensors(shape, dtype, kind)
    report = assert_matmul((a.float() @ b.float()).to(a.dtype), a, b)
    assert report.ok and 0 <= report.worst <= 1
    run_checked(lambda a, b, out: out.copy_(a.float() @ b.float()), a, b)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_whole_sums_have_to_be_the_nearest_that_the_type_has(dtype):
    a, b = (x.abs() for x in tensors("9x9x2000", dtype, "integers"))
    sums = a.double() @ b.double()
    c = sums.to(a.dtype)
    assert bool((c.double() != sums).any())  # there was something to round
    assert assert_matmul(c, a, b).ok
    wrong = c.clone().view(torch.int16)
    wrong[4, 5] += 1 if float(c[4, 5]) <= float(sums[4, 5]) else -1
    wrong[0, 0] += 1 if float(c[0, 0]) >= float(sums[0, 0]) else -1  # away from the sum
    report = diagnose(wrong.view(a.dtype), a, b)
    assert not report.ok and report.first == (0, 0) and report.wrong <= 2


def test_a_sum_that_the_type_cannot_hold_never_passes():
    a = torch.full((1, 40000), 2.0, dtype=torch.float16)
    for value in (float("inf"), 65504.0, 0.0):
        c = torch.full((1, 1), value, dtype=torch.float16)
        assert not diagnose(c, a, a.T.contiguous()).ok


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("transposed", lambda a, b, c: c.T.contiguous()),
        ("part of k", lambda a, b, c: (a[:, :48].float() @ b[:48].float()).to(a.dtype)),
        ("part of k", lambda a, b, c: (a[:, 1:].float() @ b[1:].float()).to(a.dtype)),
        ("scaled", lambda a, b, c: (2 * c.float()).to(a.dtype)),
        ("zero", lambda a, b, c: 0 * c),
    ],
)
@pytest.mark.parametrize("kind", ["normal", "integers"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_known_mistakes_are_named_in_16_bits_too(dtype, kind, pattern, fault):
    a, b = tensors("50x50x64", dtype, kind)
    report = diagnose(fault(a, b, (a.float() @ b.float()).to(a.dtype)), a, b)
    assert not report.ok and report.pattern == pattern, report.message


def test_an_untouched_tensor_of_16_bits_is_recognised():
    for dtype in ("float16", "bfloat16"):
        a, b = tensors("9x9x9", dtype)
        with pytest.raises(MatmulError, match="never written: 81"):
            run_checked(lambda a, b, out: out, a, b)


@pytest.mark.parametrize(("dtype", "k"), [("float16", 4096), ("bfloat16", 512)])
def test_sums_rounded_to_16_bits_at_every_step_are_refused(dtype, k):
    a, b = tensors(f"32x32x{k}", dtype)
    report = diagnose(rounded_each_time(a, b, a.dtype), a, b)
    assert not report.ok and 10 * report.wrong > a.shape[0] * b.shape[1], report.message
    if dtype == "float16":
        assert report.pattern == "low precision", report.message


def test_what_normal_inputs_cannot_show_positive_whole_numbers_do():
    # A tensor core that sums in float16 rounds once for 16 products. On normal numbers that comes,
    # with K, below the worst case of float32, which is what the bound allows; where nothing cancels
    # and float32 would be exact, it does not.
    a, b = tensors("32x32x4096", "float16")
    assert not diagnose(rounded_each_time(a, b, torch.float16, 16), a, b).ok
    a, b = tensors("16x16x16384", "float16")
    assert diagnose(rounded_each_time(a, b, torch.float16, 16), a, b).ok
    a, b = (x.abs() for x in tensors("32x32x1024", "float16", "integers"))
    assert diagnose(rounded_each_time(a, b, torch.float32, 16), a, b).ok
    assert not diagnose(rounded_each_time(a, b, torch.float16, 16), a, b).ok


def test_tf32_is_refused_in_float32():
    a, b = tensors("64x64x128", "float32")
    assert diagnose(a @ b, a, b).ok
    report = diagnose(tf32(a) @ tf32(b), a, b)
    assert not report.ok and report.pattern == "low precision", report.message
    # At a long K the bound is too wide for that, but not for whole numbers of 13 bits.
    a, b = tensors("16x16x4096", "float32")
    assert diagnose(tf32(a) @ tf32(b), a, b).ok
    a, b = tensors("16x16x4096", "float32", "integers")
    a, b = a * 1024 + 1, b.sign()
    assert diagnose(a @ b, a, b).ok and not diagnose(tf32(a) @ tf32(b), a, b).ok


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_next_number_of_16_bits_is_refused(dtype):
    """1.5 · 0.75 is 1.125, which both types hold: the number after it is another one."""
    a, b = (torch.full((1, 1), value, dtype=dtype) for value in (1.5, 0.75))
    right = a @ b
    assert diagnose(right, a, b).ok
    assert not diagnose(right + torch.finfo(dtype).eps, a, b).ok


def test_an_output_cut_off_instead_of_rounded_is_refused():
    a, b = (x.abs() for x in tensors("9x9x300", "bfloat16", "integers"))
    bits = (a.float() @ b.float()).view(torch.int32) & ~0xFFFF
    assert not diagnose(bits.view(torch.float32).bfloat16(), a, b).ok
