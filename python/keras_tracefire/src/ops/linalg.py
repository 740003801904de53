# SPDX-License-Identifier: Apache-2.0
"""What `keras.backend.linalg` holds."""

import math

from keras.src.backend.common.backend_utils import canonicalize_axis
from keras_tracefire.src import missing
from keras_tracefire.src._messages import argument_error
from keras_tracefire.src.ops import _elementwise as ew
from keras_tracefire.src.ops import _reduce
from keras_tracefire.src.ops._shape import reshape
from keras_tracefire.src.ops._tensor import cast
from keras_tracefire.src.ops._tensor import computes_now
from keras_tracefire.src.ops._tensor import convert_to_tensor
import tracefire
from tracefire import _core
from tracefire import _ops

__getattr__ = missing.attribute_of(__name__)


def norm(x, ord=None, axis=None, keepdims=False):
    x = ew.floating(x)
    if axis is None:
        if ord is None:
            return _vector_norm(x, 2, None, keepdims)
        axis = tuple(range(len(x.shape)))
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    axes = tuple(canonicalize_axis(a, len(x.shape)) for a in axes)
    if len(axes) == 1:
        return _vector_norm(x, 2 if ord is None else ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm(x, ord, axes, keepdims)
    raise argument_error(f"`axis` must name one or two axes. Received: axis={axis}")


def _vector_norm(x, ord, axes, keepdims):
    size = ew.absolute(x)
    if ord == 2:
        return ew.sqrt(_reduce.sum(ew.square(x), axes, keepdims))
    if ord == 1:
        return _reduce.sum(size, axes, keepdims)
    if ord == math.inf:
        return _reduce.max(size, axes, keepdims)
    if ord == -math.inf:
        return _reduce.min(size, axes, keepdims)
    if ord == 0:
        return _reduce.sum(ew.where(ew.not_equal(x, 0.0), 1.0, 0.0), axes, keepdims)
    if isinstance(ord, str):
        raise argument_error(f"Invalid `ord` argument for vector norm. Received: ord={ord}")
    return ew.power(_reduce.sum(ew.power(size, float(ord)), axes, keepdims), 1.0 / ord)


def _matrix_norm(x, ord, axes, keepdims):
    row, column = axes
    if ord in (None, "fro"):
        return ew.sqrt(_reduce.sum(ew.square(x), axes, keepdims))
    if ord in (1, -1, math.inf, -math.inf):
        inner, outer = (row, column) if ord in (1, -1) else (column, row)
        sums = _reduce.sum(ew.absolute(x), inner, keepdims=True)
        extreme = _reduce.max if ord in (1, math.inf) else _reduce.min
        out = extreme(sums, outer, keepdims=True)
        if keepdims:
            return out
        return reshape(out, [n for i, n in enumerate(x.shape) if i not in axes])
    if ord in (2, -2, "nuc"):
        raise missing.function("linalg", "svd")
    raise argument_error(f"Invalid `ord` argument for matrix norm. Received: ord={ord}")


def qr(x, mode="reduced"):
    """Runs on the host, for initializers; a traced function cannot call it."""
    import numpy as np

    if mode not in {"reduced", "complete"}:
        raise argument_error(
            "`mode` argument value not supported. Expected one of {'reduced', 'complete'}. "
            f"Received: mode={mode}"
        )
    x = ew.floating(x)
    if not computes_now():
        if not _core.is_abstract():
            raise missing.function("linalg", "qr")
        rows, columns = x.shape[-2:]
        k = min(rows, columns) if mode == "reduced" else rows
        lead = tuple(x.shape[:-2])
        zero = ew.constant_like(0, x)
        return (
            _ops.broadcast_to(zero, shape=lead + (rows, k)),
            _ops.broadcast_to(zero, shape=lead + (k, columns)),
        )
    q, r = np.linalg.qr(_in_double(convert_to_tensor(x)), mode)
    return _qr_with_gradient(x, q, r)


def _in_double(x):
    return x.numpy().astype("float64")


def _qr_with_gradient(x, q, r):
    """q and r as tensors of x's dtype, which a tape can go through."""

    @tracefire.custom_gradient
    def run(_):
        outputs = cast(_core.tensor(q), x.dtype), cast(_core.tensor(r), x.dtype)
        return outputs, lambda dq, dr: cast(_core.tensor(_qr_gradient(q, r, dq, dr)), x.dtype)

    return run(x)


def _qr_gradient(q, r, dq, dr):
    """H. Liao et al., "Differentiable programming tensor networks", 2019, section III B."""
    import numpy as np

    if r.shape[-1] != r.shape[-2] or q.shape[-1] != r.shape[-1]:
        raise missing.unsupported(
            f"the gradient of `qr` was asked for factors of shapes {q.shape} and {r.shape}",
            "a matrix with at least as many rows as columns, and mode='reduced'",
            "Factor the transposed matrix, or a square part of it",
        )
    dq, dr = _in_double(dq), _in_double(dr)
    small = r @ np.swapaxes(dr, -1, -2) - np.swapaxes(dq, -1, -2) @ q
    lower = np.tril(small)
    both = lower + np.swapaxes(np.tril(small, -1), -1, -2)
    # times the inverse of r transposed, from the right
    return np.swapaxes(np.linalg.solve(r, np.swapaxes(dq + q @ both, -1, -2)), -1, -2)
