# SPDX-License-Identifier: Apache-2.0
"""Every element-wise function over hostile values of every dtype, against NumPy in double precision.

Hostile are: zeros of both signs, subnormals, the largest numbers, infinities, NaN, and for integers
the ends of their range. Float results may be a few units in the last place off; NaN, infinities
and the signs of zeros that NumPy gives must be NumPy's. Integers must be equal.
"""

import math

import ml_dtypes
import numpy as np
import pytest
from keras import ops
from keras_tracefire.src.ops import nn as knn
from keras_tracefire.src.ops import numpy as knp

FLOATS = ("float16", "bfloat16", "float32", "float64")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
# Relative error allowed: two units in the last place of 16 bits, a few of wider types.
TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 1e-6, "float64": 4e-15}


def numpy_dtype(name):
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def hostile(name):
    """The values of a dtype that break formulas."""
    if name == "bool":
        return np.array([False, True])
    if name in INTEGERS:
        info = np.iinfo(name)
        some = [info.min, info.min + 1, 0, 1, 2, 3, 5, 7, 31, 64, 100, info.max // 2, info.max - 1]
        some += [info.max] + ([-1, -2, -3, -7, -100] if info.min else [])
        return np.array(some, name)
    info = ml_dtypes.finfo(numpy_dtype(name))
    some = [0.0, 1.0, 0.5, 1.5, 2.5, 3.0, 7.25, 1e-5, 1e-3, 0.1, 10.0, 20.0, 88.8, 150.0, 709.9]
    some += [4.0, 9.5, 26.5, 1e10, 1e30, 1e-30, 16777217.0, 3e9, 1e300, 1e-300]
    some += [float(v) for v in (info.eps, info.tiny, info.smallest_subnormal, info.max)]
    some += [float(info.max) / 4, math.inf]
    some = [v for v in some if v <= float(info.max) or v == math.inf]
    with np.errstate(all="ignore"):
        return np.array(some + [-v for v in some] + [math.nan]).astype(numpy_dtype(name))


def tensor(array):
    return ops.convert_to_tensor(array, dtype=array.dtype.name)


def compare(got, expected, arguments, zero_signs=True, floor=0):
    """`expected` was computed in double; it is rounded to the result's dtype first."""
    got = np.asarray(got)
    assert got.shape == expected.shape
    if got.dtype.kind in "iub":
        wrong = got != expected
    else:
        with np.errstate(all="ignore"):
            rounded = expected.astype(got.dtype).astype("float64")
            ours = got.astype("float64")
            tiny = float(ml_dtypes.finfo(got.dtype).smallest_subnormal)
            near = np.abs(ours - rounded) <= TOLERANCE[got.dtype.name] * np.abs(rounded) + 1.5 * tiny + floor
        same = (ours == rounded) | (np.isnan(ours) & np.isnan(rounded)) | near
        signs = (ours == 0) & (expected == 0) & (np.signbit(ours) != np.signbit(expected))
        wrong = ~same | (signs & zero_signs)
    if wrong.any():
        arguments = np.broadcast_arrays(*arguments)
        lines = [
            f"{[a[i].item() for a in arguments]}: {got[i]}, expected {expected[i]}"
            for i in list(zip(*np.nonzero(wrong)))[:8]
        ]
        pytest.fail(f"{wrong.sum()} of {wrong.size} differ:\n" + "\n".join(lines))


def gelu(x):
    inside = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return x * 0.5 * (1 + np.tanh(inside))


def sinc(x):
    angle = math.pi * np.where(x == 0, 1.0, x)
    return np.where(x == 0, 1.0, np.sin(angle) / angle)


def sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1.0) / (1 + e)


