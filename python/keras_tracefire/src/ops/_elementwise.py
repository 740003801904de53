# SPDX-License-Identifier: Apache-2.0
"""Functions that treat every element by itself."""

import builtins
import math

from keras.src.backend.common import standardize_dtype
from keras_tracefire.src import missing
from keras_tracefire.src._messages import argument_error
from keras_tracefire.src._messages import dtype_error
from keras_tracefire.src.ops._tensor import cast
from keras_tracefire.src.ops._tensor import convert_to_tensor
from keras_tracefire.src.ops._tensor import is_float
from keras_tracefire.src.ops._tensor import promote
from keras_tracefire.src.ops._tensor import result_type
from tracefire import _core
from tracefire import _ops



def constant_like(value, x):
    return _core.tensor(value, x.dtype)


def floating(x):
    """`x` as a tensor of a float dtype: integers become Keras's floatx."""
    x = convert_to_tensor(x)
    return x if is_float(x.dtype) else cast(x, result_type(x.dtype, float))


def _bool_as_int(*xs):
    return [cast(x, "int32") if x.dtype == "bool" else x for x in xs]


def add(x1, x2):
    x1, x2 = promote(x1, x2)
    return _ops.logical_or(x1, x2) if x1.dtype == "bool" else _ops.add(x1, x2)


def subtract(x1, x2):
    return _ops.sub(*_bool_as_int(*promote(x1, x2)))


def multiply(x1, x2):
    x1, x2 = promote(x1, x2)
    return _ops.logical_and(x1, x2) if x1.dtype == "bool" else _ops.mul(x1, x2)


def divide(x1, x2):
    return _ops.div(*promote(x1, x2, at_least=float))


def true_divide(x1, x2):
    return divide(x1, x2)


def divide_no_nan(x1, x2):
    x1, x2 = promote(x1, x2, at_least=float)
    zero = constant_like(0, x2)
    is_zero = _ops.equal(x2, zero)
    # The unused quotient must be finite too, or its gradient would be NaN.
    quotient = _ops.div(x1, _ops.select(is_zero, constant_like(1, x2), x2))
    return _ops.select(is_zero, zero, quotient)


def floor_divide(x1, x2):
    return _ops.floor_div(*_bool_as_int(*promote(x1, x2)))


def mod(x1, x2):
    return _ops.floor_mod(*_bool_as_int(*promote(x1, x2)))


def fmod(x1, x2):
    return _ops.fmod(*_bool_as_int(*promote(x1, x2)))


def power(x1, x2):
    return _ops.pow(*_bool_as_int(*promote(x1, x2)))


def maximum(x1, x2):
    x1, x2 = promote(x1, x2)
    return _ops.logical_or(x1, x2) if x1.dtype == "bool" else _ops.maximum(x1, x2)


def minimum(x1, x2):
    x1, x2 = promote(x1, x2)
    return _ops.logical_and(x1, x2) if x1.dtype == "bool" else _ops.minimum(x1, x2)


def _ignoring_nan(choose):
    def run(x1, x2):
        x1, x2 = promote(x1, x2)
        if not is_float(x1.dtype):
            return choose(x1, x2)
        either = _ops.select(_ops.is_nan(x1), x2, choose(x1, x2))
        return _ops.select(_ops.is_nan(x2), x1, either)

    return run


fmax = _ignoring_nan(maximum)
fmin = _ignoring_nan(minimum)


def equal(x1, x2):
    return _ops.equal(*promote(x1, x2))


def not_equal(x1, x2):
    return _ops.not_equal(*promote(x1, x2))


def greater(x1, x2):
    return _ops.greater(*promote(x1, x2))


def greater_equal(x1, x2):
    return _ops.greater_equal(*promote(x1, x2))


def less(x1, x2):
    return _ops.less(*promote(x1, x2))


def less_equal(x1, x2):
    return _ops.less_equal(*promote(x1, x2))


def logical_and(x1, x2):
    return _ops.logical_and(cast(x1, "bool"), cast(x2, "bool"))


def logical_or(x1, x2):
    return _ops.logical_or(cast(x1, "bool"), cast(x2, "bool"))


def logical_xor(x1, x2):
    return _ops.logical_xor(cast(x1, "bool"), cast(x2, "bool"))


def logical_not(x):
    return _ops.logical_not(cast(x, "bool"))


def _bitwise(row, on_bool):
    def run(x, y):
        x, y = promote(x, y)
        return getattr(_ops, on_bool if x.dtype == "bool" else row)(x, y)

    return run


bitwise_and = _bitwise("bitwise_and", "logical_and")
bitwise_or = _bitwise("bitwise_or", "logical_or")
bitwise_xor = _bitwise("bitwise_xor", "logical_xor")


def bitwise_invert(x):
    x = convert_to_tensor(x)
    return _ops.logical_not(x) if x.dtype == "bool" else _ops.bitwise_not(x)


