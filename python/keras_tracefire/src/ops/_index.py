# SPDX-License-Identifier: Apache-2.0
"""Functions that look elements up, order them or take diagonals."""

import math

from keras.src.backend.common.backend_utils import canonicalize_axis
from keras_tracefire.src._messages import argument_error
from keras_tracefire.src.ops import _elementwise as ew
from keras_tracefire.src.ops._create import iota
from keras_tracefire.src.ops._shape import moveaxis
from keras_tracefire.src.ops._shape import pad
from keras_tracefire.src.ops._shape import ravel
from keras_tracefire.src.ops._shape import reshape
from keras_tracefire.src.ops._shape import slice_axis
from keras_tracefire.src.ops._tensor import cast
from keras_tracefire.src.ops._tensor import computes_now
from keras_tracefire.src.ops._tensor import convert_to_tensor
from keras_tracefire.src.ops._tensor import indices_of
from keras_tracefire.src.ops._tensor import is_float
from keras_tracefire.src.ops._tensor import promote
from tracefire import _core
from tracefire import _ops
from tracefire import errors



def _from_end(indices, size):
    """Negative indices count from the end; those that reach too far stay, to be reported as they
    are."""
    indices = _whole(indices)
    from_end = _ops.add(indices, ew.constant_like(size, indices))
    is_there = _ops.greater_equal(from_end, ew.constant_like(0, indices))
    negative = _ops.less(indices, ew.constant_like(0, indices))
    return _ops.select(_ops.logical_and(negative, is_there), from_end, indices)


def _whole(indices):
    indices = convert_to_tensor(indices)
    if is_float(indices.dtype) and 0 not in indices.shape:  # an empty list has Keras's floatx
        raise errors.raised_here(
            "DTypeMismatch",
            f"elements were looked up by indices of {indices.dtype}",
            "integers",
            "Cast the indices to int32 first",
        )
    return indices_of(indices)


def take(x, indices, axis=None):
    x = convert_to_tensor(x)
    if axis is None:
        x, axis = ravel(x), 0
    axis = canonicalize_axis(axis, len(x.shape))
    return _ops.gather(x, _from_end(indices, x.shape[axis]), axis=axis)


def take_along_axis(x, indices, axis=None):
    x, indices = convert_to_tensor(x), _whole(indices)
    if axis is None:
        x, indices, axis = ravel(x), ravel(indices), 0
    axis = canonicalize_axis(axis, len(x.shape))
    shape = [
        n if i == axis else max(n, m) for i, (n, m) in enumerate(zip(x.shape, indices.shape))
    ]
    x = _ops.broadcast_to(x, shape=tuple(shape))
    shape[axis] = indices.shape[axis]
    indices = _ops.broadcast_to(_from_end(indices, x.shape[axis]), shape=tuple(shape))
    return _ops.gather_along(x, indices, axis=axis)


def sort(x, axis=-1):
    x = convert_to_tensor(x)
    if axis is None:
        x, axis = ravel(x), 0
    return _ops.sort(x, axis=axis)


def argsort(x, axis=-1):
    x = convert_to_tensor(x)
    if axis is None or not x.shape:
        x, axis = ravel(x), 0
    return _ops.argsort(x, axis=axis)


def argpartition(x, kth, axis=-1):
    del kth  # a sorted order is partitioned at every position
    return argsort(x, axis)


def searchsorted(sorted_sequence, values, side="left"):
    sorted_sequence, values = promote(sorted_sequence, values)
    if len(sorted_sequence.shape) != 1:
        raise argument_error(
            "`searchsorted` only supports 1-D sorted sequences. "
            "You can use `keras.ops.vectorized_map` to extend it to N-D sequences. "
            f"Received: sorted_sequence.shape={sorted_sequence.shape}"
        )
    if side not in ("left", "right"):
        raise argument_error(f"`side` must be 'left' or 'right'. Received: side={side!r}")
    column = reshape(values, tuple(values.shape) + (1,))
    compare = _ops.less if side == "left" else _ops.less_equal
    before = compare(sorted_sequence, column)
    if is_float(column.dtype):  # NaN is sorted behind everything
        nan = _ops.is_nan(column)
        if side == "left":
            nan = _ops.logical_and(nan, _ops.logical_not(_ops.is_nan(sorted_sequence)))
        before = _ops.logical_or(before, nan)
    return _ops.reduce_sum(cast(before, "int32"), axes=[len(values.shape)], keepdims=False)