# name: NumPy's function of doubles; where ours is: None for keras.ops.
UNARY = {
    "absolute": np.abs,
    "negative": np.negative,
    "square": np.square,
    "sqrt": np.sqrt,
    "cbrt": np.cbrt,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "log2": np.log2,
    "log10": np.log10,
    "tan": np.tan,
    "sin": np.sin,
    "cos": np.cos,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "arcsin": np.arcsin,
    "arccos": np.arccos,
    "arctan": np.arctan,
    "arcsinh": np.arcsinh,
    "arccosh": np.arccosh,
    "arctanh": np.arctanh,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
    "deg2rad": np.deg2rad,
    "rad2deg": np.rad2deg,
    "sinc": sinc,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "isposinf": np.isposinf,
    "isneginf": np.isneginf,
    "signbit": np.signbit,
    "angle": lambda x: np.where(np.isnan(x), x, np.where(np.signbit(x), np.pi, 0.0)),
    "sigmoid": sigmoid,
    "softplus": lambda x: np.logaddexp(x, 0),
    "log_sigmoid": lambda x: -np.logaddexp(-x, 0),
    "erf": np.vectorize(math.erf, otypes=[float]),
    "erfc": np.vectorize(math.erfc, otypes=[float]),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "leaky_relu": lambda x: np.where(x >= 0, x, 0.2 * x),
    "softsign": lambda x: np.where(np.isinf(x), np.nan, x / (1 + np.abs(x))),
}
# Zero has no sign that would follow from the formula, or the formula cancels beside it.
UNSIGNED_ZERO = {"selu", "elu", "trunc", "log_sigmoid", "log2", "log10"}
# The sine of a rounded multiple of pi is not 0: its error counts against 1.
FLOOR = {"sinc": 1.0}
LIMITED = {"sinc": 20.0}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_floats(name, dtype):
    x = hostile(dtype)
    if name in LIMITED:
        x = x[np.abs(x.astype("float64")) <= LIMITED[name]]
    with np.errstate(all="ignore"):
        expected = UNARY[name](x.astype("float64"))
    ours = getattr(ops, name, None) or getattr(knp, name)
    floor = FLOOR.get(name, 0) * TOLERANCE[dtype]
    compare(ours(tensor(x)), expected, (x,), name not in UNSIGNED_ZERO, floor)


def wide_enough(name):
    """longdouble where double is the dtype itself, so that the reference is better than it."""
    return "longdouble" if name == "float64" else "float64"


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["absolute", "negative", "square", "sign", "bitwise_invert"])
def test_functions_of_integers(name, dtype):
    x = hostile(dtype)
    with np.errstate(all="ignore"):
        expected = getattr(np, {"bitwise_invert": "invert"}.get(name, name))(x)
    got = getattr(ops, name)(tensor(x))
    assert np.asarray(got).dtype == dtype
    compare(got, expected, (x,))


def heaviside(x, y):
    return np.where(np.isnan(x), x, np.where(x == 0, y, (x > 0).astype("float64")))


BINARY = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.true_divide,
    "floor_divide": np.floor_divide,
    "mod": np.mod,
    "fmod": np.fmod,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "less": np.less,
    "less_equal": np.less_equal,
}
BINARY_FLOATS = {
    **BINARY,
    "power": np.power,
    "logaddexp": np.logaddexp,
    "logaddexp2": np.logaddexp2,
    "arctan2": np.arctan2,
    "hypot": np.hypot,
    "heaviside": heaviside,
    "copysign": np.copysign,
    "nextafter": np.nextafter,
}
# Which of two equal zeros comes out is nobody's promise.
EITHER_ZERO = {"maximum", "minimum", "fmax", "fmin", "logaddexp", "logaddexp2"}


def pairs(dtype):
    x = hostile(dtype)
    return x[:, None], x[None, :]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", BINARY_FLOATS)
