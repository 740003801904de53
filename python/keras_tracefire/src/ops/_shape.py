# SPDX-License-Identifier: Apache-2.0
"""Functions that move, join, repeat or cut elements without computing with them."""

import math

from keras.src.backend.common.backend_utils import canonicalize_axis
from keras_tracefire.src._messages import argument_error
from keras_tracefire.src.ops._tensor import convert_to_tensor
from keras_tracefire.src.ops._tensor import promote
from tracefire import _core
from tracefire import _ops



def ndim(x):
    return len(convert_to_tensor(x).shape)


def size(x):
    return math.prod(convert_to_tensor(x).shape)


def array(x, dtype=None):
    return convert_to_tensor(x, dtype)


def copy(x):
    return convert_to_tensor(x)


def reshape(x, newshape):
    x = convert_to_tensor(x)
    newshape = [newshape] if isinstance(newshape, int) else [int(d) for d in newshape]
    if -1 in newshape:
        known = math.prod(d for d in newshape if d != -1)
        total = math.prod(x.shape)
        newshape[newshape.index(-1)] = total // known if known else 0
    newshape = tuple(newshape)
    return x if tuple(x.shape) == newshape else _ops.reshape(x, shape=newshape)


def ravel(x):
    return reshape(x, (-1,))


def squeeze(x, axis=None):
    x = convert_to_tensor(x)
    if axis is None:
        return reshape(x, [d for d in x.shape if d != 1])
    axes = [axis] if isinstance(axis, int) else axis
    axes = [canonicalize_axis(a, len(x.shape)) for a in axes]
    for a in axes:
        if x.shape[a] != 1:
            raise argument_error(
                f"Cannot squeeze axis={a}, because the dimension is not 1. "
                f"Received: shape={x.shape}"
            )
    return reshape(x, [d for i, d in enumerate(x.shape) if i not in axes])


def expand_dims(x, axis):
    x = convert_to_tensor(x)
    axes = [axis] if isinstance(axis, int) else axis
    rank = len(x.shape) + len(axes)
    axes = [canonicalize_axis(a, rank) for a in axes]
    rest = iter(x.shape)
    return reshape(x, [1 if i in axes else next(rest) for i in range(rank)])


def broadcast_to(x, shape):
    x = convert_to_tensor(x)
    shape = (shape,) if isinstance(shape, int) else tuple(int(d) for d in shape)
    return x if tuple(x.shape) == shape else _ops.broadcast_to(x, shape=shape)


def transpose(x, axes=None):
    x = convert_to_tensor(x)
    rank = len(x.shape)
    if axes is None:
        axes = range(rank - 1, -1, -1)
    perm = [canonicalize_axis(a, rank) for a in axes]
    return x if perm == list(range(rank)) else _ops.transpose(x, perm=perm)


def swapaxes(x, axis1, axis2):
    x = convert_to_tensor(x)
    perm = list(range(len(x.shape)))
    perm[axis1], perm[axis2] = perm[axis2], perm[axis1]
    return transpose(x, perm)


def moveaxis(x, source, destination):
    x = convert_to_tensor(x)
    rank = len(x.shape)
    source = [source] if isinstance(source, int) else source
    destination = [destination] if isinstance(destination, int) else destination
    source = [canonicalize_axis(a, rank) for a in source]
    destination = [canonicalize_axis(a, rank) for a in destination]
    perm = [a for a in range(rank) if a not in source]
    for to, axis in sorted(zip(destination, source)):
        perm.insert(to, axis)
    return transpose(x, perm)


def flip(x, axis=None):
    x = convert_to_tensor(x)
    rank = len(x.shape)
    axes = range(rank) if axis is None else [axis] if isinstance(axis, int) else axis
    axes = [canonicalize_axis(a, rank) for a in axes]
    return _ops.reverse(x, axes=axes) if axes else x


def fliplr(x):
    return flip(x, 1)


def flipud(x):
    return flip(x, 0)


def rot90(array, k=1, axes=(0, 1)):
    array = convert_to_tensor(array)
    if len(array.shape) < 2:
        raise argument_error(
            "Input array must have at least 2 dimensions. "
            f"Received: array.ndim={len(array.shape)}"
        )
    if len(axes) != 2 or axes[0] == axes[1]:
        raise argument_error(
            f"Invalid axes: {axes}. Axes must be a tuple of two different dimensions."
        )
    k %= 4
    if k == 0:
        return array
    if k == 2:
        return flip(array, list(axes))
    if k == 1:
        return swapaxes(flip(array, axes[1]), *axes)
    return flip(swapaxes(array, *axes), axes[1])


