"""Check C against A·B with a derived error bound that NaN cannot pass, and diagnose the mistake.

A product computed in floating point may differ from the exact one by at most

    |C − A·B| ≤ γ_K · (|A|·|B|),   γ_K = K·u / (1 − K·u),

in any order of summation (Higham 2002, §3.1). u is the unit roundoff of the accumulator's type. If
C's type is narrower than the accumulator's, the rounding of C is added. If all inputs are integers
and the accumulator holds every partial sum exactly, C must be the exact product, rounded to its
type. Integer types wrap around, and C must be exactly equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from tiled_matmul.problem import aligned_empty

ACCUMULATORS = {
    "float16": "float32",
    "bfloat16": "float32",
    "float32": "float32",
    "float64": "float64",
}
SIGNIFICAND_BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
SMALLEST = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 2.0**-1074}
INTEGERS = ("int8", "uint8", "int16", "int32", "int64")
POISON_BYTE = 0xA7
# Four such bytes are -1482184793 as int32 and -4.65e-15 as float32: values that no test produces.


class MatmulError(AssertionError):
    """C is not A·B. The message says how many elements are wrong, where, and which mistake fits."""


@dataclass(frozen=True)
class Report:
    """The verdict on one C.

    `worst` is the largest ratio of an error to its bound: at most 1 if `ok`, 0 if C is exact, and
    infinite if C holds NaN or differs where it must be exact. `wrong` counts the wrong elements,
    `first` is the index (i, j) of the first one, and `pattern` names the mistake that fits.
    """

    ok: bool
    message: str
    worst: float = 0.0
    wrong: int = 0
    first: tuple[int, int] | None = None
    pattern: str | None = None

    def __repr__(self) -> str:
        return self.message


def gamma(k: int, dtype: str) -> float:
    """Return γ_K for sums of `k` products in `dtype`. Raises ValueError if K·u is 1 or more."""
    ku = k * _unit(dtype)
    if ku >= 1:
        raise ValueError(f"no error bound exists for K={k} summed in {dtype}: K·u is {ku:.3g}")
    return ku / (1 - ku)


def poison(array: Any) -> Any:
    """Fill `array` (numpy or torch, contiguous) with bytes that mean "never written"; return it."""
    if isinstance(array, np.ndarray):
        array.view(np.uint8)[...] = POISON_BYTE
    else:
        import torch

        array.view(torch.uint8).fill_(POISON_BYTE)
    return array


def run_checked(matmul: Callable, a: Any, b: Any, *, tile: Any = None, **options: Any) -> Any:
    """Run `matmul(a, b, out=…, **options)` on a poisoned output, check C and return it.

    `a` (M, K) and `b` (K, N) are numpy arrays or torch tensors. Raises MatmulError if C is wrong,
    if the launcher does not return `out`, or if it changes its inputs. Raises ValueError or
    TypeError, before the run, for inputs that `diagnose` rejects.
    """
    _operands(a, b)
    copy = np.copy if isinstance(a, np.ndarray) else lambda tensor: tensor.clone()
    before = copy(a), copy(b)
    shape = (a.shape[0], b.shape[1])
    on_cpu = isinstance(a, np.ndarray)
    out = poison(aligned_empty(shape, a.dtype) if on_cpu else a.new_empty(shape))
    c = matmul(a, b, out=out, **options)
    if c is not out:
        raise MatmulError(f"matmul(a, b, out=out) must return out; it returned {type(c).__name__}")
    for name, array, original in zip("ab", (a, b), before, strict=True):
        if not bool((array == original).all()):
            raise MatmulError(f"the launcher changed its input {name}")
    assert_matmul(c, a, b, tile=tile)
    return c


def assert_matmul(c: Any, a: Any, b: Any, *, tile: Any = None, previous: Any = None) -> Report:
    """Return the report on c (M, N) = a (M, K) · b (K, N); raise MatmulError if c is wrong.

    `tile`, an int or (rows, columns), lets the diagnosis name tiles. `previous` (M, N) is the
    content of C before the launch, which lets it recognise a stale or accumulated result. Other
    errors as in `diagnose`.
    """
    report = diagnose(c, a, b, tile=tile, previous=previous)
    if not report.ok:
        raise MatmulError(report.message)
    return report


def diagnose(c: Any, a: Any, b: Any, *, tile: Any = None, previous: Any = None) -> Report:
    """Return the verdict on c (M, N) against a (M, K) · b (K, N); a wrong C raises nothing.

    All arrays are numpy arrays or all torch tensors, of one dtype and on one device; `tile` and
    `previous` are as in `assert_matmul`. Raises ValueError or TypeError for inputs whose shapes,
    types or devices do not fit, that hold NaN or infinity, or whose product overflows float64.
    """
    m, n, k = _operands(a, b)
    _same_kind("C", c, a)
    tile = _tile(tile)
    # Subclasses of numpy's array may mask elements or redefine comparison.
    a, b, c = (np.asarray(x) if isinstance(x, np.ndarray) else x for x in (a, b, c))
    dtype = _dtype(a)
    if tuple(c.shape) != (m, n):
        return Report(False, f"C has the shape {tuple(c.shape)}, A·B has the shape {(m, n)}")
    if _dtype(c) != dtype:
        return Report(False, f"C has the dtype {_dtype(c)}, the inputs have {dtype}")
    exact = dtype in INTEGERS
    reference, bound = _exact(a, b, dtype) if exact else _bounded(a, b, dtype, k)
    measured = _as_int(c) if exact else _double(c)
    error = abs(measured - reference)
    # Not `error > bound`: NaN must count as wrong. Integers: a difference may wrap around.
    wrong = measured != reference if exact else ~(error <= bound)
    count = int(wrong.sum())
    if count == 0:
        worst = 0.0 if exact else float((error / _or_one(bound)).max())
        state = "exactly equal" if exact or float(bound.max()) == 0 else "within the error bound"
        return Report(True, f"C ({m}×{n}, {dtype}) is right: all {m * n} elements {state}", worst)
    allowed = _numpy(bound) if not exact else np.zeros((m, n))
    narrow = not exact and ACCUMULATORS[dtype] != dtype
    case = _Case(
        _numpy(measured),
        _numpy(reference),
        allowed,
        _numpy(_as_int(a) if exact else _double(a)),
        _numpy(_as_int(b) if exact else _double(b)),
        _numpy(wrong),
        _never_written(c) & _numpy(wrong),
        None if previous is None else _numpy(_as_int(previous) if exact else _double(previous)),
        tile,
        allowed + (_unit(dtype) * np.abs(_numpy(measured)) if narrow else 0),
    )
    return _describe(case, dtype)


def diagnose_result(
    c: np.ndarray, right: np.ndarray, sizes: np.ndarray, terms: int, previous: np.ndarray
) -> Report:
    """Return the verdict on a result that is no product of two matrices.

    `c` has one or two axes, `right` is the right result and `sizes` the size that rounding errors
    are relative to, both in float64 and of c's shape; `terms` is the number of roundings one after
    another, and `previous` what c held before. Integers have to be equal.
    """
    dtype = _dtype(c)
    if c.ndim == 1:
        c, right, sizes, previous = (x.reshape(-1, 1) for x in (c, right, sizes, previous))
        report = diagnose_result(c, right, sizes, terms, previous)
        return replace(report, message=_of_one_axis(report.message))
    if dtype in INTEGERS:
        bound = np.zeros_like(sizes)
        measured, reference = _as_int(c), right.astype(np.int64).astype(dtype).astype(np.int64)
        wrong = measured != reference
    else:
        accumulator = ACCUMULATORS[dtype]
        bound = gamma(terms, accumulator) * sizes + terms * SMALLEST[accumulator]
        if accumulator != dtype:
            bound = bound + _unit(dtype) * (abs(right) + bound) + SMALLEST[dtype]
        measured, reference = _double(c), right
        wrong = ~(abs(measured - reference) <= bound)
    if not wrong.any():
        return Report(True, f"the result ({dtype}) is right")
    nothing = np.zeros((c.shape[0], 0)), np.zeros((0, c.shape[1]))
    old = _as_int(previous) if dtype in INTEGERS else _double(previous)
    none = np.zeros(c.shape, bool)
    case = _Case(measured, reference, bound, *nothing, wrong, none, old, None, bound)
    report = _describe(case, dtype)
    return replace(report, message=report.message.replace("A·B", "the right result"))


def diagnose_vector(c: np.ndarray, a: np.ndarray, x: np.ndarray, previous: np.ndarray) -> Report:
    """Return the verdict on c (M) against a (M, K) · x (K), as `diagnose` does for matrices."""
    report = diagnose(c[:, None], a, x[:, None], previous=previous[:, None])
    return replace(report, message=_of_one_axis(report.message).replace("A·B", "A·x"))


def _of_one_axis(message: str) -> str:
    """Return a message about a column of numbers as one about an array with one axis."""
    message = re.sub(r"C\[(\d+), 0\]", r"C[\1]", message)
    return message.replace("×1, ", ", ").replace(", columns 0–0", "")


@dataclass(frozen=True)
class _Case:
    """A wrong C and all inputs of the pattern functions, as numpy arrays on the CPU."""

    c: np.ndarray
    reference: np.ndarray
    bound: np.ndarray
    a: np.ndarray
    b: np.ndarray
    wrong: np.ndarray
    unwritten: np.ndarray
    previous: np.ndarray | None
    tile: tuple[int, int] | None
    slack: np.ndarray
    """The allowed distance of C from another product: the bound plus the rounding of C itself."""

    def fits(self, candidate: np.ndarray, factor: float = 1.0) -> bool:
        """Return whether C equals a wrong candidate everywhere, within `factor` times the slack."""
        if candidate.shape != self.c.shape:
            return False
        if (np.abs(candidate - self.reference) <= self.slack).all():
            return False  # a candidate that is right explains no mistake
        return bool((np.abs(self.c - candidate) <= factor * self.slack).all())


def _describe(case: _Case, dtype: str) -> Report:
    m, n = case.c.shape
    count = int(case.wrong.sum())
    i, j = (int(x) for x in np.argwhere(case.wrong)[0])
    error = np.abs(case.c - case.reference)
    if error.dtype.kind == "i":
        error = error.view(np.uint64)  # abs of the least int64 overflows
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = (error / case.bound)[case.wrong]
    worst = np.inf if np.isnan(ratios).any() else ratios.max()
    allowed = f"allowed {case.bound[i, j]:.3g}" if case.bound[i, j] else "it has to be equal"
    digits = "d" if case.c.dtype.kind == "i" else ".7g"
    parts = [
        f"C ({m}×{n}, {dtype}) is wrong in {count} of {m * n} elements.",
        f"First: C[{i}, {j}] is {case.c[i, j]:{digits}}, should be {case.reference[i, j]:{digits}} "
        f"(off by {error[i, j]:.3g}, {allowed}).",
        _where(case),
    ]
    pattern, sentence = _pattern(case)
    if sentence:
        parts.append(sentence)
    return Report(False, "\n".join(parts), float(worst), count, (i, j), pattern)


def _where(case: _Case) -> str:
    rows, columns = (np.flatnonzero(case.wrong.any(axis=axis)) for axis in (1, 0))
    box = f"rows {rows[0]}–{rows[-1]}, columns {columns[0]}–{columns[-1]}"
    full = int(case.wrong.sum()) == (rows[-1] - rows[0] + 1) * (columns[-1] - columns[0] + 1)
    text = f"The wrong ones {'fill' if full else 'lie in'} {box}"
    if case.tile is None:
        return text + "."
    height, width = case.tile
    tiles = np.unique(np.argwhere(case.wrong) // (height, width), axis=0)
    total = prod(-(-size // edge) for size, edge in zip(case.c.shape, case.tile, strict=True))
    first = tuple(int(x) for x in tiles[0])
    return f"{text}: {len(tiles)} of {total} tiles of {height}×{width}, first tile {first}."


def _pattern(case: _Case) -> tuple[str | None, str | None]:
    """Return the name and sentence of the first pattern that fits, or (None, None)."""
    for pattern in (
        _not_written,
        _not_finite,
        _stale,
        _on_top,
        _zero,
        _transposed,
        _part_of_k,
        _scaled,
        _ragged_edge,
        _low_precision,
    ):
        sentence = pattern(case)
        if sentence:
            return pattern.__name__.strip("_").replace("_", " "), sentence
    return None, None


def _not_written(case: _Case) -> str | None:
    count = int(case.unwritten.sum())
    if count:
        i, j = (int(x) for x in np.argwhere(case.unwritten)[0])
        return f"Elements never written: {count}, the first of them C[{i}, {j}]."
    return None


def _not_finite(case: _Case) -> str | None:
    bad = ~np.isfinite(case.c.astype(np.float64))
    if bad.any():
        return f"Elements that are NaN or infinite: {int(bad.sum())}."
    return None


def _stale(case: _Case) -> str | None:
    if case.previous is None or case.previous.shape != case.c.shape:
        return None
    if (case.c == case.previous)[case.wrong].all():
        return "The wrong elements still hold what C held before the launch."
    return None


def _on_top(case: _Case) -> str | None:
    if case.previous is None or case.previous.shape != case.c.shape:
        return None
    if case.fits(case.reference + case.previous, factor=2):
        return "C is A·B plus what C held before: the sum does not start from zero."
    return None


def _zero(case: _Case) -> str | None:
    if (case.c[case.wrong] == 0).all():
        return "The wrong elements are all zero."
    return None


def _transposed(case: _Case) -> str | None:
    if case.fits(case.reference.T, factor=2) and case.reference.shape[0] > 1:
        return "C is the transpose of A·B: rows and columns are swapped."
    square = case.a.shape == case.b.shape == case.c.shape
    if square and case.fits(case.a @ case.b.T, factor=2):
        return "C is A·Bᵀ: B is read by rows where it should be read by columns."
    if square and case.fits(case.a.T @ case.b, factor=2):
        return "C is Aᵀ·B: A is read by columns where it should be read by rows."
    return None


def _part_of_k(case: _Case) -> str | None:
    """Return a sentence if the sum stops before K or starts after 0.

    One wrong element suggests where, and all elements have to confirm it. Integers suggest many
    places, so the element's row is compared before the whole of C.
    """
    k = case.a.shape[1]
    i, j = np.argwhere(case.wrong)[0]
    partial = np.concatenate([[0], np.cumsum(case.a[i] * case.b[:, j])])
    slack = case.slack[i, j] + 1e-12 * np.abs(partial).max()

    def fits(terms: slice) -> bool:
        row = case.a[i, terms] @ case.b[terms]
        if (np.abs(case.c[i] - row) > 2 * case.slack[i]).any():
            return False
        return case.fits(case.a[:, terms] @ case.b[terms], factor=2)

    for stop in np.flatnonzero(np.abs(partial - case.c[i, j]) <= slack)[::-1]:
        if 0 < stop < k and fits(slice(stop)):
            missing = k - stop
            last = f"last {missing} products are" if missing > 1 else "last product is"
            return f"The sum over k stops at {stop} of {k}: the {last} missing."
    for start in np.flatnonzero(np.abs(partial[-1] - partial - case.c[i, j]) <= slack):
        if 0 < start < k and fits(slice(start, None)):
            return f"The sum over k starts at {start} instead of 0."
    return None


def _scaled(case: _Case) -> str | None:
    norm = float((case.reference.astype(np.float64) ** 2).sum())
    if norm == 0 or case.c.size == 1:  # a single number is always a multiple of another
        return None
    scale = float((case.c.astype(np.float64) * case.reference).sum()) / norm
    tolerance = 2 * max(1.0, abs(scale))
    if abs(scale) > 1e-6 and case.fits(scale * case.reference, factor=tolerance):
        return f"C is A·B times {scale:.6g}."
    exact = case.bound.max() == 0 and np.allclose(case.c, scale * case.reference, rtol=1e-9)
    return f"C is A·B times {scale:.6g}." if exact and abs(scale) > 1e-6 else None


def _ragged_edge(case: _Case) -> str | None:
    if case.tile is None:
        return None
    (m, n), (height, width) = case.c.shape, case.tile
    inner = case.wrong[: m - m % height, : n - n % width]
    if not inner.any() and inner.size:
        return "Only the ragged edge is wrong: the tiles that do not fit whole."
    return None


def _low_precision(case: _Case) -> str | None:
    # Rounding affects all elements; a few wrong ones are another mistake.
    if case.c.dtype.kind != "f" or 10 * case.wrong.sum() < case.wrong.size:
        return None
    magnitude = np.abs(case.a) @ np.abs(case.b)
    relative = np.abs(case.c - case.reference) / np.maximum(magnitude, 1e-300)
    if 0 < relative.max() < 2.0**-8:
        return (
            "Every error is small, but larger than this type's rounding: as if the inputs or the "
            "sum were rounded to a narrower type (TF32, float16, bfloat16)."
        )
    return None


def _operands(a: Any, b: Any) -> tuple[int, int, int]:
    for name, array in (("A", a), ("B", b)):
        _same_kind(name, array, a)
        if len(array.shape) != 2 or 0 in tuple(array.shape):
            raise ValueError(f"{name} must be 2-D and not empty, got shape {tuple(array.shape)}")
    if a.shape[1] != b.shape[0]:
        raise ValueError(
            f"A {tuple(a.shape)} and B {tuple(b.shape)} do not fit: A's columns, B's rows"
        )
    if _dtype(a) != _dtype(b):
        raise TypeError(f"A is {_dtype(a)} and B is {_dtype(b)}; they must have one dtype")
    if _dtype(a) not in (*ACCUMULATORS, *INTEGERS):
        raise TypeError(f"no error bound is known for the dtype {_dtype(a)}")
    for name, array in (("A", a), ("B", b)):
        array = np.asarray(array) if isinstance(array, np.ndarray) else array
        finite = array - array == 0 if _dtype(array) in ACCUMULATORS else None
        if finite is not None and not bool(finite.all()):
            i, j = (int(x) for x in np.argwhere(~_numpy(finite))[0])
            raise ValueError(f"{name}[{i}, {j}] is {float(array[i, j])}: no product can be judged")
    return int(a.shape[0]), int(b.shape[1]), int(a.shape[1])


def _same_kind(name: str, array: Any, a: Any) -> None:
    if not hasattr(array, "shape") or not hasattr(array, "dtype"):
        raise TypeError(f"{name} must be an array or a tensor, got {type(array).__name__}")
    if isinstance(array, np.ndarray) != isinstance(a, np.ndarray):
        kinds = type(array).__name__, type(a).__name__
        raise TypeError(f"{name} is {kinds[0]} and A is {kinds[1]}; they must be of one kind")
    places = str(getattr(array, "device", "")), str(getattr(a, "device", ""))
    if places[0] != places[1] or "meta" in places:
        raise ValueError(f"{name} is on {places[0]}, A on {places[1]}; both must be in one memory")


def _bounded(a: Any, b: Any, dtype: str, k: int) -> tuple[Any, Any]:
    """Return (A·B in float64, the allowed error of each element)."""
    accumulator = ACCUMULATORS[dtype]
    a64, b64 = _double(a), _double(b)
    with np.errstate(over="ignore", invalid="ignore"):
        reference, magnitude = a64 @ b64, abs(a64) @ abs(b64)
    if not np.isfinite(float(magnitude.max())):
        raise ValueError("|A|·|B| overflows float64: no product can be judged")
    whole = bool((a64 % 1 == 0).all()) and bool((b64 % 1 == 0).all())
    if whole and float(magnitude.max()) <= 2.0 ** SIGNIFICAND_BITS[accumulator]:
        # The sum is exact, so C may differ by its own rounding only.
        bound = abs(_rounded(reference, a) - reference)
        bound[bound == np.inf] = 0  # the product overflows C's type: every value is wrong
        return reference, bound
    oracle = gamma(k, "float64") * magnitude
    bound = gamma(k, accumulator) * magnitude + k * SMALLEST[accumulator] + oracle
    if accumulator != dtype:
        bound = bound + _unit(dtype) * (abs(reference) + bound) + SMALLEST[dtype]
    return reference, bound


def _rounded(x: Any, like: Any) -> Any:
    """Return x, whose values are exact in float32, rounded to the dtype of `like`, as float64."""
    with np.errstate(over="ignore"):
        return _double(x.astype(like.dtype) if isinstance(x, np.ndarray) else x.to(like.dtype))


def _unit(dtype: str) -> float:
    """Return the unit roundoff of a dtype: half the distance from 1 to the next number."""
    return 2.0 ** -SIGNIFICAND_BITS[dtype]


def _exact(a: Any, b: Any, dtype: str) -> tuple[Any, int]:
    """Return (A·B modulo 2^bits as int64, 0). numpy multiplies integers exactly, without BLAS."""
    product = _as_int(a) @ _as_int(b)
    return product.astype(dtype).astype(np.int64), 0


def _or_one(bound: Any) -> Any:
    return bound + (bound == 0)


def _dtype(array: Any) -> str:
    return str(array.dtype).removeprefix("torch.")


def _numpy(array: Any) -> np.ndarray:
    return array if isinstance(array, np.ndarray) else array.detach().cpu().numpy()


def _double(array: Any) -> Any:
    return array.astype(np.float64) if isinstance(array, np.ndarray) else array.double()


def _as_int(array: Any) -> np.ndarray:
    return _numpy(array).astype(np.int64)


def _tile(tile: Any) -> tuple[int, int] | None:
    if tile is None:
        return None
    pair = tuple(tile) if isinstance(tile, tuple | list) else (tile, tile)
    if len(pair) != 2 or not all(isinstance(edge, int | np.integer) for edge in pair):
        raise TypeError(f"tile must be an integer or (rows, columns), got {tile!r}")
    if min(pair) < 1:
        raise ValueError(f"tile must be positive, got {tile!r}")
    return int(pair[0]), int(pair[1])


def _never_written(c: Any) -> np.ndarray:
    """Return a mask of the elements that still hold the poison of `run_checked`."""
    if isinstance(c, np.ndarray):
        raw = np.ascontiguousarray(c).view(np.uint8)
    else:
        import torch

        raw = c.detach().contiguous().view(torch.uint8).cpu().numpy()
    return (raw.reshape(*c.shape, -1) == POISON_BYTE).all(axis=2)
