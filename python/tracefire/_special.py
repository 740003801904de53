# SPDX-License-Identifier: Apache-2.0
"""Element-wise functions that the engine has no row for, made of rows.

They hold for every number of their dtype: no step leaves the range that the result stays in, zeros
keep their sign, and what a selection does not take is finite, so that gradients are not NaN.
"""

import functools
import math

from tracefire import _core

_rows = _core.ops


def number(value, like):
    """A Python number as a tensor of shape () and the dtype of `like`."""
    return _core.tensor(value, like.dtype)


_NARROW = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")


def computed_wide(function):
    """Gives a function of tensors float32 where they are narrower, and rounds its result once.

    In a narrow type its constants would be wrong in the third digit, and its steps would leave the
    range that the result stays in.
    """

    @functools.wraps(function)
    def run(*xs, **options):
        dtype = xs[0].dtype
        if dtype not in _NARROW:
            return function(*xs, **options)
        xs = [_rows.cast(x, dtype="float32") for x in xs]
        return _rows.cast(function(*xs, **options), dtype=dtype)

    return run


def logical_xor(x, y):
    return _rows.not_equal(x, y)


def is_inf(x):
    return _rows.equal(_rows.abs(x), number(math.inf, x))


_BITS = {
    "float8_e4m3fn": 8,
    "float8_e5m2": 8,
    "float16": 16,
    "bfloat16": 16,
    "float32": 32,
    "float64": 64,
}


def sign_bit(x):
    """True where the sign of a floating number is set: below zero, at -0, and at NaN with a sign."""
    width = _BITS[x.dtype]
    bits = _rows.bitcast(x, dtype=f"uint{width}")
    return _rows.not_equal(_rows.shift_right(bits, number(width - 1, bits)), number(0, bits))


def copysign(x, y):
    """|x| with the sign of y, that of -0 too."""
    size = _rows.abs(x)
    return _rows.select(sign_bit(y), _rows.neg(size), size)


def fmod(x, y):
    """The remainder with the sign of x, exact; NaN where x is infinite or y is 0. Integers: 0."""
    zero = number(0, x)
    if x.dtype in _BITS:
        size = _rows.abs(y)
        rest = _rows.floor_mod(_rows.abs(x), size)
        rest = _rows.select(sign_bit(x), _rows.neg(rest), rest)
        # Nothing is left of 0 but 0, whose gradient |x| does not have.
        nothing = _rows.logical_and(_rows.equal(x, zero), _rows.greater(size, zero))
        return _rows.select(nothing, x, rest)
    rest = _rows.floor_mod(x, y)
    other = _rows.not_equal(_rows.less(rest, zero), _rows.less(x, zero))
    moved = _rows.logical_and(_rows.not_equal(rest, zero), other)
    return _rows.select(moved, _rows.sub(rest, y), rest)


@computed_wide
def softplus(x):
    """log(1 + e^x) without overflow."""
    rest = _rows.log1p(_rows.exp(_rows.neg(_rows.abs(x))))
    return _rows.add(_rows.maximum(x, number(0, x)), rest)


@computed_wide
def tan(x):
    return _rows.div(_rows.sin(x), _rows.cos(x))


@computed_wide
def asin(x):
    return _rows.atan2(x, _cathetus(x))


@computed_wide
def acos(x):
    return _rows.atan2(_cathetus(x), x)


def _cathetus(x):
    """sqrt(1 - x^2), accurate near 1 because the difference is rounded once."""
    return _rows.sqrt(_rows.fma(_rows.neg(x), x, number(1, x)))


@computed_wide
def atan(x):
    return _rows.atan2(x, number(1, x))


# Beyond this e^-x is lost beside e^x, in float64 too; e^x itself overflows only at 88.
_ONE_SIDED = 40
# Beyond this x^2 + 1 is x^2, in float64 too, and x^2 is still far from overflow in float32.
_SQUARE_ALONE = 2.0**30


def _parted(x, size, limit):
    """Whether size > limit; x where it is not, else 1; size where it is, else 1.

    What a selection does not take must be finite all the same, or its gradient would be NaN.
    """
    large, one = _rows.greater(size, number(limit, x)), number(1, x)
    return large, _rows.select(large, one, x), _rows.select(large, size, one)