def concatenate(xs, axis=0):
    xs = promote(*xs)
    if axis is None:
        xs, axis = [ravel(x) for x in xs], 0
    axis = canonicalize_axis(axis, len(xs[0].shape))
    return xs[0] if len(xs) == 1 else _ops.concat(*xs, axis=axis)


def append(x1, x2, axis=None):
    return concatenate([convert_to_tensor(x1), convert_to_tensor(x2)], axis)


def stack(x, axis=0):
    return concatenate([expand_dims(t, axis) for t in x], axis)


def _at_least(x, rank):
    x = convert_to_tensor(x)
    if len(x.shape) >= rank:
        return x
    if rank == 3:  # NumPy puts the new axes of dstack around the old one
        shape = {0: (1, 1, 1), 1: (1, -1, 1)}.get(len(x.shape)) or tuple(x.shape) + (1,)
        return reshape(x, shape)
    return reshape(x, (1,) * (rank - len(x.shape)) + tuple(x.shape))


def vstack(xs):
    return concatenate([_at_least(x, 2) for x in xs], 0)


def hstack(xs):
    xs = [_at_least(x, 1) for x in xs]
    return concatenate(xs, 0 if len(xs[0].shape) == 1 else 1)


def dstack(xs):
    return concatenate([_at_least(x, 3) for x in xs], 2)


def slice_axis(x, axis, start, limit):
    """x[..., start:limit, ...] on one axis."""
    starts = [start if a == axis else 0 for a in range(len(x.shape))]
    limits = [limit if a == axis else n for a, n in enumerate(x.shape)]
    return _ops.slice(x, starts=starts, limits=limits, strides=[1] * len(starts))


def _cut(x, points, axis):
    edges = [0] + points + [x.shape[axis]]
    return [slice_axis(x, axis, a, max(a, b)) for a, b in zip(edges, edges[1:])]


def split(x, indices_or_sections, axis=0):
    x = convert_to_tensor(x)
    axis = canonicalize_axis(axis, len(x.shape))
    length = x.shape[axis]
    if isinstance(indices_or_sections, int):
        if length % indices_or_sections:
            raise argument_error(
                f"An axis of size {length} cannot be split into {indices_or_sections} equal parts."
            )
        step = length // indices_or_sections
        points = [step * i for i in range(1, indices_or_sections)]
    else:
        points = [int(i) for i in _host_list(indices_or_sections)]
        points = [min(max(p + length if p < 0 else p, 0), length) for p in points]
    return _cut(x, points, axis)


def _host_list(values):
    return values if isinstance(values, (list, tuple)) else convert_to_tensor(values).tolist()


def array_split(x, indices_or_sections, axis=0):
    x = convert_to_tensor(x)
    axis = canonicalize_axis(axis, len(x.shape))
    if not isinstance(indices_or_sections, int):
        return split(x, indices_or_sections, axis)
    size, extra = divmod(x.shape[axis], indices_or_sections)
    points, at = [], 0
    for i in range(indices_or_sections - 1):
        at += size + (1 if i < extra else 0)
        points.append(at)
    return _cut(x, points, axis)


def vsplit(x, indices_or_sections):
    return split(x, indices_or_sections, 0)


def hsplit(x, indices_or_sections):
    x = convert_to_tensor(x)
    return split(x, indices_or_sections, 0 if len(x.shape) == 1 else 1)


def dsplit(x, indices_or_sections):
    return split(x, indices_or_sections, 2)


def tile(x, repeats):
    x = convert_to_tensor(x)
    repeats = [repeats] if isinstance(repeats, int) else [int(r) for r in _host_list(repeats)]
    rank = max(len(x.shape), len(repeats))
    repeats = [1] * (rank - len(repeats)) + repeats
    shape = [1] * (rank - len(x.shape)) + list(x.shape)
    pairs = [d for n in shape for d in (1, n)]
    wide = [d for r, n in zip(repeats, shape) for d in (r, n)]
    return reshape(broadcast_to(reshape(x, pairs), wide), [r * n for r, n in zip(repeats, shape)])