def test_functions_of_two_floats(name, dtype):
    x, y = pairs(dtype)
    if name == "nextafter" and dtype != "float32":
        pytest.skip("Keras computes nextafter in float32")
    # Quotients and remainders of the dtype itself: a wider one would round a quotient down twice.
    compute = dtype if name == "nextafter" else "float64"
    with np.errstate(all="ignore"):
        expected = BINARY_FLOATS[name](x.astype(compute), y.astype(compute))
    ours = getattr(ops, name, None) or getattr(knp, name)
    compare(ours(tensor(x), tensor(y)), expected, (x, y), name not in EITHER_ZERO)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(
    "name", [*BINARY, "gcd", "lcm", "bitwise_and", "bitwise_or", "bitwise_xor"]
)
def test_functions_of_two_integers(name, dtype):
    if name == "divide":
        pytest.skip("integers are divided as floats")
    x, y = pairs(dtype)
    with np.errstate(all="ignore"):
        expected = (BINARY.get(name) or getattr(np, name))(x, y)
    ours = getattr(ops, name, None) or getattr(knp, name)
    compare(ours(tensor(x), tensor(y)), expected, (x, y))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_powers_of_integers_wrap_around(dtype):
    x, y = pairs(dtype)
    bits = np.iinfo(dtype).bits

    def power(a, b):
        if b < 0:
            return {1: 1, -1: -1 if b % 2 else 1}.get(a, 0)
        wrapped = pow(a, b, 1 << bits)
        return wrapped - (1 << bits) if wrapped > np.iinfo(dtype).max else wrapped

    expected = [[power(int(a), int(b)) for b in y[0]] for a in x[:, 0]]
    compare(ops.power(tensor(x), tensor(y)), np.array(expected, dtype), (x, y))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_beyond_the_width(dtype):
    x, y = pairs(dtype)
    bits, low = np.iinfo(dtype).bits, np.iinfo(dtype).min

    def left(a, b):
        moved = (a << b) % (1 << bits) if 0 <= b < bits else 0
        return moved - (1 << bits) if moved > np.iinfo(dtype).max else moved

    def right(a, b):
        return a >> b if 0 <= b < bits else (-1 if a < 0 and low else 0)

    for ours, theirs in ((ops.left_shift, left), (ops.right_shift, right)):
        expected = [[theirs(int(a), int(b)) for b in y[0]] for a in x[:, 0]]
        compare(ours(tensor(x), tensor(y)), np.array(expected, dtype), (x, y))


