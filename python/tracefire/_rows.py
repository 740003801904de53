# SPDX-License-Identifier: Apache-2.0
"""The rows of the op table as the Python packages use them: `_core.ops`, with a few spelled in
terms of others."""

from tracefire import _core

_ops = _core.ops


def __getattr__(name):
    return getattr(_ops, name)


def pad(x, low, high, interior=(), value=0):
    """`value` is a Python number; its row takes a tensor."""
    return _ops.pad(x, _core.tensor(value, x.dtype), low=low, high=high, interior=interior)


def fma(a, b, c):
    """a * b + c; fused kernels contract it to one rounding where the device does."""
    return _ops.add(_ops.mul(a, b), c)


def mod(a, b):
    """Remainder with the sign of the divisor."""
    return _ops.floor_mod(a, b)


def shift_right_logical(a, b):
    """For unsigned integers, on which every shift is logical."""
    return _ops.shift_right(a, b)


def logical_xor(a, b):
    return _ops.not_equal(a, b)


def is_inf(x):
    infinity = _core.tensor(float("inf"), x.dtype)
    return _ops.equal(_ops.abs(x), infinity)


def softplus(x):
    """log(1 + e^x) without overflow."""
    zero = _core.tensor(0, x.dtype)
    return _ops.add(_ops.maximum(x, zero), _ops.log1p(_ops.exp(_ops.neg(_ops.abs(x)))))


def sparse_softmax_cross_entropy(logits, labels):
    return _ops.softmax_cross_entropy(logits, labels)


def check_range(x, low, high, what):
    """Fails the run where an element is outside low … high - 1."""
    if low != 0:
        raise ValueError(f"check_range checks from 0 on. Received: low={low}")
    return _ops.check_range(x, limit=(high,), message=what)