def digitize(x, bins):
    return searchsorted(bins, x, side="right")


def isin(x1, x2, assume_unique=False, invert=False):
    x1, x2 = promote(x1, x2)
    same = _ops.equal(reshape(x1, tuple(x1.shape) + (1,)), ravel(x2))
    found = _ops.reduce_any(same, axes=[len(x1.shape)], keepdims=False)
    return _ops.logical_not(found) if invert else found


def _host_only(name):
    if not computes_now():
        raise errors.raised_here(
            "SizeNeeded",
            f"`{name}` was called in a function that is being traced, where the size of its "
            "result would depend on data",
            "functions whose results have fixed sizes",
            "Use where(), a mask or a fixed size instead",
        )


def nonzero(x):
    import numpy as np

    _host_only("nonzero")
    x = convert_to_tensor(x)
    return tuple(_core.tensor(i.astype("int32")) for i in np.nonzero(x.numpy()))


def unravel_index(indices, shape):
    indices = convert_to_tensor(indices)
    rest, out = _from_end(indices, math.prod(shape)), []
    for size in reversed(shape):
        limit = ew.constant_like(max(size, 1), rest)
        out.append(cast(_ops.floor_mod(rest, limit), indices.dtype))
        rest = _ops.floor_div(rest, limit)
    return tuple(reversed(out))


def diff(a, n=1, axis=-1):
    a = convert_to_tensor(a)
    axis = canonicalize_axis(axis, len(a.shape))
    for _ in range(n):
        length = a.shape[axis]
        if length <= 1:
            return slice_axis(a, axis, 0, 0)
        later, earlier = slice_axis(a, axis, 1, length), slice_axis(a, axis, 0, length - 1)
        if a.dtype == "bool":
            a = _ops.not_equal(later, earlier)
        else:
            a = _ops.sub(later, earlier)
    return a


def _diagonal_range(rows, columns, offset):
    """First row, first column and length of a diagonal."""
    row, column = max(-offset, 0), max(offset, 0)
    return row, column, max(min(rows - row, columns - column), 0)


def diagonal(x, offset=0, axis1=0, axis2=1):
    x = convert_to_tensor(x)
    if len(x.shape) < 2:
        raise argument_error(
            "`diagonal` requires an array of at least two dimensions, "
            f"but `x` is of shape {x.shape}."
        )
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    rows, columns = x.shape[-2:]
    row, column, length = _diagonal_range(rows, columns, offset)
    lead = tuple(x.shape[:-2])
    flat = reshape(x, lead + (rows * columns,))
    at = iota(length)
    step = _core.tensor(columns + 1, "int32")
    at = _ops.add(_ops.mul(at, step), _core.tensor(row * columns + column, "int32"))
    return _ops.gather(flat, at, axis=len(lead))


def diagflat(x, k=0):
    return diag(ravel(x), k)


def diag(x, k=0):
    x = convert_to_tensor(x)
    if len(x.shape) == 2:
        return diagonal(x, k)
    if len(x.shape) != 1:
        raise argument_error(f"`x` must be 1-D or 2-D. Received: shape {x.shape}")
    n = x.shape[0] + abs(k)
    x = pad(x, ((max(k, 0), max(-k, 0)),))  # the value that belongs to each column
    row = _ops.iota(shape=(n, n), axis=0, dtype="int32")
    column = _ops.iota(shape=(n, n), axis=1, dtype="int32")
    on_diagonal = _ops.equal(column, _ops.add(row, _core.tensor(k, "int32")))
    return _ops.select(on_diagonal, x, ew.constant_like(0, x))


def trace(x, offset=0, axis1=0, axis2=1):
    from keras_tracefire.src.ops._reduce import sum

    return sum(diagonal(x, offset, axis1, axis2), axis=-1)


