# SPDX-License-Identifier: Apache-2.0
"""The engine's operations, and some that are composed of them here.

`_ops.add(x, y)` is `_core.ops.add(x, y)`. What the engine has no row for, or has under a narrower
form, is a function of this module: it works at once, traced, and under gradients, because its
parts do.
"""

from tracefire import _core
from tracefire._special import acos  # noqa: F401
from tracefire._special import acosh  # noqa: F401
from tracefire._special import asin  # noqa: F401
from tracefire._special import asinh  # noqa: F401
from tracefire._special import atan  # noqa: F401
from tracefire._special import atanh  # noqa: F401
from tracefire._special import cbrt  # noqa: F401
from tracefire._special import computed_wide  # noqa: F401
from tracefire._special import copysign  # noqa: F401
from tracefire._special import cosh  # noqa: F401
from tracefire._special import erfc  # noqa: F401
from tracefire._special import exp2  # noqa: F401
from tracefire._special import fmod  # noqa: F401
from tracefire._special import hypot  # noqa: F401
from tracefire._special import is_inf  # noqa: F401
from tracefire._special import ldexp  # noqa: F401
from tracefire._special import logical_xor  # noqa: F401
from tracefire._special import number  # noqa: F401
from tracefire._special import sign_bit  # noqa: F401
from tracefire._special import sinh  # noqa: F401
from tracefire._special import softplus  # noqa: F401
from tracefire._special import tan  # noqa: F401

_rows = _core.ops
globals().update({n: getattr(_rows, n) for n in dir(_rows) if not n.startswith("_")})


def __getattr__(name):
    return getattr(_rows, name)


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
