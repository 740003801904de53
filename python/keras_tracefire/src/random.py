# SPDX-License-Identifier: Apache-2.0
"""Random numbers, equal to those of Keras on JAX for the same seeds.

Bits come from the engine's pure operation `random_bits`: number i is a function of (key, i) alone.
The ways from bits to numbers are those of `jax.random`: 23 bits of mantissa for a uniform number,
the inverse error function for a normal one, a doubled draw for an integer, a sort by random keys
for a permutation.
"""

import math

from keras.src.backend.common import standardize_dtype
from keras.src.backend.config import floatx
from keras.src.random.seed_generator import SeedGenerator  # noqa: F401
from keras.src.random.seed_generator import draw_seed
from keras.src.random.seed_generator import make_default_seed  # noqa: F401
from keras_tracefire.src import missing
from keras_tracefire.src._messages import argument_error
from keras_tracefire.src.ops import _elementwise as ew
from keras_tracefire.src.ops._shape import reshape
from keras_tracefire.src.ops._tensor import Tensor
from keras_tracefire.src.ops._tensor import cast
from keras_tracefire.src.ops._tensor import convert_to_tensor
from tracefire import _core
from tracefire import _ops
from tracefire import errors

__getattr__ = missing.attribute_of(__name__)

# Per dtype: random bits drawn, unsigned dtype of its width, mantissa bits, bit pattern of 1.0.
_FORMATS = {
    "float16": (16, "uint16", 10, 0x3C00),
    "bfloat16": (8, "uint16", 7, 0x3F80),
    "float32": (32, "uint32", 23, 0x3F800000),
    "float64": (64, "uint64", 52, 0x3FF0000000000000),
}


def _key(seed):
    if isinstance(seed, Tensor):
        return seed
    if seed is None and _core.is_tracing():
        raise errors.raised_here(
            "HostRandomInTrace",
            "a random number was drawn without a seed while a function is being traced; it would "
            "be the same at every run of the function",
            "a seed whose state is a variable",
            "Create keras.random.SeedGenerator(seed) in __init__ and pass it as seed=",
        )
    return draw_seed(seed)


def _shape(shape):
    return tuple(int(d) for d in shape)


def _bits(key, shape, width):
    """Unsigned integers of `width` random bits each."""
    return _ops.random_bits(key, shape=shape, dtype=f"uint{width}", algorithm="threefry2x32")


def _split(key, count):
    """`count` independent keys."""
    keys = _ops.random_words(key, shape=(count,))
    out = []
    for i in range(count):
        row = _ops.slice(keys, starts=[i, 0], limits=[i + 1, 2])
        out.append(_ops.reshape(row, shape=(2,)))
    return out


def _unit(key, shape, dtype):
    """Uniform numbers in [0, 1)."""
    width, unsigned, mantissa, one = _FORMATS[dtype]
    bits = cast(_bits(key, shape, width), unsigned)
    bits = _ops.shift_right(bits, _core.tensor(width - mantissa, unsigned))
    bits = _ops.bitwise_or(bits, _core.tensor(one, unsigned))
    # Bits of a number in [1, 2).
    return _ops.sub(_ops.bitcast(bits, dtype=dtype), _core.tensor(1, dtype))


def _uniform(key, shape, low, high, dtype):
    unit = _unit(key, shape, dtype)
    low, high = convert_to_tensor(low, dtype), convert_to_tensor(high, dtype)
    # One rounding, as XLA compiles it.
    scaled = _ops.fma(unit, _ops.sub(high, low), low)
    return _ops.maximum(low, scaled)


def _float_dtype(dtype):
    dtype = standardize_dtype(dtype or floatx())
    if dtype not in _FORMATS:
        raise argument_error(
            f"Random floats need a float dtype. Received: dtype={dtype}. "
            f"Expected one of {sorted(_FORMATS)}."
        )
    return dtype


def uniform(shape, minval=0.0, maxval=1.0, dtype=None, seed=None):
    return _uniform(_key(seed), _shape(shape), minval, maxval, _float_dtype(dtype))


# Largest number below 1 in magnitude.
_BELOW_ONE = {
    "float16": 1 - 2**-11,
    "bfloat16": 1 - 2**-8,
    "float32": 1 - 2**-24,
    "float64": 1 - 2**-53,
}


def _gaussian(key, shape, low, high, dtype):
    u = _uniform(key, shape, low, high, dtype)
    return _ops.mul(_core.tensor(math.sqrt(2), dtype), _ops.erf_inv(u))


def normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    dtype = _float_dtype(dtype)
    sample = _gaussian(_key(seed), _shape(shape), -_BELOW_ONE[dtype], 1.0, dtype)
    return ew.add(ew.multiply(sample, stddev), mean)


def truncated_normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    dtype = _float_dtype(dtype)
    edge = math.erf(math.sqrt(2))  # two standard deviations
    sample = _gaussian(_key(seed), _shape(shape), -edge, edge, dtype)
    limit = 2 * _BELOW_ONE[dtype]  # the next number below 2
    sample = ew.clip(sample, -limit, limit)
    return ew.add(ew.multiply(sample, stddev), mean)


