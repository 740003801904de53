# SPDX-License-Identifier: Apache-2.0
"""Sums, extremes, statistics: functions that take axes away, or run along one."""

import math

from keras.src.backend.common.backend_utils import canonicalize_axis
from keras_tracefire.src._messages import argument_error
from keras_tracefire.src.ops import _elementwise as ew
from keras_tracefire.src.ops._shape import moveaxis
from keras_tracefire.src.ops._shape import reshape
from keras_tracefire.src.ops._tensor import Tensor
from keras_tracefire.src.ops._tensor import cast
from keras_tracefire.src.ops._tensor import computes_now
from keras_tracefire.src.ops._tensor import convert_to_tensor
from keras_tracefire.src.ops._tensor import indices_of
from keras_tracefire.src.ops._tensor import is_float
from keras_tracefire.src.ops._tensor import result_type
from tracefire import _core
from tracefire import _ops
from tracefire import errors



def normalize_axes(axis, ndim):
    """`axis` (None, an integer or several) as a sorted list of non-negative integers."""
    if axis is None:
        return list(range(ndim))
    given = axis if isinstance(axis, (list, tuple)) else (axis,)
    axes = sorted(canonicalize_axis(int(a), ndim) for a in given)
    if len(set(axes)) != len(axes):
        raise errors.raised_here(
            "BadAttribute",
            f"axis={axis!r} names one of {ndim} axes twice",
            "different axes",
            "Leave it out",
        )
    return axes


def _reduce(row, x, axis, keepdims):
    axes = normalize_axes(axis, len(x.shape))
    return getattr(_ops, row)(x, axes=axes, keepdims=bool(keepdims))


def _summable(x):
    """Small integers are summed in 32 bits."""
    if x.dtype in ("bool", "int8", "int16"):
        return cast(x, "int32")
    return cast(x, "uint32") if x.dtype in ("uint8", "uint16") else x


def sum(x, axis=None, keepdims=False):
    return _reduce("reduce_sum", _summable(convert_to_tensor(x)), axis, keepdims)


def prod(x, axis=None, keepdims=False, dtype=None):
    if dtype is None and axis is None and isinstance(x, (tuple, list)):
        # The number of elements of a shape: known without the engine.
        if x and all_integers(x):
            return convert_to_tensor(math.prod(x))
    x = convert_to_tensor(x)
    x = _summable(x) if dtype is None else cast(x, dtype)
    return _reduce("reduce_prod", x, axis, keepdims)


def all_integers(items):
    return not [i for i in items if not isinstance(i, int)]


def mean(x, axis=None, keepdims=False):
    x = convert_to_tensor(x)
    compute = result_type(x.dtype, "float32")
    result = x.dtype if is_float(x.dtype) else compute
    return cast(_reduce("reduce_mean", cast(x, compute), axis, keepdims), result)


def var(x, axis=None, keepdims=False):
    x = convert_to_tensor(x)
    result = result_type(x.dtype, float)
    x = cast(x, result_type(x.dtype, "float32"))
    centered = _ops.sub(x, _reduce("reduce_mean", x, axis, True))
    return cast(_reduce("reduce_mean", _ops.square(centered), axis, keepdims), result)


def std(x, axis=None, keepdims=False):
    return ew.sqrt(var(x, axis, keepdims))


def _extreme(row, on_bool, choose):
    def run(x, axis=None, keepdims=False, initial=None):
        x = convert_to_tensor(x)
        axes = normalize_axes(axis, len(x.shape))
        if initial is None and 0 in [x.shape[i] for i in axes]:
            raise errors.raised_here(
                "ShapeMismatch",
                f"`{row[7:]}` was called along empty axes of a tensor of shape {tuple(x.shape)}",
                "at least one element along each of them, or initial=",
                "Check the shape, or pass the value that an empty axis should give",
            )
        if initial is not None and 0 in x.shape:
            kept = [1 if i in axes else n for i, n in enumerate(x.shape)]
            shape = kept if keepdims else [n for i, n in enumerate(x.shape) if i not in axes]
            return _ops.broadcast_to(convert_to_tensor(initial, x.dtype), shape=tuple(shape))
        out = _reduce(on_bool if x.dtype == "bool" else row, x, axis, keepdims)
        return out if initial is None else choose(out, convert_to_tensor(initial, out.dtype))

    return run


max = _extreme("reduce_max", "reduce_any", ew.maximum)
min = _extreme("reduce_min", "reduce_all", ew.minimum)