def _half_exp(x):
    """e^x / 2, which is finite where e^x is not yet, as is its gradient. x - 2 is exact."""
    return _rows.mul(_rows.exp(_rows.sub(x, number(2, x))), number(math.exp(2) / 2, x))


@computed_wide
def sinh(x):
    large, near, far = _parted(x, _rows.abs(x), _ONE_SIDED)
    # (e^x - e^-x) / 2 with the ones taken out, for small x.
    gap = _rows.sub(_rows.expm1(near), _rows.expm1(_rows.neg(near)))
    return _rows.select(large, copysign(_half_exp(far), x), _rows.mul(gap, number(0.5, x)))


@computed_wide
def cosh(x):
    large, near, far = _parted(x, _rows.abs(x), _ONE_SIDED)
    total = _rows.add(_rows.exp(near), _rows.exp(_rows.neg(near)))
    return _rows.select(large, _half_exp(far), _rows.mul(total, number(0.5, x)))


def _log_twice(x):
    """log(2 x), which is finite where 2 x is not."""
    return _rows.add(_rows.log(x), number(math.log(2), x))


@computed_wide
def asinh(x):
    size, one = _rows.abs(x), number(1, x)
    large, _, far = _parted(x, size, _SQUARE_ALONE)
    tiny = _rows.less(size, number(1e-4, x))
    # Of the series x - x^3 / 6 + … no more is to be seen, and |x| has no gradient at 0.
    start = _rows.select(tiny, x, number(0, x))
    cube = _rows.mul(_rows.square(start), number(1 / 6, x))
    start = _rows.mul(start, _rows.sub(one, cube))
    near = _rows.select(_rows.logical_or(large, tiny), one, size)
    square = _rows.square(near)
    # log(size + sqrt(size^2 + 1)), accurate for small sizes.
    extra = _rows.div(square, _rows.add(one, _rows.sqrt(_rows.add(square, one))))
    log = _rows.select(large, _log_twice(far), _rows.log1p(_rows.add(near, extra)))
    return _rows.select(tiny, start, copysign(log, x))


@computed_wide
def acosh(x):
    one = number(1, x)
    large, near, far = _parted(x, x, _SQUARE_ALONE)
    # log(x + sqrt(x^2 - 1)), accurate near 1. Below -1 the root would be real again.
    above = _rows.select(_rows.less(x, one), number(-1, x), _rows.sub(near, one))
    root = _rows.mul(_rows.sqrt(above), _rows.sqrt(_rows.add(above, number(2, x))))
    return _rows.select(large, _log_twice(far), _rows.log1p(_rows.add(above, root)))


@computed_wide
def atanh(x):
    # Half of log((1 + x) / (1 - x)); the two logarithms never have the same sign.
    gap = _rows.sub(_rows.log1p(x), _rows.log1p(_rows.neg(x)))
    return _rows.mul(number(0.5, x), gap)


# Chebyshev coefficients of log(e^(z^2) erfc(z) / t) over t = 2 / (2 + z) in 0 … 0.8, found by
# interpolation; z from 0.5 up. float32 needs the first thirteen.
_ERFC = (
    -0.78318707272405985, 0.50589479331734055, 0.020165332295700538,
    -0.0041507842704838231, -0.00069293930331281795, 8.0613044480617169e-05,
    2.5850999511284094e-05, -2.453241362495898e-06, -1.0665628940780174e-06,
    1.0956136122496496e-07, 4.6182838285497463e-08, -6.3050898608421249e-09,
    -1.9633299334124695e-09, 3.9793660637197649e-10, 7.3597932096540177e-11,
    -2.46201555519499e-11, -1.7686558739310707e-12, 1.3802642603745534e-12,
    -4.4770950232166637e-14, -6.4878054619453979e-14, 1.1669409400136156e-14,
)  # fmt: skip


def _exp_of_negative_square(x):
    """e^(-x^2) whose error does not grow with x: the square of x's leading digits is exact."""
    digits, integer = (12, "uint32") if x.dtype == "float32" else (27, "uint64")
    bits = _rows.bitcast(x, dtype=integer)
    bits = _rows.shift_left(_rows.shift_right(bits, number(digits, bits)), number(digits, bits))
    lead = _core.stop_gradient(_rows.bitcast(bits, dtype=x.dtype))
    rest = _rows.mul(_rows.sub(x, lead), _rows.add(x, lead))
    return _rows.mul(_rows.exp(_rows.neg(_rows.square(lead))), _rows.exp(_rows.neg(rest)))