# Smallest normal number.
_TINY = {"float16": 2.0**-14, "bfloat16": 2.0**-126, "float32": 2.0**-126, "float64": 2.0**-1022}


def categorical(logits, num_samples, dtype="int32", seed=None):
    logits, result_dtype = ew.floating(logits), dtype
    rows, classes = logits.shape
    # The maximum of logits plus Gumbel noise is a draw from their distribution.
    shape, dtype = (rows, classes, int(num_samples)), logits.dtype
    u = _uniform(_key(seed), shape, _TINY[dtype], 1.0, dtype)
    noise = _ops.neg(_ops.log(_ops.neg(_ops.log(u))))
    scores = _ops.add(noise, reshape(logits, (rows, classes, 1)))
    return cast(_ops.argmax(scores, axis=1, keepdims=False), result_dtype)


def randint(shape, minval, maxval, dtype="int32", seed=None):
    dtype, shape = standardize_dtype(dtype), _shape(shape)
    if "int" not in dtype:
        raise argument_error(f"`randint` needs an integer dtype. Received: dtype={dtype}")
    # 64-bit integers are drawn with 32 bits, as everywhere in Keras but on TensorFlow.
    compute = dtype.replace("64", "32")
    first, second = _split(_key(seed), 2)
    width = int(compute.lstrip("uint"))
    _check_bounds(minval, maxval, compute, dtype)
    span, multiplier = _span(minval, maxval, compute, width)
    high, low = _bits(first, shape, width), _bits(second, shape, width)
    if span is not None:
        # Twice the bits of the result, modulo the span, without wider integers.
        high, low = _ops.floor_mod(high, span), _ops.floor_mod(low, span)
        low = _ops.floor_mod(_ops.add(_ops.mul(high, multiplier), low), span)
    start = cast(convert_to_tensor(_clip_to(minval, compute)), compute)
    return cast(_ops.add(start, cast(low, compute)), dtype)


def _check_bounds(minval, maxval, compute, dtype):
    low, high = _limits("uint32" if compute == "uint32" else "int32")
    for name, value in (("minval", minval), ("maxval", maxval)):
        if isinstance(value, (int, float)) and not low <= value <= high + 1:
            raise errors.raised_here(
                "BadAttribute",
                f"`randint` of {dtype} was called with {name}={value}",
                f"a number from {low} to {high + 1}: integers are drawn with 32 bits",
                "Draw two and put them together, or draw floats",
            )


def _limits(dtype):
    width = int(dtype.lstrip("uint"))
    if dtype.startswith("u"):
        return 0, 2**width - 1
    return -(2 ** (width - 1)), 2 ** (width - 1) - 1


def _clip_to(value, dtype):
    if isinstance(value, (int, float)):
        low, high = _limits(dtype)
        return min(max(int(value), low), high)
    return value


def _span(minval, maxval, dtype, width):
    """Size of the range and the weight of the high bits; None if every bit pattern is in it."""
    unsigned = f"uint{width}"
    if isinstance(minval, (int, float)) and isinstance(maxval, (int, float)):
        low, high = _clip_to(minval, dtype), _clip_to(maxval, dtype)
        span = high - low if high > low else 1
        if int(maxval) > high > low:
            span += 1
        if span >= 2**width:
            return None, None
        half = 2 ** (width // 2) % span
        multiplier = half * half % 2**width % span  # the product wraps, as JAX's does
        return [_core.tensor(v, unsigned) for v in (span, multiplier)]
    low, high = cast(convert_to_tensor(minval), dtype), cast(convert_to_tensor(maxval), dtype)
    one = _core.tensor(1, unsigned)
    span = _ops.select(_ops.greater(high, low), cast(_ops.sub(high, low), unsigned), one)
    half = _ops.floor_mod(_core.tensor(2 ** (width // 2), unsigned), span)
    return span, _ops.floor_mod(_ops.mul(half, half), span)


def dropout(inputs, rate, noise_shape=None, seed=None):
    inputs = convert_to_tensor(inputs)
    if rate == 1.0:
        return _ops.broadcast_to(ew.constant_like(0, inputs), shape=tuple(inputs.shape))
    if rate == 0.0:
        return inputs
    keep = 1.0 - rate
    shape = tuple(inputs.shape)
    if noise_shape is not None:
        shape = tuple(n if m is None else int(m) for n, m in zip(shape, noise_shape))
    mask = _ops.less(_unit(_key(seed), shape, "float32"), _core.tensor(keep, "float32"))
    scaled = _ops.div(inputs, ew.constant_like(keep, inputs))
    return _ops.select(mask, scaled, ew.constant_like(0, inputs))


def shuffle(x, axis=0, seed=None):
    x = convert_to_tensor(x)
    axis = axis % len(x.shape)
    key = _key(seed)
    size = max(1, math.prod(x.shape))
    # Enough rounds that equal 32-bit keys do not matter.
    rounds = math.ceil(3 * math.log(size) / math.log(2**32 - 1))
    for _ in range(rounds):
        key, subkey = _split(key, 2)
        order = _ops.argsort(_bits(subkey, tuple(x.shape), 32), axis=axis)
        x = _ops.gather_along(x, order, axis=axis)
    return x
