"""The three sums of HSIC_V for Laplacian kernels on an integer grid: compiled, O(m log m), in double-double.

A number is a pair (h, l) of float64 with h ≥ 0 and |l| ≤ 2⁻⁵³ h, standing for h + l.  ``_times`` and ``_plus`` have
a relative error below 2⁻¹⁰³; everything summed is positive, so relative errors add up and nothing cancels.  The
resulting bound is proved in ``hsic.md``, hsic-laplacian-rounding: whoever changes an operation here changes that
proof.  No fastmath: the proof needs each operation rounded as written.

This module imports numba: import it inside functions only.
"""

from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
from numba import njit, types
from numba.extending import intrinsic

Codes = npt.NDArray[np.int64]
Pairs = npt.NDArray[np.float64]
Function = TypeVar("Function", bound=Callable[..., Any])

DIGIT_BITS = 10
DIGITS = 3
"""A gap on the grid has 30 bits: three digits, each with its own table of powers."""

PRECISION = Context(prec=60, Emin=-(10**6), Emax=10**6, traps=[])
FLUSH = Decimal(2) ** -800
"""A constant below this becomes 0, so that no product meets the float64 underflow with anything at stake."""


def kernel_sums(x: Codes, y: Codes, x_rate: Fraction, y_rate: Fraction) -> list[Fraction]:
    """Return [Σ_ij K_ij L_ij, Σ_i K_i· L_i·, K_··, L_··] of up to 2³¹ records, with relative errors as proved. K_ij =
    exp(−|x_i − x_j| · x_rate), L_ij = exp(−|y_i − y_j| · y_rate); a rate is grid step over width."""
    by_x = np.sort((x << 32) | y)
    x_sorted = by_x >> 32
    keys = ((by_x & 0xFFFFFFFF) << 32) | np.arange(len(x), dtype=np.int64)
    sums = _sums(x_sorted, keys, _exponential_tables(x_rate), _exponential_tables(y_rate))
    return [Fraction(float(high)) + Fraction(float(low)) for high, low in sums]


@lru_cache(maxsize=64)
def _exponential_tables(rate: Fraction) -> Pairs:
    """Return the tables exp(−rate · k · 2^(10 d)), k < 1024, d < 3, as pairs, cached in this process only."""
    step = PRECISION.divide(Decimal(rate.numerator), Decimal(rate.denominator))
    binary = np.zeros((DIGITS * DIGIT_BITS, 2))
    for bit in range(DIGITS * DIGIT_BITS):
        power = PRECISION.exp(PRECISION.multiply(step, Decimal(-(2**bit))))
        if power > FLUSH:
            binary[bit, 0] = float(power)
            binary[bit, 1] = float(PRECISION.subtract(power, Decimal(float(power))))
    tables: Pairs = _pair_tables(binary)
    tables.setflags(write=False)
    return tables


def _compiled(function: Function) -> Function:
    """Compile, and keep the machine code on disk; where no directory can be written, compile in each process."""
    try:
        return cast(Function, njit(cache=True)(function))
    except RuntimeError:
        return _inner(function)


def _inner(function: Function) -> Function:
    return cast(Function, njit(function))


def _fused_multiply_add(_context: Any, a: Any, b: Any, c: Any) -> Any:
    signature = types.float64(types.float64, types.float64, types.float64)

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return signature, generate


_fused: Callable[..., Any] = intrinsic(_fused_multiply_add)


@_inner
def _pair_product(ah: float, al: float, bh: float, bl: float) -> tuple[float, float]:
    product = ah * bh
    rest = _fused(al, bh, _fused(ah, bl, _fused(ah, bh, -product)))
    high = product + rest
    return high, rest - (high - product)


@_inner
def _plus(ah: float, al: float, bh: float, bl: float) -> tuple[float, float]:
    total = ah + bh
    taken = total - ah
    rest = ((ah - (total - taken)) + (bh - taken)) + (al + bl)
    high = total + rest
    return high, rest - (high - total)


@_compiled
def _pair_tables(binary: Pairs) -> Pairs:
    tables = np.zeros((DIGITS, 1 << DIGIT_BITS, 2))
    for digit in range(DIGITS):
        tables[digit, 0, 0] = 1.0
        for bit in range(DIGIT_BITS):
            bh, bl = binary[digit * DIGIT_BITS + bit]
            tables[digit, 1 << bit, 0], tables[digit, 1 << bit, 1] = bh, bl
            for k in range(1, 1 << bit):
                vh, vl = _pair_product(tables[digit, k, 0], tables[digit, k, 1], bh, bl)
                tables[digit, (1 << bit) + k, 0], tables[digit, (1 << bit) + k, 1] = vh, vl
    return tables