def repeat(x, repeats, axis=None):
    x = convert_to_tensor(x)
    if axis is None:
        x, axis = ravel(x), 0
    axis = canonicalize_axis(axis, len(x.shape))
    counts = [repeats] if isinstance(repeats, int) else [int(r) for r in _host_list(repeats)]
    if len(counts) == 1:
        shape = list(x.shape)
        wide = shape[: axis + 1] + [counts[0]] + shape[axis + 1 :]
        x = broadcast_to(expand_dims(x, axis + 1), wide)
        shape[axis] *= counts[0]
        return reshape(x, shape)
    rows = [i for i, n in enumerate(counts) for _ in range(n)]
    return _ops.gather(x, convert_to_tensor(rows, "int32"), axis=axis)


def roll(x, shift, axis=None):
    x = convert_to_tensor(x)
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), x.shape)
    axes = [axis] if isinstance(axis, int) else list(axis)
    shifts = [shift] * len(axes) if isinstance(shift, int) else list(shift)
    for a, s in zip(axes, shifts):
        a = canonicalize_axis(a, len(x.shape))
        length = x.shape[a]
        s = s % length if length else 0
        if s:
            back = slice_axis(x, a, length - s, length)
            x = _ops.concat(back, slice_axis(x, a, 0, length - s), axis=a)
    return x


def pad(x, pad_width, mode="constant", constant_values=None):
    x = convert_to_tensor(x)
    if constant_values is not None and mode != "constant":
        raise argument_error(
            "Argument `constant_values` can only be provided when `mode == 'constant'`. "
            f"Received: mode={mode}"
        )
    widths = _pad_widths(pad_width, len(x.shape))
    if mode == "constant":
        low, high = [list(side) for side in zip(*widths)] if widths else ([], [])
        value = 0 if constant_values is None else constant_values
        if isinstance(value, (int, float)):
            return _ops.pad(x, low=low, high=high, interior=[0] * len(low), value=value)
        inside = _core.tensor(True, "bool")
        inside = _ops.broadcast_to(inside, shape=tuple(x.shape))
        inside = _ops.pad(inside, low=low, high=high, interior=[0] * len(low), value=0)
        x = _ops.pad(x, low=low, high=high, interior=[0] * len(low), value=0)
        return _ops.select(inside, x, convert_to_tensor(value, x.dtype))
    for axis, (low, high) in enumerate(widths):
        if low or high:
            rows = _padded_rows(x.shape[axis], low, high, mode)
            x = _ops.gather(x, convert_to_tensor(rows, "int32"), axis=axis)
    return x


def _pad_widths(pad_width, rank):
    if isinstance(pad_width, int):
        return [(pad_width, pad_width)] * rank
    pad_width = list(_host_list(pad_width))
    if pad_width and isinstance(pad_width[0], int):
        low, high = pad_width if len(pad_width) == 2 else pad_width * 2
        return [(low, high)] * rank
    pairs = [tuple(int(i) for i in (p if len(p) == 2 else list(p) * 2)) for p in pad_width]
    return pairs * rank if len(pairs) == 1 else pairs


def _padded_rows(length, low, high, mode):
    """Which row each row of a padded axis repeats."""
    out = []
    for i in range(-low, length + high):
        if mode == "edge":
            i = min(max(i, 0), length - 1)
        elif mode == "wrap":
            i %= length
        elif mode == "symmetric":
            i %= 2 * length
            i = 2 * length - 1 - i if i >= length else i
        elif mode == "reflect":
            period = max(2 * length - 2, 1)
            i %= period
            i = period - i if i >= length else i
        else:
            raise argument_error(
                f"Invalid padding mode: {mode!r}. "
                "Expected: 'constant', 'edge', 'reflect', 'symmetric' or 'wrap'."
            )
        out.append(i)
    return out


def meshgrid(*x, indexing="xy"):
    if indexing not in ("xy", "ij"):
        raise argument_error(f"`indexing` must be 'xy' or 'ij'. Received: indexing={indexing!r}")
    vectors = [ravel(v) for v in x]
    swap = indexing == "xy" and len(vectors) > 1
    order = list(range(len(vectors)))
    if swap:
        order[0], order[1] = 1, 0
    shape = [0] * len(vectors)
    for i, v in enumerate(vectors):
        shape[order[i]] = v.shape[0]
    out = []
    for i, v in enumerate(vectors):
        ones = [1] * len(vectors)
        ones[order[i]] = -1
        out.append(broadcast_to(reshape(v, ones), shape))
    return out
