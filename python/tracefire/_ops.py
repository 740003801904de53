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


# Elementwise.


def logical_xor(x, y):
    return _rows.not_equal(x, y)


def is_inf(x):
    return _rows.equal(_rows.abs(x), number(math.inf, x))


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