def bitwise_not(x):
    return bitwise_invert(x)


def _shift_operands(x, y):
    x = convert_to_tensor(x)
    if isinstance(y, int):
        y = convert_to_tensor(y, "int32" if x.dtype == "bool" else x.dtype)
    return _bool_as_int(*promote(x, y))


def bitwise_left_shift(x, y):
    return _ops.shift_left(*_shift_operands(x, y))


def left_shift(x, y):
    return bitwise_left_shift(x, y)


def bitwise_right_shift(x, y):
    return _ops.shift_right(*_shift_operands(x, y))


def right_shift(x, y):
    return bitwise_right_shift(x, y)


def absolute(x):
    x = convert_to_tensor(x)
    return x if x.dtype == "bool" or x.dtype.startswith("uint") else _ops.abs(x)


def abs(x):
    return absolute(x)


def fabs(x):
    return _ops.abs(floating(x))


def negative(x):
    return _ops.neg(convert_to_tensor(x))


def sign(x):
    x = convert_to_tensor(x)
    return _ops.sign(x) if x.dtype != "bool" else cast(_ops.sign(cast(x, "int32")), "bool")


def square(x):
    (x,) = _bool_as_int(convert_to_tensor(x))
    return _ops.square(x)


def sqrt(x):
    return _ops.sqrt(floating(x))


def reciprocal(x):
    x = floating(x)
    return _ops.div(constant_like(1, x), x)


def _float_function(row):
    def run(x):
        return getattr(_ops, row)(floating(x))

    return run


exp = _float_function("exp")
exp2 = _float_function("exp2")
expm1 = _float_function("expm1")
log = _float_function("log")
log1p = _float_function("log1p")
cbrt = _float_function("cbrt")
sin = _float_function("sin")
cos = _float_function("cos")
tan = _float_function("tan")
sinh = _float_function("sinh")
cosh = _float_function("cosh")
tanh = _float_function("tanh")
arcsin = _float_function("asin")
arccos = _float_function("acos")
arctan = _float_function("atan")
arcsinh = _float_function("asinh")
arccosh = _float_function("acosh")
arctanh = _float_function("atanh")
floor = _float_function("floor")
ceil = _float_function("ceil")


def _on_floats(function):
    """`function` of tensors, applied to what Keras takes for such."""
    function = _ops.computed_wide(function)

    def run(*xs):
        xs = promote(*xs, at_least=float) if len(xs) > 1 else [floating(*xs)]
        return function(*xs)

    return run


def _log_base(base):
    def run(x):
        return _ops.mul(_ops.log(x), constant_like(1 / math.log(base), x))

    return _on_floats(run)


log2 = _log_base(2)
log10 = _log_base(10)


def _log_of_sum(exponential, base):
    def run(x1, x2):
        largest = _ops.maximum(x1, x2)
        # Equal infinities have no gap.
        same = _ops.equal(x1, x2)
        gap = _ops.neg(_ops.abs(_ops.sub(x1, x2)))
        gap = _ops.select(same, constant_like(0, gap), gap)
        rest = _ops.log1p(exponential(gap))
        return _ops.add(largest, _ops.mul(rest, constant_like(1 / math.log(base), rest)))

    return _on_floats(run)


logaddexp = _log_of_sum(_ops.exp, math.e)
logaddexp2 = _log_of_sum(_ops.exp2, 2)


def arctan2(x1, x2):
    return _ops.atan2(*promote(x1, x2, at_least=float))


hypot = _on_floats(_ops.hypot)


@_on_floats
def deg2rad(x):
    return _ops.mul(x, constant_like(math.pi / 180, x))


@_on_floats
def rad2deg(x):
    return _ops.mul(x, constant_like(180 / math.pi, x))


def heaviside(x1, x2):
    x1, x2 = promote(x1, x2, at_least=float)
    zero = constant_like(0, x1)
    step = cast(_ops.greater(x1, zero), x1.dtype)
    step = _ops.select(_ops.equal(x1, zero), x2, step)
    return _ops.select(_ops.is_nan(x1), x1, step)


@_on_floats
def sinc(x):
    # So near to 0 the result is 1; squares of smaller angles would be 0 in the gradient.
    is_zero = _ops.less(_ops.abs(x), constant_like(1e-10, x))
    angle = _ops.mul(constant_like(math.pi, x), _ops.select(is_zero, constant_like(1, x), x))
    return _ops.select(is_zero, constant_like(1, x), _ops.div(_ops.sin(angle), angle))


def ldexp(x1, x2):
    x2 = convert_to_tensor(x2)
    if "int" not in x2.dtype:
        raise dtype_error(f"ldexp exponent must be an integer type. Received: x2 dtype={x2.dtype}")
    return _ops.ldexp(floating(x1), x2)