def amax(x, axis=None, keepdims=False):
    return max(x, axis, keepdims)


def amin(x, axis=None, keepdims=False):
    return min(x, axis, keepdims)


def ptp(x, axis=None, keepdims=False):
    return ew.subtract(max(x, axis, keepdims), min(x, axis, keepdims))


def any(x, axis=None, keepdims=False):
    return _reduce("reduce_any", cast(x, "bool"), axis, keepdims)


def all(x, axis=None, keepdims=False):
    return _reduce("reduce_all", cast(x, "bool"), axis, keepdims)


def allclose(x1, x2, rtol=1e-5, atol=1e-8, equal_nan=False):
    return all(ew.isclose(x1, x2, rtol, atol, equal_nan))


def count_nonzero(x, axis=None):
    return sum(cast(cast(x, "bool"), "int32"), axis)


def _arg_extreme(row):
    def run(x, axis=None, keepdims=False):
        x = convert_to_tensor(x)
        if x.dtype == "bool":
            x = cast(x, "int32")
        ndim = len(x.shape)
        if axis is None:
            flat = getattr(_ops, row)(reshape(x, (-1,)), axis=0, keepdims=False)
            return reshape(flat, (1,) * ndim) if keepdims else flat
        return getattr(_ops, row)(x, axis=canonicalize_axis(axis, ndim), keepdims=keepdims)

    return run


argmax = _arg_extreme("argmax")
argmin = _arg_extreme("argmin")


def average(x, axis=None, weights=None):
    x = convert_to_tensor(x)
    weights = None if weights is None else convert_to_tensor(weights)
    dtype = result_type(*[v.dtype for v in (x, weights) if v is not None], float)
    x = cast(x, dtype)
    if weights is None:
        return mean(x, axis)
    weights = cast(weights, dtype)
    if x.shape != weights.shape:
        if axis is None or len(weights.shape) != 1:
            raise argument_error(
                "`weights` must have the shape of `x`, or be of rank 1 with `axis` given. "
                f"Received: x.shape={x.shape}, weights.shape={weights.shape}, axis={axis}"
            )
        shape = [1] * len(x.shape)
        shape[canonicalize_axis(axis, len(x.shape))] = -1
        weights = _ops.broadcast_to(reshape(weights, shape), shape=tuple(x.shape))
    return _ops.div(sum(_ops.mul(x, weights), axis), sum(weights, axis))


def _cumulative(row):
    def run(x, axis=None, dtype=None):
        x = convert_to_tensor(x)
        if dtype is not None:
            x = cast(x, dtype)
        elif x.dtype == "bool":
            x = cast(x, "int32")
        if axis is None:
            x, axis = reshape(x, (-1,)), 0
        axis = canonicalize_axis(axis, len(x.shape))
        return getattr(_ops, row)(x, axis=axis, exclusive=False, reverse=False)

    return run


cumsum = _cumulative("cumsum")
cumprod = _cumulative("cumprod")


def _flatten_axes(x, axis):
    """`x` with the reduced axes flattened into a last one, and the shape with them as ones."""
    axes = normalize_axes(axis, len(x.shape))
    kept = [1 if i in axes else n for i, n in enumerate(x.shape)]
    rest = [n for i, n in enumerate(x.shape) if i not in axes]
    x = moveaxis(x, axes, list(range(len(rest), len(x.shape))))
    return reshape(x, rest + [-1] if axes else rest + [1]), kept


_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def quantile(x, q, axis=None, method="linear", keepdims=False):
    return _quantile(x, q, axis, method, keepdims, ignore_nan=False)


def nanquantile(x, q, axis=None, method="linear", keepdims=False):
    return _quantile(x, q, axis, method, keepdims, ignore_nan=True)


def percentile(x, q, axis=None, method="linear", keepdims=False):
    return quantile(x, ew.divide(q, 100.0), axis, method, keepdims)


def nanpercentile(x, q, axis=None, method="linear", keepdims=False):
    return nanquantile(x, ew.divide(q, 100.0), axis, method, keepdims)


def median(x, axis=None, keepdims=False):
    return quantile(x, 0.5, axis, "midpoint", keepdims)


def nanmedian(x, axis=None, keepdims=False):
    return nanquantile(x, 0.5, axis, "midpoint", keepdims)