@_inner
def _pair_decay(gap: int, tables: Pairs) -> tuple[float, float]:
    digit = gap & 1023
    vh, vl = tables[0, digit, 0], tables[0, digit, 1]
    digit = (gap >> 10) & 1023
    if digit:
        vh, vl = _pair_product(vh, vl, tables[1, digit, 0], tables[1, digit, 1])
    digit = gap >> 20
    if digit:
        vh, vl = _pair_product(vh, vl, tables[2, digit, 0], tables[2, digit, 1])
    return vh, vl


@_inner
def _row_sums(values: Codes, tables: Pairs) -> Pairs:
    m = values.size
    rows = np.empty((m, 2))
    vh, vl = 1.0, 0.0
    rows[0, 0], rows[0, 1] = vh, vl
    for i in range(1, m):
        fh, fl = _pair_decay(values[i] - values[i - 1], tables)
        vh, vl = _pair_product(vh, vl, fh, fl)
        vh, vl = _plus(vh, vl, 1.0, 0.0)
        rows[i, 0], rows[i, 1] = vh, vl
    vh, vl = 0.0, 0.0
    for i in range(m - 2, -1, -1):
        fh, fl = _pair_decay(values[i + 1] - values[i], tables)
        vh, vl = _plus(vh, vl, 1.0, 0.0)
        vh, vl = _pair_product(vh, vl, fh, fl)
        rows[i, 0], rows[i, 1] = _plus(rows[i, 0], rows[i, 1], vh, vl)
    return rows


@_inner
def _pair_sum(x: Codes, keys: Codes, x_tables: Pairs, y_tables: Pairs) -> tuple[float, float, Codes]:
    """Return Σ_{i<j} K_ij L_ij, and the keys in ascending order.

    ``keys[r]`` = y · 2³² + r for the record of rank r by x.  A merge sort of the keys: when a left half (small x)
    and a right half (large x) are merged, A and B hold the left and the right records passed so far, each weighted
    by its decay in x to the pivot and in y to here.  A pair of one left and one right record is counted when
    the later of the two is passed, at exp(−|x_i − pivot|) exp(−|pivot − x_j|) exp(−|y_i − y_j|).
    """
    m = keys.size
    source = keys.copy()
    target = np.empty_like(keys)
    th, tl = 0.0, 0.0
    size = 1
    while size < m:
        for start in range(0, m, 2 * size):
            middle, end = min(start + size, m), min(start + 2 * size, m)
            if middle == end:
                target[start:end] = source[start:end]
                continue
            pivot = x[middle]
            i, j = start, middle
            here = min(source[i], source[j]) >> 32
            ah, al, bh, bl, ch, cl = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for k in range(start, end):
                from_left = i < middle and (j == end or source[i] < source[j])
                if from_left:
                    key = source[i]
                    i += 1
                else:
                    key = source[j]
                    j += 1
                target[k] = key
                y = key >> 32
                fh, fl = _pair_decay(y - here, y_tables)
                here = y
                wh, wl = _pair_decay(abs(pivot - x[key & 0xFFFFFFFF]), x_tables)
                ah, al = _pair_product(ah, al, fh, fl)
                bh, bl = _pair_product(bh, bl, fh, fl)
                if from_left:
                    ph, pl = _pair_product(wh, wl, bh, bl)
                    ah, al = _plus(ah, al, wh, wl)
                else:
                    ph, pl = _pair_product(wh, wl, ah, al)
                    bh, bl = _plus(bh, bl, wh, wl)
                ch, cl = _plus(ch, cl, ph, pl)
            th, tl = _plus(th, tl, ch, cl)
        source, target = target, source
        size *= 2
    return th, tl, source


@_compiled
def _sums(x: Codes, keys: Codes, x_tables: Pairs, y_tables: Pairs) -> Pairs:
    th, tl, ordered = _pair_sum(x, keys, x_tables, y_tables)
    x_rows = _row_sums(x, x_tables)
    y_rows = _row_sums(ordered >> 32, y_tables)
    rh, rl, xh, xl, yh, yl = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(keys.size):
        rank = ordered[k] & 0xFFFFFFFF
        ph, pl = _pair_product(x_rows[rank, 0], x_rows[rank, 1], y_rows[k, 0], y_rows[k, 1])
        rh, rl = _plus(rh, rl, ph, pl)
        xh, xl = _plus(xh, xl, x_rows[k, 0], x_rows[k, 1])
        yh, yl = _plus(yh, yl, y_rows[k, 0], y_rows[k, 1])
    th, tl = _plus(2.0 * th, 2.0 * tl, float(keys.size), 0.0)
    return np.array([[th, tl], [rh, rl], [xh, xl], [yh, yl]])