def trunc(x):
    x = convert_to_tensor(x)
    if not is_float(x.dtype):
        return x
    return _ops.select(_ops.less(x, constant_like(0, x)), _ops.ceil(x), _ops.floor(x))


def _round_whole(x, step):
    """Integers rounded to multiples of `step`, the even multiple of two equally near."""
    if step > _LIMITS[x.dtype][1]:  # none but 0 is as near
        return _ops.mul(x, constant_like(0, x))
    wide = "uint64" if x.dtype == "uint64" else "int64"
    dtype, x = x.dtype, cast(x, wide)
    step, two = constant_like(step, x), constant_like(2, x)
    down, rest = _ops.floor_div(x, step), _ops.floor_mod(x, step)
    over = _ops.sub(step, rest)
    odd = _ops.not_equal(_ops.floor_mod(down, two), constant_like(0, x))
    up = _ops.logical_or(
        _ops.less(over, rest), _ops.logical_and(_ops.equal(over, rest), odd)
    )
    return cast(_ops.mul(_ops.add(down, cast(up, wide)), step), dtype)


def round(x, decimals=0):
    x = convert_to_tensor(x)
    if not is_float(x.dtype):
        if decimals >= 0:
            return x if x.dtype != "bool" else cast(x, "int32")
        return _round_whole(_bool_as_int(x)[0], 10**-decimals)
    if decimals == 0:
        return _ops.round(x)
    return _round_decimals(x, decimals=decimals)


@_ops.computed_wide
def _round_decimals(x, *, decimals):
    scale = constant_like(10.0 ** builtins.abs(decimals), x)
    if decimals < 0:
        return _ops.mul(_ops.round(_ops.div(x, scale)), scale)
    scaled = _ops.mul(x, scale)
    # What overflows has no decimals.
    return _ops.select(_ops.is_finite(scaled), _ops.div(_ops.round(scaled), scale), x)


def clip(x, x_min, x_max):
    (x,) = _bool_as_int(convert_to_tensor(x))
    low, high = _bound(x_min, x.dtype), _bound(x_max, x.dtype)
    out = minimum(maximum(x, low), high)
    # As NumPy's: bounds may be of a wider type than the result.
    return cast(out, x.dtype)


_LIMITS = {f"int{n}": (-(2 ** (n - 1)), 2 ** (n - 1) - 1) for n in (8, 16, 32, 64)}
_LIMITS.update({f"uint{n}": (0, 2**n - 1) for n in (8, 16, 32, 64)})


def _bound(value, dtype):
    """A whole number as the nearest one that the integer type has."""
    if isinstance(value, int) and dtype in _LIMITS:
        low, high = _LIMITS[dtype]
        return builtins.min(builtins.max(value, low), high)
    return value


def where(condition, x1=None, x2=None):
    if (x1 is None) != (x2 is None):
        raise argument_error("`x1` and `x2` either both should be `None` or both should have values.")
    if x1 is None:
        from keras_tracefire.src.ops._index import nonzero

        return nonzero(condition)
    return _ops.select(cast(condition, "bool"), *promote(x1, x2))


def select(condlist, choicelist, default=0):
    choices = promote(*choicelist, default)
    out = choices[-1]
    for condition, choice in reversed(list(zip(condlist, choices))):
        out = _ops.select(cast(condition, "bool"), choice, out)
    return out


def isnan(x):
    return _ops.is_nan(floating(x))


def isinf(x):
    return _ops.is_inf(floating(x))


def isfinite(x):
    return _ops.is_finite(floating(x))


def isposinf(x):
    x = floating(x)
    return _ops.equal(x, constant_like(math.inf, x))


def isneginf(x):
    x = floating(x)
    return _ops.equal(x, constant_like(-math.inf, x))


def isreal(x):
    x = convert_to_tensor(x)
    return _ops.broadcast_to(_core.tensor(True, "bool"), shape=tuple(x.shape))


def isclose(x1, x2, rtol=1e-5, atol=1e-8, equal_nan=False):
    x1, x2 = promote(x1, x2, at_least=float)
    limit = _ops.add(constant_like(atol, x1), _ops.mul(constant_like(rtol, x1), _ops.abs(x2)))
    near = _ops.less_equal(_ops.abs(_ops.sub(x1, x2)), limit)
    near = _ops.logical_and(near, _ops.is_finite(x2))
    near = _ops.logical_or(near, _ops.equal(x1, x2))
    if equal_nan:
        near = _ops.logical_or(near, _ops.logical_and(_ops.is_nan(x1), _ops.is_nan(x2)))
    return near


# Largest finite number.
_LARGEST = {
    "float16": 65504.0,
    "bfloat16": 3.3895313892515355e38,
    "float32": 3.4028234663852886e38,
    "float64": 1.7976931348623157e308,
}


