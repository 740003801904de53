# SPDX-License-Identifier: Apache-2.0
"""The engine's operations, and some that are composed of them here.

`_ops.add(x, y)` is `_core.ops.add(x, y)`. What the engine has no row for, or has under a narrower
form, is a function of this module: it works at once, traced, and under gradients, because its
parts do.
"""

import math

from tracefire import _core

_rows = _core.ops
globals().update({n: getattr(_rows, n) for n in dir(_rows) if not n.startswith("_")})


def __getattr__(name):
    return getattr(_rows, name)


def number(value, like):
    """A Python number as a tensor of shape () and the dtype of `like`."""
    return _core.tensor(value, like.dtype)


def is_float(dtype):
    return dtype.startswith("float") or dtype == "bfloat16"


# Elementwise.


def logical_xor(x, y):
    return _rows.not_equal(x, y)


def is_inf(x):
    return _rows.equal(_rows.abs(x), number(math.inf, x))


def fma(x, y, z):
    """x * y + z of float32 with one rounding, as XLA contracts it."""
    if x.dtype != "float32":
        return _rows.add(_rows.mul(x, y), z)
    # The product of two numbers of 24 bits is exact in the 53 bits of a double.
    x, y, z = (_rows.cast(v, dtype="float64") for v in (x, y, z))
    return _rows.cast(_rows.add(_rows.mul(x, y), z), dtype="float32")


def softplus(x):
    """log(1 + e^x) without overflow."""
    rest = _rows.log1p(_rows.exp(_rows.neg(_rows.abs(x))))
    return _rows.add(_rows.maximum(x, number(0, x)), rest)


def tan(x):
    return _rows.div(_rows.sin(x), _rows.cos(x))


def asin(x):
    return _rows.atan2(x, _cathetus(x))


def acos(x):
    return _rows.atan2(_cathetus(x), x)


def _cathetus(x):
    """sqrt(1 - x^2), accurate near 1."""
    one = number(1, x)
    return _rows.sqrt(_rows.mul(_rows.sub(one, x), _rows.add(one, x)))


def atan(x):
    return _rows.atan2(x, number(1, x))


def sinh(x):
    # (e^x - e^-x) / 2 with the ones taken out, for small x.
    up = _rows.expm1(x)
    down = _rows.expm1(_rows.neg(x))
    return _rows.mul(_rows.sub(up, down), number(0.5, x))


def cosh(x):
    total = _rows.add(_rows.exp(x), _rows.exp(_rows.neg(x)))
    return _rows.mul(total, number(0.5, x))


def asinh(x):
    size, one = _rows.abs(x), number(1, x)
    square = _rows.square(size)
    # log(size + sqrt(size^2 + 1)), accurate for small sizes.
    extra = _rows.div(square, _rows.add(one, _rows.sqrt(_rows.add(square, one))))
    return _rows.mul(_rows.sign(x), _rows.log1p(_rows.add(size, extra)))


def acosh(x):
    one = number(1, x)
    root = _rows.sqrt(_rows.mul(_rows.sub(x, one), _rows.add(x, one)))
    return _rows.log(_rows.add(x, root))


def atanh(x):
    ratio = _rows.div(_rows.add(x, x), _rows.sub(number(1, x), x))
    return _rows.mul(number(0.5, x), _rows.log1p(ratio))


# Movement.


def pad(x, *, low, high, interior=(), value=0):
    return _rows.pad(x, number(value, x), low=low, high=high, interior=interior)


def argmax(x, *, axis, keepdims=False):
    return _rows.argmax(x, axis=axis, keepdims=keepdims, dtype="int32")


def argmin(x, *, axis, keepdims=False):
    return _rows.argmin(x, axis=axis, keepdims=keepdims, dtype="int32")


def _descending(x):
    """A key whose descending order is the ascending order of `x`, NaN last."""
    if is_float(x.dtype):
        lowest = number(-math.inf, x)
        return _rows.select(_rows.is_nan(x), lowest, _rows.neg(x))
    return _rows.bitwise_not(x)


def argsort(x, *, axis):
    """Indices that sort along an axis; of equal elements the lower index first."""
    last = len(x.shape) - 1
    perm = list(range(len(x.shape)))
    perm[axis], perm[last] = last, axis
    moved = x if axis == last else _rows.transpose(x, perm=perm)
    _, indices = _rows.top_k(_descending(moved), k=x.shape[axis])
    return indices if axis == last else _rows.transpose(indices, perm=perm)


def sort(x, *, axis):
    return _rows.gather_along(x, argsort(x, axis=axis), axis=axis)


def cumprod(x, *, axis, exclusive=False, reverse=False):
    """Products of growing prefixes: each round doubles their length."""
    if reverse:
        x = _rows.reverse(x, axes=[axis])
    length, step = x.shape[axis], 1
    if exclusive:
        x = _shifted(x, axis, 1)
    while step < length:
        x = _rows.mul(x, _shifted(x, axis, step))
        step *= 2
    return _rows.reverse(x, axes=[axis]) if reverse else x