@pytest.mark.parametrize("exponents", INTEGERS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_ldexp(dtype, exponents):
    x, n = hostile(dtype)[:, None], hostile(exponents)[None, :]
    small = np.clip(n.astype("float64"), -5000, 5000).astype("int32")
    with np.errstate(all="ignore"):
        expected = np.ldexp(x.astype(wide_enough(dtype)), small)
    got = ops.ldexp(tensor(x), tensor(n))
    assert ops.convert_to_tensor(got).dtype == dtype
    compare(got, expected.astype(numpy_dtype(dtype)).astype("float64"), (x, n))


def test_ldexp_scales_where_the_power_alone_is_no_number():
    got = ops.ldexp(np.float32([1e-38, 1, 3e38, 1e-45]), np.int32([150, -149, -250, 250]))
    expected = np.ldexp(np.float32([1e-38, 1, 3e38, 1e-45]), [150, -149, -250, 250])
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("bounds", [(-5, 300), (0, 3), (-(10**30), 10**30), (2, 1), (2.5, 2.75)])
def test_clip_keeps_the_dtype_and_brings_bounds_into_its_range(dtype, bounds):
    x = hostile(dtype)
    low, high = bounds
    info = np.iinfo(dtype)
    low, high = (min(max(b, info.min), info.max) for b in bounds)
    if isinstance(low, float) and dtype.endswith("64"):
        pytest.skip("64-bit integers go through float32")
    expected = np.array([int(min(max(int(v), low), high)) for v in x], dtype)
    got = ops.clip(tensor(x), *bounds)
    assert np.asarray(got).dtype == dtype
    compare(got, expected, (x,))


@pytest.mark.parametrize("dtype", ("int8", "int64", "uint64"))
def test_round_of_integers_to_tens(dtype):
    x = np.array([0, 4, 5, 6, 15, 25, 26, 100], dtype)
    np.testing.assert_array_equal(ops.round(tensor(x), -1), [0, 0, 0, 10, 20, 20, 30, 100])
    if dtype.startswith("int"):
        np.testing.assert_array_equal(ops.round(tensor(-x), -1), [0, 0, 0, -10, -20, -20, -30, -100])
    np.testing.assert_array_equal(ops.round(tensor(x), -30), np.zeros(8))


@pytest.mark.parametrize("dtype", FLOATS)
def test_round_to_decimals_does_not_overflow(dtype):
    x = hostile(dtype)
    got = np.asarray(ops.round(tensor(x), 1)).astype("float64")
    wide = x.astype("float64")
    large = np.abs(wide) > 1e4
    np.testing.assert_array_equal(got[large], wide[large])
    with np.errstate(all="ignore"):
        small = np.round(wide[~large], 1)
    np.testing.assert_allclose(got[~large], small, rtol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", FLOATS)
def test_casts_to_integers_stop_at_the_ends(dtype):
    x = hostile(dtype)
    for target in INTEGERS:
        info = np.iinfo(target)
        expected = [
            0 if math.isnan(v) else int(min(max(v, info.min), info.max)) if math.isinf(v) or
            not info.min <= v <= info.max else int(v)
            for v in x.astype("float64").tolist()
        ]
        compare(ops.cast(tensor(x), target), np.array(expected, target), (x,))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted_puts_nan_behind_everything(dtype, side):
    x = hostile(dtype)
    ordered = np.sort(x.astype("float64"))
    expected = np.searchsorted(ordered, x.astype("float64"), side=side)
    got = ops.searchsorted(tensor(ordered.astype(x.dtype)), tensor(x), side=side)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_is_sorted_last_and_taken_first(dtype):
    x = hostile(dtype)
    wide = x.astype("float64")
    np.testing.assert_array_equal(np.asarray(ops.sort(tensor(x))).astype("float64"), np.sort(wide))
    order = np.asarray(ops.argsort(tensor(x)))
    np.testing.assert_array_equal(order, np.argsort(wide, kind="stable"))
    assert np.asarray(ops.argmax(tensor(x))) == np.argmax(wide)
    assert np.asarray(ops.argmin(tensor(x))) == np.argmin(wide)
    values, _ = ops.top_k(tensor(x), 3)
    np.testing.assert_array_equal(np.asarray(values).astype("float64")[:2], [np.nan, np.inf])


@pytest.mark.parametrize("name", ["max", "min", "amax", "amin", "ptp", "argmax", "argmin"])
def test_extremes_of_nothing_are_errors(name):
    empty = np.zeros((0, 3), "float32")
    ours = getattr(ops, name, None) or getattr(knp, name)
    for axis in (0, None):
        with pytest.raises(ValueError, match="TF-E0101"):
            ours(empty, axis=axis)
    if name not in ("ptp",):
        assert tuple(ours(empty, axis=1).shape) == (0,)


def test_extremes_of_nothing_with_an_initial_value():
    empty = np.zeros((0, 3), "float32")
    np.testing.assert_array_equal(ops.max(empty, axis=0, initial=-1.0), [-1, -1, -1])


def test_quantiles_say_what_is_no_fraction():
    x = np.float32([1, 2, 3])
    for wrong in (1.5, -0.1, math.nan, [0.5, 2]):
        with pytest.raises(ValueError, match="TF-E0103.*fraction"):
            ops.quantile(x, wrong)
    with pytest.raises(ValueError, match="TF-E0103.*fraction"):
        ops.percentile(x, 101) if hasattr(ops, "percentile") else knp.percentile(x, 101)
    with pytest.raises(ValueError, match="TF-E0103.*'nope'.*linear"):
        knp.quantile(x, 0.5, method="nope")


@pytest.mark.parametrize("name", ["median", "nanmedian", "mean", "nanmean", "var", "std"])
def test_statistics_of_nothing_are_nan(name):
    got = getattr(knp, name)(np.zeros((0, 3), "float32"), axis=0)
    assert got.shape == (3,) and np.isnan(np.asarray(got)).all()


def test_bincount_says_what_it_cannot_count():
    with pytest.raises(ValueError, match="TF-E0103.*-1"):
        ops.bincount(np.array([0, -1], "int32"))
    with pytest.raises(TypeError, match="TF-E0102.*float32"):
        ops.bincount(np.array([0.5], "float32"))
    assert tuple(ops.bincount(np.zeros(0, "int32")).shape) == (0,)


def gradient_of(function, x):
    import tracefire

    x = ops.convert_to_tensor(np.float32(x))
    with tracefire.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return np.asarray(tape.gradient(y, x))


@pytest.mark.parametrize(
    "name,slope",
    [
        ("sinh", np.cosh),
        ("cosh", np.sinh),
        ("arcsinh", lambda x: 1 / np.sqrt(x * x + 1)),
        ("arctanh", lambda x: 1 / (1 - x * x)),
        ("cbrt", lambda x: np.cbrt(x) / (3 * x)),
        ("erfc", lambda x: -2 / math.sqrt(math.pi) * np.exp(-x * x)),
        ("exp2", lambda x: np.exp2(x) * math.log(2)),
    ],
)
def test_gradients_of_what_is_composed(name, slope):
    points = np.array([1e-30, 1e-3, 0.5, -0.7, 3, -20, 60, -80, 1e5])
    points = points[np.abs(points) < 0.9] if name == "arctanh" else points
    points = points[np.abs(points) < 85] if name in ("sinh", "cosh") else points
    if name in ("exp2",):
        points = points[points < 100]
    got = gradient_of(getattr(ops, name, None) or getattr(knp, name), points)
    np.testing.assert_allclose(got, slope(points.astype("float32").astype("float64")), rtol=2e-5, atol=1e-7)
    if name in ("sinh", "arcsinh", "arctanh"):
        assert gradient_of(getattr(ops, name), [0.0]) == [1.0]


@pytest.mark.parametrize(
    "name,points,slopes",
    [
        ("sinh", [89.0, -89.0], np.cosh([89.0, 89.0])),
        ("cosh", [89.0, -89.0], np.sinh([89.0, -89.0])),
        ("arcsin", [1.0, -1.0, 0.0], [math.inf, math.inf, 1]),
        ("arccos", [1.0, -1.0, 0.0], [-math.inf, -math.inf, -1]),
        ("arccosh", [1.0, math.inf], [math.inf, 0]),
        ("arcsinh", [3e38, math.inf, -math.inf, 0], [0, 0, 0, 1]),
        ("sinc", [0.0, 1e-40, 1e-30], [0, 0, 0]),
        ("relu6", [0.0, -1.0, 3.0, 7.0], [0, 0, 1, 0]),
    ],
)
def test_gradients_at_the_ends(name, points, slopes):
    got = gradient_of(getattr(ops, name), points)
    np.testing.assert_allclose(got, slopes, rtol=2e-5, atol=1e-37)


def test_gradients_of_remainders_are_those_of_the_quotient():
    x, y = np.float32([1, -6, 7, -7, 1e10]), np.float32([1, 3, -2, 2, 3])
    np.testing.assert_array_equal(gradient_of(lambda v: knp.fmod(v, y), x), np.ones(5))
    got = gradient_of(lambda v: knp.fmod(x, v), y)
    np.testing.assert_allclose(got, -np.trunc(x.astype("float64") / y), rtol=1e-6)


def test_gradient_of_hypot_and_of_fmod():
    x = np.float32([3, 1e30, 1e-30, 0, -5])
    got = gradient_of(lambda v: ops.hypot(v, np.float32([4, 1e30, 1e-30, 2, 0])), x)
    np.testing.assert_allclose(got, [0.6, 2**-0.5, 2**-0.5, 0, -1], rtol=1e-6)
    got = gradient_of(lambda v: knp.fmod(v, np.float32(3)), np.float32([0, 5, -5, 1e10]))
    np.testing.assert_array_equal(got, [1, 1, 1, 1])


def test_the_activations_of_16_bits_are_rounded_once():
    x = np.linspace(-6, 6, 49).astype("float16")
    expected = gelu(x.astype("float64"))
    got = np.asarray(knn.gelu(tensor(x))).astype("float64")
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=2e-5)


def test_histograms_of_nothing_and_of_what_has_no_range():
    counts, edges = ops.histogram(np.zeros(0, "float32"), bins=4)
    np.testing.assert_array_equal(counts, [0, 0, 0, 0])
    np.testing.assert_array_equal(edges, [0, 0.25, 0.5, 0.75, 1])
    for bad in (math.nan, math.inf):
        with pytest.raises(Exception, match=r"\[TF-E\d+\] `histogram`.*range"):
            ops.histogram(np.float32([1, bad, 2]))
        counts, _ = ops.histogram(np.float32([1, bad, 2]), bins=2, range=(0, 4))
        np.testing.assert_array_equal(counts, [1, 1])


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
def test_random_integers_beyond_32_bits_are_refused(dtype):
    from keras import random

    with pytest.raises(ValueError, match=r"TF-E0103.*maxval=1099511627776"):
        random.randint((4,), 0, 2**40, dtype=dtype, seed=1)
    assert np.asarray(random.randint((4,), 5, 6, dtype=dtype, seed=1)).tolist() == [5] * 4