def nan_to_num(x, nan=0.0, posinf=None, neginf=None):
    x = convert_to_tensor(x)
    if not is_float(x.dtype):
        return x
    largest = _LARGEST[x.dtype]
    high = constant_like(largest if posinf is None else posinf, x)
    low = constant_like(-largest if neginf is None else neginf, x)
    out = _ops.select(_ops.is_nan(x), constant_like(nan, x), x)
    out = _ops.select(isposinf(x), high, out)
    return _ops.select(isneginf(x), low, out)


def signbit(x):
    x = convert_to_tensor(x)
    if not is_float(x.dtype):
        return _ops.less(_bool_as_int(x)[0], constant_like(0, _bool_as_int(x)[0]))
    return _ops.sign_bit(x)


def copysign(x1, x2):
    return _ops.copysign(*promote(x1, x2, at_least=float))


def nextafter(x1, x2):
    dtype = result_type(
        getattr(x1, "dtype", type(x1)), getattr(x2, "dtype", type(x2)), float
    )
    x1, x2 = cast(x1, "float32"), cast(x2, "float32")
    one, top = _core.tensor(1, "uint32"), _core.tensor(0x80000000, "uint32")
    bits = _ops.bitcast(x1, dtype="uint32")
    zero = constant_like(0, x1)
    is_zero = _ops.equal(x1, zero)
    # Away from zero adds one to the bits, towards zero takes one away.
    away = _ops.logical_xor(_ops.greater(x2, x1), _ops.less(x1, zero))
    moved = _ops.select(away, _ops.add(bits, one), _ops.sub(bits, one))
    tiny = _ops.select(_ops.greater(x2, x1), one, _ops.bitwise_or(top, one))
    moved = _ops.bitcast(_ops.select(is_zero, tiny, moved), dtype="float32")
    out = _ops.select(_ops.equal(x1, x2), x2, moved)
    unordered = _ops.logical_or(_ops.is_nan(x1), _ops.is_nan(x2))
    return cast(_ops.select(unordered, _ops.add(x1, x2), out), dtype)


def real(x):
    return convert_to_tensor(x)


def conjugate(x):
    return convert_to_tensor(x)


def conj(x):
    return convert_to_tensor(x)


def imag(x):
    x = convert_to_tensor(x)
    return _ops.broadcast_to(constant_like(0, x), shape=tuple(x.shape))


def angle(x):
    x = floating(x)
    out = _ops.select(_ops.sign_bit(x), constant_like(math.pi, x), constant_like(0, x))
    return _ops.select(_ops.is_nan(x), x, out)


def _euclid(x1, x2):
    from keras_tracefire.src.ops._control_flow import while_loop

    def more(_, b):
        return _ops.reduce_any(
            _ops.not_equal(b, constant_like(0, b)), axes=list(range(len(b.shape))), keepdims=False
        )

    def step(a, b):
        is_done = _ops.equal(b, constant_like(0, b))
        rest = _ops.floor_mod(a, _ops.select(is_done, constant_like(1, b), b))
        return _ops.select(is_done, a, b), _ops.select(is_done, b, rest)

    return while_loop(more, step, (x1, x2))[0]


def _integer_pair(x1, x2, name):
    x1, x2 = promote(x1, x2)
    if "int" not in x1.dtype:
        raise dtype_error(f"`{name}` needs integers. Received: dtype={x1.dtype}")
    shape, dtype = tuple(_ops.add(x1, x2).shape), x1.dtype
    if dtype.startswith("int"):
        # The size of the smallest integer fits the unsigned type only.
        x1, x2 = (_ops.bitcast(_ops.abs(x), dtype=f"u{dtype}") for x in (x1, x2))
    return [_ops.broadcast_to(x, shape=shape) for x in (x1, x2)], dtype


def gcd(x1, x2):
    pair, dtype = _integer_pair(x1, x2, "gcd")
    return _ops.bitcast(_euclid(*pair), dtype=dtype)


def lcm(x1, x2):
    (x1, x2), dtype = _integer_pair(x1, x2, "lcm")
    divisor = _ops.maximum(_euclid(x1, x2), constant_like(1, x1))
    return _ops.bitcast(_ops.mul(_ops.floor_div(x1, divisor), x2), dtype=dtype)


def _width(dtype):
    return 8 if dtype == "bool" else int(dtype.lstrip("abcdefghijklmnopqrstuvwxyz"))


def view(x, dtype=None):
    x = convert_to_tensor(x)
    if dtype is None:
        return x
    dtype = standardize_dtype(dtype)
    if _width(x.dtype) != _width(dtype):
        raise missing.unsupported(
            f"`view` was asked to see {x.dtype} as {dtype}",
            "a dtype of the same width",
            "Use `cast`, or view the NumPy array",
        )
    return _ops.bitcast(x, dtype=dtype)
