# SPDX-License-Identifier: Apache-2.0
"""`tensor[...]` with NumPy's rules, as slice, gather and reshape operations."""

import math
import operator

from tracefire import _core
from tracefire import _ops
from tracefire import errors

# What becomes of an axis: it stays, it goes (an integer), or it is new (None); or an index array.
_KEEP, _DROP, _NEW = "keep", "drop", "new"


def getitem(x, key):
    key = list(key) if isinstance(key, tuple) else [key]
    key = [_array(item) if isinstance(item, list) else item for item in key]
    key = _expand_ellipsis(key, len(x.shape))
    starts, limits, strides, flips = [], [], [], []
    plan = []
    axis = 0
    for item in key:
        if item is None:
            plan.append(_NEW)
            continue
        size = x.shape[axis]
        if isinstance(item, slice):
            lo, hi, step = _bounds(item, size)
            count = len(range(lo, hi, step))
            if step < 0:  # the engine slices forwards; reverse afterwards
                lo, step = lo + (count - 1) * step, -step
                flips.append(axis)
            starts.append(lo)
            limits.append(lo + (count - 1) * step + 1 if count else lo)
            strides.append(step)
            plan.append(_KEEP)
        elif _is_integer(item):
            item = operator.index(item)
            if not -size <= item < size:
                raise errors.raised_here(
                    "IndexOutOfRange",
                    f"index {item} was used on axis {axis} of size {size}",
                    f"an index from {-size} to {size - 1}",
                    "Check the index against the tensor's shape",
                )
            starts.append(item % size)
            limits.append(item % size + 1)
            strides.append(1)
            plan.append(_DROP)
        else:
            for array in _index_arrays(item, x.shape[axis:]):
                starts.append(0)
                limits.append(x.shape[axis])
                strides.append(1)
                plan.append(array)
                axis += 1
            continue
        axis += 1
    if any(s or n != d or t != 1 for s, n, d, t in zip(starts, limits, x.shape, strides)):
        x = _ops.slice(x, starts=starts, limits=limits, strides=strides)
    if flips:
        x = _ops.reverse(x, axes=flips)
    return _arrange(x, plan)


def _is_integer(item):
    """Numbers of Python and of NumPy; tensors and arrays are looked up when the graph runs."""
    if isinstance(item, (bool, _core.Tensor)) or getattr(item, "shape", ()) != ():
        return False
    return hasattr(item, "__index__") and str(getattr(item, "dtype", "int")) != "bool"


def _bounds(item, size):
    try:
        return item.indices(size)
    except (TypeError, ValueError) as error:
        raise errors.raised_here(
            "BadAttribute",
            f"a tensor was sliced by {item}",
            "integers or None, and a step that is not 0",
            "Use int() on numbers that are whole",
        ) from error


def _no_index(item, shown=None):
    shown = shown or repr(item)
    shown = shown if len(shown) < 60 else shown[:57] + "..."
    if isinstance(item, _core.Tensor) or hasattr(item, "dtype"):
        shown = f"an array of {item.dtype}"
    return errors.raised_here(
        "DTypeMismatch",
        f"a tensor was indexed by {shown}",
        "integers, slices, None, ..., and arrays of integers or of truth values",
        "Cast a float to an integer first; select by name in the dict that holds the tensor",
    )


def _expand_ellipsis(key, ndim):
    used = sum(_axes_used(k) for k in key)
    if used > ndim:
        raise errors.raised_here(
            "IndexOutOfRange",
            f"{used} indices were used on a tensor of rank {ndim}",
            f"at most {ndim} indices",
            "Check the rank of the tensor",
        )
    if sum(k is Ellipsis for k in key) > 1:
        raise _no_index(Ellipsis, "two `...`")
    rest = [slice(None)] * (ndim - used)
    at = next((i for i, k in enumerate(key) if k is Ellipsis), None)
    if at is None:
        return key + rest
    return key[:at] + rest + key[at + 1 :]


def _axes_used(item):
    if item is None or item is Ellipsis:
        return 0
    if getattr(item, "dtype", None) is not None and str(item.dtype) == "bool":
        return len(item.shape)
    return 1


def _array(item):
    """A list, or whatever else was given as an index, as a NumPy array."""
    import numpy as np

    try:
        array = np.asarray(item)
    except (ValueError, TypeError) as error:
        raise _no_index(item) from error
    return array if array.size else array.astype("bool" if array.dtype == bool else "int32")