def _quantile(x, q, axis, method, keepdims, ignore_nan):
    if method not in _METHODS:
        raise errors.raised_here(
            "BadAttribute",
            f"a quantile was asked for with method={method!r}",
            f"one of {', '.join(_METHODS)}",
            "Leave it out for 'linear'",
        )
    _check_fractions(q)
    x = ew.floating(x)
    dtype, x = x.dtype, cast(x, result_type(x.dtype, "float32"))
    q = cast(q, x.dtype)
    flat, kept = _flatten_axes(x, axis)
    if flat.shape[-1] == 0:
        rest = kept if keepdims else list(flat.shape[:-1])
        nan = convert_to_tensor(math.nan, dtype)
        return _ops.broadcast_to(nan, shape=(*q.shape, *rest))
    ordered = _ops.sort(flat, axis=len(flat.shape) - 1)  # NaN comes last
    nan = _ops.is_nan(flat)
    if ignore_nan:
        count = _ops.reduce_sum(
            cast(_ops.logical_not(nan), x.dtype), axes=[len(flat.shape) - 1], keepdims=True
        )
    else:
        count = ew.constant_like(flat.shape[-1], x)
    last = _ops.maximum(_ops.sub(count, ew.constant_like(1, x)), ew.constant_like(0, x))
    position = _ops.mul(reshape(q, (-1,)), last)
    shape = tuple(flat.shape[:-1]) + (position.shape[-1],)
    position = _ops.broadcast_to(position, shape=shape)

    def at(index):
        return _ops.gather_along(ordered, cast(index, "int32"), axis=len(shape) - 1)

    low, high = _ops.floor(position), _ops.ceil(position)
    if method == "lower":
        out = at(low)
    elif method == "higher":
        out = at(high)
    elif method == "nearest":
        out = at(_ops.round(position))
    else:
        weight = _ops.sub(position, low)
        if method == "midpoint":
            half = ew.constant_like(0.5, x)
            weight = _ops.select(_ops.equal(low, high), ew.constant_like(0, x), half)
        a, b = at(low), at(high)
        out = _ops.add(a, _ops.mul(_ops.sub(b, a), weight))
        out = _ops.select(_ops.equal(a, b), a, out)  # infinities
    if ignore_nan:
        is_empty = _ops.equal(count, ew.constant_like(0, x))
        out = _ops.select(is_empty, ew.constant_like(math.nan, x), out)
    else:
        spoiled = _ops.reduce_any(nan, axes=[len(flat.shape) - 1], keepdims=True)
        out = _ops.select(spoiled, ew.constant_like(math.nan, x), out)
    out = moveaxis(cast(out, dtype), -1, 0)
    rest = kept if keepdims else list(flat.shape[:-1])
    return reshape(out, list(q.shape) + rest)


def _check_fractions(q):
    """Fractions that are known now lie between 0 and 1."""
    if isinstance(q, Tensor) and not computes_now():
        return
    values = q.numpy().ravel() if isinstance(q, Tensor) else _numbers_in(q)
    wrong = [float(v) for v in values if not 0 <= v <= 1]
    if wrong:
        raise errors.raised_here(
            "BadAttribute",
            f"a quantile was asked for at the fraction {wrong[0]:g}",
            "fractions from 0 to 1, or percentages from 0 to 100",
            "Divide percentages by 100 for quantile",
        )


def _numbers_in(q):
    import numpy as np

    return np.ravel(np.asarray(q))


def _without_nan(x, replacement):
    x = convert_to_tensor(x)
    if not is_float(x.dtype):
        return x, None
    nan = _ops.is_nan(x)
    return _ops.select(nan, ew.constant_like(replacement, x), x), nan


def nansum(x, axis=None, keepdims=False):
    return sum(_without_nan(x, 0)[0], axis, keepdims)


def nanprod(x, axis=None, keepdims=False):
    return prod(_without_nan(x, 1)[0], axis, keepdims)


def nancumsum(x, axis=None, dtype=None):
    return cumsum(_without_nan(x, 0)[0], axis, dtype)


def nancumprod(x, axis=None, dtype=None):
    return cumprod(_without_nan(x, 1)[0], axis, dtype)


def _nan_extreme(reduce, worst):
    def run(x, axis=None, keepdims=False):
        clean, nan = _without_nan(x, worst)
        out = reduce(clean, axis, keepdims)
        if nan is None:
            return out
        return ew.where(all(nan, axis, keepdims), ew.constant_like(math.nan, out), out)

    return run


nanmax = _nan_extreme(max, -math.inf)
nanmin = _nan_extreme(min, math.inf)