def _shifted(x, axis, step):
    """x moved back along an axis by `step`, ones coming in."""
    low = [step if a == axis else 0 for a in range(len(x.shape))]
    high = [-n for n in low]
    return pad(x, low=low, high=high, value=1)


# Indexing.


def scatter(operand, indices, updates, *, reduction):
    """`operand` with `updates` combined at `indices`.

    Args:
        operand: [..., tail].
        indices: [n, k] whole numbers that address the first k axes.
        updates: [n, tail].
        reduction: "add"; "unique" for values that replace others, no index twice; "update" where
            of equal indices the last counts; "mul", "max" and "min". All but the first two need
            memory for n times the number of addressed places.
    """
    depth = indices.shape[-1]
    lead, tail = tuple(operand.shape[:depth]), tuple(operand.shape[depth:])
    places = math.prod(lead)
    at = _linear(indices, lead)
    table = _rows.reshape(operand, shape=(places,) + tail)
    if reduction == "add":
        out = _rows.add(table, _rows.scatter_add(updates, at, shape=table.shape, axis=0))
    elif reduction == "unique":
        out = _replace(table, at, updates)
    else:
        out = _combine(table, at, updates, reduction)
    return _rows.reshape(out, shape=tuple(operand.shape))


def _linear(indices, sizes):
    """[n, k] indices as [n] row numbers of the flattened axes."""
    n = indices.shape[0]
    rows = None
    for axis, size in enumerate(sizes):
        part = _rows.slice(indices, starts=[0, axis], limits=[n, axis + 1])
        part = _rows.reshape(part, shape=(n,))
        rows = part if rows is None else _rows.add(_rows.mul(rows, number(size, part)), part)
    return rows


def _replace(table, at, updates):
    ones = _rows.broadcast_to(_core.tensor(1, "int32"), shape=tuple(at.shape))
    hits = _rows.scatter_add(ones, at, shape=(table.shape[0],), axis=0)
    is_hit = _rows.greater(hits, _core.tensor(0, "int32"))
    is_hit = _rows.reshape(is_hit, shape=(table.shape[0],) + (1,) * (len(table.shape) - 1))
    as_bool = updates.dtype == "bool"
    values = _rows.cast(updates, dtype="int32") if as_bool else updates
    values = _rows.scatter_add(values, at, shape=tuple(table.shape), axis=0)
    values = _rows.cast(values, dtype="bool") if as_bool else values
    return _rows.select(is_hit, values, table)


def _combine(table, at, updates, reduction):
    n, places = at.shape[0], table.shape[0]
    place = _rows.iota(shape=(n, places), axis=1, dtype=at.dtype)
    hits = _rows.equal(_rows.reshape(at, shape=(n, 1)), place)  # [n, places]
    if reduction == "update":
        count = _rows.iota(shape=(n, places), axis=0, dtype="int32")
        count = _rows.add(count, _core.tensor(1, "int32"))
        none = _core.tensor(0, "int32")
        last = _rows.reduce_max(_rows.select(hits, count, none), axes=[0])
        source = _rows.maximum(_rows.sub(last, _core.tensor(1, "int32")), none)
        values = _rows.gather(updates, source, axis=0)
        is_hit = _rows.reshape(
            _rows.greater(last, none), shape=(places,) + (1,) * (len(table.shape) - 1)
        )
        return _rows.select(is_hit, values, table)
    tail = tuple(table.shape[1:])
    hits = _rows.reshape(hits, shape=(n, places) + (1,) * len(tail))
    values = _rows.reshape(updates, shape=(n, 1) + tail)
    if reduction == "mul":
        values = _rows.select(hits, values, number(1, values))
        return _rows.mul(table, _rows.reduce_prod(values, axes=[0]))
    reduce, choose = {
        "max": (_rows.reduce_max, _rows.maximum),
        "min": (_rows.reduce_min, _rows.minimum),
    }[reduction]
    # Where a place has no update, the table's own value changes nothing.
    own = _rows.reshape(table, shape=(1, places) + tail)
    return choose(table, reduce(_rows.select(hits, values, own), axes=[0]))


# Random.


def random_words(key, *, shape):
    """Two words of 32 bits for each element: uint32 of shape + (2,)."""
    both = _rows.random_bits(key, shape=shape, dtype="uint64")
    high = _rows.cast(_rows.shift_right(both, number(32, both)), dtype="uint32")
    parts = [
        _rows.reshape(part, shape=tuple(shape) + (1,))
        for part in (high, _rows.cast(both, dtype="uint32"))
    ]
    return _rows.concat(*parts, axis=len(shape))