def _index_arrays(item, sizes):
    """An index array as tensors of integers, one for each axis that it covers."""
    if isinstance(item, _core.Tensor) and "int" in item.dtype:
        return [item if item.dtype in ("int32", "int64") else _ops.cast(item, dtype="int64")]
    if isinstance(item, (bool, float, str, bytes, dict, set)) or item is NotImplemented:
        raise _no_index(item)
    import numpy as np

    if isinstance(item, _core.Tensor) and (_core.is_tracing() or _core.is_abstract()):
        raise errors.raised_here(
            "SizeNeeded",
            "a boolean mask was used as an index while a function is being traced, where the size "
            "of the result would depend on data",
            "an index whose result has a fixed size",
            "Use where() or multiply by the mask",
        )
    array = _array(item)
    if array.dtype == np.bool_ and array.ndim:
        if array.shape != tuple(sizes[: array.ndim]):
            raise errors.raised_here(
                "IndexOutOfRange",
                f"a mask of shape {array.shape} was used on axes of sizes "
                f"{tuple(sizes[: array.ndim])}",
                "a mask with the sizes of the axes that it covers",
                "Compare the shapes of the mask and of the tensor",
            )
        return [_core.tensor(a) for a in np.nonzero(array)]
    if array.dtype.kind not in "iu":
        raise _no_index(item)
    return [_core.tensor(array if array.dtype.itemsize >= 4 else array.astype("int32"))]


def _arrange(x, plan):
    """Applies dropped axes, new axes and index arrays."""
    if not any(_is_array(p) for p in plan):
        return _reshape(x, _sizes(x.shape, plan))
    # Positions of the indexed axes once the dropped axes are gone.
    kept = [p for p in plan if p is not _NEW]
    x = _reshape(x, [n for n, p in zip(x.shape, kept) if p is not _DROP])
    layout = [p for p in plan if p is not _DROP]
    axes, at, first, inserted = [], 0, None, []
    adjacent, last = True, None
    for i, p in enumerate(layout):
        if p is _NEW:
            inserted.append(i)
            continue
        if _is_array(p):
            axes.append(at)
            adjacent = adjacent and last in (None, i - 1)
            first = i if first is None else first
            last = i
        at += 1
    out, rank = _gather_axes(x, axes, [p for p in layout if _is_array(p)])
    # `out` has the broadcast index axes in front.
    rest = iter(out.shape[rank:])
    tail = [1 if p is _NEW else next(rest) for p in layout if not _is_array(p)]
    out = _reshape(out, list(out.shape[:rank]) + tail)
    position = first if adjacent else 0
    if position:
        perm = list(range(rank, rank + position)) + list(range(rank))
        perm += list(range(rank + position, len(out.shape)))
        out = _ops.transpose(out, perm=perm)
    return out


def _is_array(item):
    return isinstance(item, _core.Tensor)


def _sizes(shape, plan):
    sizes = iter(shape)
    out = []
    for p in plan:
        if p is _NEW:
            out.append(1)
            continue
        size = next(sizes)
        if p is _KEEP:
            out.append(size)
    return out


def _reshape(x, shape):
    return x if tuple(x.shape) == tuple(shape) else _ops.reshape(x, shape=tuple(shape))


def _gather_axes(x, axes, arrays):
    """Index arrays over `axes` at once; the result has the index axes in front."""
    others = [i for i in range(len(x.shape)) if i not in axes]
    if axes + others != list(range(len(x.shape))):
        x = _ops.transpose(x, perm=axes + others)
    sizes = x.shape[: len(axes)]
    wide = math.prod(sizes) >= 2**31 or any(a.dtype == "int64" for a in arrays)
    linear = None
    for size, array in zip(sizes, arrays):
        array = _ops.cast(array, dtype="int64") if wide else array
        limit = _ops.number(size, array)
        # Those that reach too far stay, to be reported as they are.
        from_end, zero = _ops.add(array, limit), _ops.number(0, array)
        negative = _ops.logical_and(_ops.less(array, zero), _ops.greater_equal(from_end, zero))
        array = _ops.select(negative, from_end, array)
        if len(arrays) > 1:  # joined with others it may lie inside again
            array = _ops.check_range(array, limit=(size,), message="index")
        linear = array if linear is None else _ops.add(_ops.mul(linear, limit), array)
    x = _reshape(x, (math.prod(sizes),) + tuple(x.shape[len(axes) :]))
    return _ops.gather(x, linear, axis=0), len(linear.shape)