def _nan_arg_extreme(find, worst):
    def run(x, axis=None, keepdims=False):
        clean, nan = _without_nan(x, worst)
        out = find(clean, axis, keepdims)
        return out if nan is None else ew.where(all(nan, axis, keepdims), -1, out)

    return run


nanargmax = _nan_arg_extreme(argmax, -math.inf)
nanargmin = _nan_arg_extreme(argmin, math.inf)


def nanmean(x, axis=None, keepdims=False):
    clean, nan = _without_nan(x, 0)
    if nan is None:
        return mean(clean, axis, keepdims)
    wide = cast(clean, result_type(clean.dtype, "float32"))
    count = sum(cast(_ops.logical_not(nan), wide.dtype), axis, keepdims)
    return cast(_ops.div(sum(wide, axis, keepdims), count), clean.dtype)


def nanvar(x, axis=None, keepdims=False):
    clean, nan = _without_nan(x, 0)
    if nan is None:
        return var(clean, axis, keepdims)
    wide = cast(clean, result_type(clean.dtype, "float32"))
    valid = cast(_ops.logical_not(nan), wide.dtype)
    count = sum(valid, axis, True)
    centered = _ops.mul(_ops.sub(wide, _ops.div(sum(wide, axis, True), count)), valid)
    total = sum(_ops.square(centered), axis, keepdims)
    return cast(_ops.div(total, sum(valid, axis, keepdims)), clean.dtype)


def nanstd(x, axis=None, keepdims=False):
    return ew.sqrt(nanvar(x, axis, keepdims))


def trapezoid(y, x=None, dx=1.0, axis=-1):
    from keras_tracefire.src.ops._index import diff

    y = ew.floating(y)
    axis = canonicalize_axis(axis, len(y.shape))
    y = moveaxis(y, axis, -1)
    pairs = ew.add(y[..., 1:], y[..., :-1])
    if x is None:
        widths = convert_to_tensor(dx, y.dtype)
    else:
        x = cast(x, y.dtype)
        widths = diff(x) if len(x.shape) == 1 else diff(moveaxis(x, axis, -1))
    return sum(ew.multiply(ew.multiply(pairs, widths), 0.5), axis=-1)


def corrcoef(x):
    x = ew.floating(x)
    if len(x.shape) > 2:
        raise argument_error(f"`corrcoef` needs a tensor of rank 1 or 2. Received: shape {x.shape}")
    rows = reshape(x, (1, -1)) if len(x.shape) == 1 else x
    centered = _ops.sub(rows, _ops.reduce_mean(rows, axes=[1], keepdims=True))
    products = _ops.matmul(centered, centered, transpose_b=True)
    scale = _ops.sqrt(_ops.reduce_sum(_ops.square(centered), axes=[1], keepdims=True))
    out = _ops.div(products, _ops.matmul(scale, scale, transpose_b=True))
    out = ew.clip(out, -1.0, 1.0)
    return reshape(out, ()) if len(x.shape) < 2 else out


def bincount(x, weights=None, minlength=0, sparse=False):
    if sparse:
        raise argument_error("`sparse=True` is not supported with the tracefire backend")
    x = convert_to_tensor(x)
    if is_float(x.dtype):
        raise errors.raised_here(
            "DTypeMismatch",
            f"`bincount` was called with elements of {x.dtype}",
            "integers that are not negative",
            "Round and cast them first",
        )
    x, length = indices_of(x), int(minlength)
    if computes_now():
        least, largest = (int(min(x)), int(max(x)) + 1) if 0 not in x.shape else (0, 0)
        if least < 0:
            raise errors.raised_here(
                "BadAttribute",
                f"`bincount` was called with {least} among its elements",
                "integers that are not negative",
                "Shift them so that the smallest is 0",
            )
        length = length if length >= largest else largest
    elif length == 0:
        raise errors.raised_here(
            "SizeNeeded",
            "`bincount` was called without `minlength` in a function that is being traced",
            "a length that does not depend on data",
            "Pass minlength, the number of bins",
        )
    dtype = "int32" if weights is None else convert_to_tensor(weights).dtype
    hits = _ops.one_hot(x, depth=length, axis=-1, dtype=dtype)
    if weights is not None:
        weights = convert_to_tensor(weights)
        hits = _ops.mul(hits, reshape(weights, tuple(weights.shape) + (1,)))
    return _ops.reduce_sum(hits, axes=[len(x.shape) - 1], keepdims=False)