def histogram(x, bins=10, range=None):
    from keras_tracefire.src.ops._create import linspace
    from keras_tracefire.src.ops._reduce import max as largest
    from keras_tracefire.src.ops._reduce import min as smallest

    x = ravel(x)
    dtype = x.dtype if is_float(x.dtype) else "float32"
    x = cast(x, dtype)
    if isinstance(bins, int):
        if range is None and x.shape[0] == 0:
            low, high = ew.constant_like(0, x), ew.constant_like(1, x)
        elif range is None:
            low, high = smallest(x), largest(x)
            _check_range(low, high)
            flat = _ops.equal(low, high)
            half = ew.constant_like(0.5, x)
            low = _ops.select(flat, _ops.sub(low, half), low)
            high = _ops.select(flat, _ops.add(high, half), high)
        else:
            low, high = range
        edges = cast(linspace(low, high, bins + 1), dtype)
    else:
        edges = cast(bins, dtype)
    count = edges.shape[0] - 1
    bin_of = _ops.sub(searchsorted(edges, x, side="right"), _core.tensor(1, "int32"))
    at_end = _ops.equal(x, slice_axis(edges, 0, count, count + 1))
    bin_of = _ops.select(at_end, _core.tensor(count - 1, "int32"), bin_of)
    hits = _ops.one_hot(bin_of, depth=count, axis=-1, dtype="int32")
    return _ops.reduce_sum(hits, axes=[0], keepdims=False), edges


def _check_range(low, high):
    """The range of data that is known now must have ends."""
    if not computes_now() or (math.isfinite(low.item()) and math.isfinite(high.item())):
        return
    raise errors.raised_here(
        "NotFinite",
        f"`histogram` was called for data from {low.item()} to {high.item()} without a range",
        "finite data, or range=(low, high)",
        "Pass a range, or take out what is not finite with ops.isfinite",
    )


def unique(
    x,
    sorted=True,
    return_index=False,
    return_inverse=False,
    return_counts=False,
    axis=None,
    size=None,
    fill_value=None,
):
    import numpy as np

    _host_only("unique")
    x = convert_to_tensor(x).numpy()
    values, index, inverse, counts = np.unique(
        x, True, True, True, axis=axis, equal_nan=False
    )
    along = 0 if axis is None else axis
    if size is not None:
        missing_rows = size - values.shape[along]
        if missing_rows < 0:
            values = np.take(values, np.arange(size), axis=along)
            index, counts = index[:size], counts[:size]
        elif missing_rows:
            first = np.take(values, [0], axis=along)
            fill = first if fill_value is None else np.full_like(first, fill_value)
            values = np.concatenate([values] + [fill] * missing_rows, axis=along)
            index = np.pad(index, (0, missing_rows), constant_values=index[0])
            counts = np.pad(counts, (0, missing_rows))
    out = [values]
    out += [index.astype("int32")] if return_index else []
    out += [inverse.astype("int32")] if return_inverse else []
    out += [counts.astype("int32")] if return_counts else []
    out = [_core.tensor(o) for o in out]
    return out[0] if len(out) == 1 else tuple(out)


def correlate(x1, x2, mode="valid"):
    x1, x2 = promote(x1, x2)
    if len(x1.shape) != 1 or len(x2.shape) != 1:
        raise argument_error(
            f"`correlate` needs tensors of rank 1. Received shapes {x1.shape} and {x2.shape}"
        )
    if not is_float(x1.dtype):
        x1, x2 = cast(x1, "float32"), cast(x2, "float32")
    swap = x1.shape[0] < x2.shape[0]
    long, short = (x2, x1) if swap else (x1, x2)
    n, m = long.shape[0], short.shape[0]
    if mode == "valid":
        left, count = 0, n - m + 1
    elif mode == "same":
        left, count = m // 2, n
        if swap:
            left = m - 1 - (m - 1 - left if m % 2 else left - 1)
    elif mode == "full":
        left, count = m - 1, n + m - 1
    else:
        raise argument_error(f"`mode` must be 'valid', 'same' or 'full'. Received: mode={mode!r}")
    long = pad(long, ((left, max(count + m - 1 - left - n, 0)),))
    row = _ops.iota(shape=(count, m), axis=0, dtype="int32")
    column = _ops.iota(shape=(count, m), axis=1, dtype="int32")
    windows = _ops.gather(long, _ops.add(row, column), axis=0)
    out = _ops.reduce_sum(_ops.mul(windows, short), axes=[1], keepdims=False)
    return _ops.reverse(out, axes=[0]) if swap else out
