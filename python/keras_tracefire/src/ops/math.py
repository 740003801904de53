# SPDX-License-Identifier: Apache-2.0
"""What `keras.backend.math` holds."""

import math

from keras_tracefire.src import missing
from keras_tracefire.src._messages import argument_error
from keras_tracefire.src.ops import _elementwise as ew
from keras_tracefire.src.ops import _reduce
from keras_tracefire.src.ops._index import histogram  # noqa: F401
from keras_tracefire.src.ops._shape import expand_dims
from keras_tracefire.src.ops._shape import reshape
from keras_tracefire.src.ops._tensor import convert_to_tensor
from keras_tracefire.src.ops._tensor import indices_of
from tracefire import _core
from tracefire import _ops

__getattr__ = missing.attribute_of(__name__)


def rsqrt(x):
    return _ops.rsqrt(ew.floating(x))


def erf(x):
    return _ops.erf(ew.floating(x))


def erfc(x):
    return _ops.erfc(ew.floating(x))


def erfinv(x):
    return _ops.erf_inv(ew.floating(x))


def logsumexp(x, axis=None, keepdims=False):
    x = ew.floating(x)
    axes = _reduce.normalize_axes(axis, len(x.shape))
    largest = _core.stop_gradient(_ops.reduce_max(x, axes=axes, keepdims=True))
    largest = _ops.select(_ops.is_finite(largest), largest, ew.constant_like(0, x))
    total = _ops.reduce_sum(_ops.exp(_ops.sub(x, largest)), axes=axes, keepdims=bool(keepdims))
    return _ops.add(_ops.log(total), reshape(largest, total.shape))


def top_k(x, k, sorted=True):
    del sorted  # a sorted answer is right for both
    return _ops.top_k(convert_to_tensor(x), k=k)


def in_top_k(targets, predictions, k):
    targets, predictions = indices_of(targets), ew.floating(predictions)
    last = len(predictions.shape) - 1
    own = _ops.gather_along(predictions, expand_dims(targets, -1), axis=last)
    # NaN is not a large probability.
    own = _ops.select(_ops.is_nan(own), ew.constant_like(-math.inf, own), own)
    better = _reduce.sum(_ops.greater(predictions, own), axis=-1)
    return _ops.less(better, _core.tensor(k, "int32"))


def _segment(reduction, empty):
    def run(data, segment_ids, num_segments=None, sorted=False):
        del sorted
        data, ids = convert_to_tensor(data), indices_of(segment_ids)
        if num_segments is None:
            raise argument_error(
                "Argument `num_segments` must be set when using the tracefire backend. "
                "Received: num_segments=None"
            )
        shape = (int(num_segments),) + tuple(data.shape[1:])
        start = _ops.broadcast_to(ew.constant_like(empty(data.dtype), data), shape=shape)
        # Ids outside the range are dropped: they go to a row that is cut off again.
        outside = _ops.logical_or(
            _ops.less(ids, ew.constant_like(0, ids)),
            _ops.greater_equal(ids, ew.constant_like(shape[0], ids)),
        )
        ids = _ops.select(outside, ew.constant_like(shape[0], ids), ids)
        rest = [0] * (len(shape) - 1)
        start = _ops.pad(start, low=[0] + rest, high=[1] + rest, interior=[0] + rest, value=0)
        out = _ops.scatter(start, reshape(ids, (-1, 1)), data, reduction=reduction)
        strides = [1] * len(shape)
        return _ops.slice(out, starts=[0] + rest, limits=list(shape), strides=strides)

    return run


def _lowest(dtype):
    if dtype.startswith("uint") or dtype == "bool":
        return 0
    return -(2 ** (int(dtype[3:]) - 1)) if dtype.startswith("int") else -math.inf


def _highest(dtype):
    if dtype.startswith("uint"):
        return 2 ** int(dtype[4:]) - 1
    return 2 ** (int(dtype[3:]) - 1) - 1 if dtype.startswith("int") else math.inf


segment_sum = _segment("add", lambda dtype: 0)
segment_prod = _segment("mul", lambda dtype: 1)
segment_max = _segment("max", _lowest)
segment_min = _segment("min", _highest)


def cdist(x, y):
    x, y = ew.floating(x), ew.floating(y)
    if len(x.shape) < 2 or len(y.shape) < 2:
        raise argument_error("`cdist` inputs must have rank >= 2")
    if x.shape[-1] != y.shape[-1]:
        raise argument_error("Last dimension of inputs to `cdist` must match")
    gaps = ew.subtract(expand_dims(x, -2), expand_dims(y, -3))
    return ew.sqrt(_reduce.sum(ew.square(gaps), axis=-1))


def extract_sequences(x, sequence_length, sequence_stride):
    x = convert_to_tensor(x)
    count = (x.shape[-1] - sequence_length) // sequence_stride + 1
    shape = (count, sequence_length)
    start = _ops.iota(shape=shape, axis=0, dtype="int32")
    start = _ops.mul(start, _core.tensor(sequence_stride, "int32"))
    at = _ops.add(start, _ops.iota(shape=shape, axis=1, dtype="int32"))
    return _ops.gather(x, at, axis=len(x.shape) - 1)