@computed_wide
def erfc(x):
    """1 - erf(x), with all digits where erf is next to 1."""
    one, two, half = number(1, x), number(2, x), number(0.5, x)
    size = _rows.abs(x)
    is_far = _rows.greater(size, half)
    z = _rows.select(is_far, _rows.minimum(size, number(30, x)), one)
    t = _rows.div(two, _rows.add(two, z))
    at = _rows.sub(_rows.mul(t, number(2 / 0.8, x)), one)
    twice, before, last = _rows.add(at, at), number(0, x), number(0, x)
    for c in reversed(_ERFC[1:13] if x.dtype == "float32" else _ERFC[1:]):
        step = _rows.sub(_rows.mul(twice, before), last)
        last, before = before, _rows.add(step, number(c, x))
    log = _rows.add(_rows.sub(_rows.mul(at, before), last), number(_ERFC[0], x))
    tail = _rows.mul(_rows.mul(t, _exp_of_negative_square(z)), _rows.exp(log))
    tail = _rows.select(_rows.less(x, number(0, x)), _rows.sub(two, tail), tail)
    return _rows.select(is_far, tail, _rows.sub(one, _rows.erf(x)))


@computed_wide
def hypot(x, y):
    """sqrt(x^2 + y^2) whose squares leave no range; infinite where either is, beside NaN too."""
    x, y = _rows.abs(x), _rows.abs(y)
    zero, one, infinity = number(0, x), number(1, x), number(math.inf, x)
    either = _rows.logical_or(_rows.equal(x, infinity), _rows.equal(y, infinity))
    # The parts that are not taken must be finite too, or their gradients would be NaN.
    x, y = _rows.select(either, one, x), _rows.select(either, one, y)
    largest, smallest = _rows.maximum(x, y), _rows.minimum(x, y)
    is_zero = _rows.equal(largest, zero)
    ratio = _rows.div(smallest, _rows.select(is_zero, one, largest))
    length = _rows.mul(largest, _rows.sqrt(_rows.add(one, _rows.square(ratio))))
    return _rows.select(either, infinity, length)


@computed_wide
def cbrt(x):
    """The real cube root, of negative numbers too."""
    size, one = _rows.abs(x), number(1, x)
    special = _rows.logical_or(_rows.equal(size, number(0, x)), _rows.not_equal(size, size))
    special = _rows.logical_or(special, is_inf(x))
    size = _rows.select(special, one, size)
    root = _rows.pow(size, number(1 / 3, x))
    # The exponent is rounded, so one step of Newton's method.
    square = _rows.square(root)
    error = _rows.div(_rows.sub(root, _rows.div(size, square)), number(3, x))
    return _rows.select(special, x, copysign(_rows.sub(root, error), x))


@computed_wide
def exp2(x):
    return _rows.pow(number(2, x), x)


# Mantissa bits, exponent bias, integers of the same width.
_FORMATS = {"float32": (23, 127, "int32"), "float64": (52, 1023, "int64")}


def ldexp(x, n):
    """x * 2^n, rounded once; `n` holds integers."""
    dtype = x.dtype
    x = _rows.cast(x, dtype="float32") if dtype in _NARROW else x
    mantissa, bias, integer = _FORMATS[x.dtype]
    # More than the widest range there is changes nothing, and fits all wider types.
    if n.dtype not in ("int8", "uint8"):
        most = number(1 << 14, n)
        n = _rows.minimum(n, most)
        n = n if n.dtype.startswith("uint") else _rows.maximum(n, _rows.neg(most))
    n = _rows.cast(n, dtype=integer)
    factors, limit = [], number(bias - 1, n)
    for _ in range(3):
        part = _rows.maximum(_rows.minimum(n, limit), _rows.neg(limit))
        n = _rows.sub(n, part)
        bits = _rows.shift_left(_rows.add(part, number(bias, n)), number(mantissa, n))
        factors.append(_rows.bitcast(bits, dtype=x.dtype))
    # The rest goes first, so that only the last factor rounds into the subnormal numbers.
    for factor in reversed(factors):
        x = _rows.mul(x, factor)
    return _rows.cast(x, dtype=dtype) if dtype in _NARROW else x
