"""Narrow floats as bits, as Triton's interpreter stores them: bfloat16 as uint16, float8 as uint8.

Conversions are those of NVIDIA's hardware, read off PTX for compute capability 9.0: to bfloat16 and
float16 `cvt.rn` or `cvt.rz`, to float8 `cvt.rn.satfinite`, which rounds to nearest, ties to even,
and turns what is too large, infinities too, into the largest number; to integers `cvt.rzi`, which
cuts off and stops at the largest and smallest integer. On an H100, NaN of float32 and of 16 bits
becomes 0, and NaN of float64 the smallest signed integer.
Source: NVIDIA, PTX ISA, "cvt"; Open Compute Project, "OFP8 Formats".
"""

from __future__ import annotations

import numpy as np

NAN8 = 0x7F  # of both kinds of float8
# Codes of the largest numbers; those of e5m2 go on with infinity and NaN.
LARGEST = {"fp8e4nv": 0x7E, "fp8e5": 0x7B}
INFINITY = {"fp8e5": 0x7C}


def float8_values() -> dict[str, np.ndarray]:
    """Return the float32 that each of the 256 bytes means, for both kinds of float8 by name."""
    byte = np.arange(256)
    e5m2 = (byte.astype(np.uint16) << 8).view(np.float16).astype(np.float32)
    exponent, mantissa = byte >> 3 & 15, byte & 7
    size = np.where(exponent, np.ldexp(8.0 + mantissa, exponent - 10), np.ldexp(1.0 * mantissa, -9))
    size = np.where(byte % 128 == 127, np.nan, size)  # it has no infinity
    return {"fp8e5": e5m2, "fp8e4nv": np.where(byte < 128, size, -size).astype(np.float32)}


FLOAT8 = float8_values()


def float8(values: np.ndarray, kind: str, to_zero: bool = False) -> np.ndarray:
    """Return the bytes of the float8 of that kind, "fp8e4nv" or "fp8e5", for float16 or float32.

    With `to_zero`, bits are cut off and infinities stay, which only e5m2 has an instruction for.
    """
    sizes = FLOAT8[kind][: LARGEST[kind] + 1].astype(np.float64)
    size = np.abs(values.astype(np.float64))
    if to_zero:
        code = np.searchsorted(sizes, size, side="right") - 1
        code = np.where(np.isinf(size), INFINITY[kind], code)
    else:
        between = (sizes[:-1] + sizes[1:]) / 2
        code = np.searchsorted(between, size)
        tie = size == between[np.minimum(code, len(between) - 1)]
        code = code + (tie & (code % 2 == 1) & (code < len(between)))
    code = np.where(np.signbit(values), code | 0x80, code)
    return np.where(np.isnan(values), NAN8, code).astype(np.uint8)


def widened(bits: np.ndarray) -> np.ndarray:
    """Return bfloat16 numbers, given as their bits (uint16), as float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def narrowed(values: np.ndarray, to_zero: bool = False) -> np.ndarray:
    """Return the bits of the nearest bfloat16, ties to even, or if `to_zero` of what is cut off."""
    bits = np.ascontiguousarray(_as_float32(values)).view(np.uint32)
    if not to_zero:
        bits = np.where(np.isnan(values), bits, bits + 0x7FFF + (bits >> 16 & 1))
    return np.where(np.isnan(values), bits >> 16 | 0x40, bits >> 16).astype(np.uint16)


def float16(values: np.ndarray, to_zero: bool = False) -> np.ndarray:
    """Return the float16 nearest to each number, or if `to_zero` the next one towards zero."""
    with np.errstate(over="ignore"):
        nearest = values.astype(np.float16)
    if not to_zero:
        return nearest
    beyond = np.abs(nearest.astype(np.float64)) > np.abs(values.astype(np.float64))
    return np.where(beyond, np.nextafter(nearest, np.float16(0)), nearest)


def integers(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return floats cut off to integers. 8-bit ones are the low bits of a 16-bit conversion."""
    of = np.dtype(f"{dtype.kind}2") if dtype.itemsize == 1 else dtype
    limits = np.iinfo(of)
    nan = limits.min if values.dtype == np.float64 and of.kind == "i" else 0
    # The largest 64-bit integer is no float, so what reaches it is replaced, not clamped.
    values = np.trunc(values.astype(np.float64))
    high, low = values >= float(limits.max), values <= float(limits.min)
    inside = np.where(high | low | np.isnan(values), 0, values).astype(of)
    inside = np.where(np.isnan(values), nan, inside)
    return np.where(high, limits.max, np.where(low, limits.min, inside)).astype(of).astype(dtype)


def _as_float32(values: np.ndarray) -> np.ndarray:
    """Return float32 that round to the same bfloat16: of a float64 the last bit notes the rest."""
    nearest = values.astype(np.float32)
    if values.dtype != np.float64:
        return nearest
    toward = np.nextafter(nearest, np.float32(0))
    cut = np.where(np.abs(nearest.astype(np.float64)) > np.abs(values), toward, nearest)
    inexact = np.isfinite(cut) & (cut.astype(np.float64) != values)
    return (cut.view(np.uint32) | inexact).view(np.float32)
