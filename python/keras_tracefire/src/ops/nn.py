# SPDX-License-Identifier: Apache-2.0
"""Everything that `keras.backend.nn` holds: activations, losses, normalization, attention."""

import functools
import inspect
import math

from keras.src import backend
from keras.src.backend.common import standardize_dtype
from keras_tracefire.src import missing
from keras_tracefire.src._messages import argument_error
from keras_tracefire.src.ops import _elementwise as ew
from keras_tracefire.src.ops import _reduce
from keras_tracefire.src.ops._create import tri
from keras_tracefire.src.ops._shape import repeat
from keras_tracefire.src.ops._shape import reshape
from keras_tracefire.src.ops._shape import split
from keras_tracefire.src.ops._shape import squeeze
from keras_tracefire.src.ops._shape import transpose
from keras_tracefire.src.ops._tensor import cast
from keras_tracefire.src.ops._tensor import convert_to_tensor
from keras_tracefire.src.ops._tensor import indices_of
from keras_tracefire.src.ops._tensor import is_float
from keras_tracefire.src.ops._tensor import result_type
from tracefire import _core
from tracefire import _ops

_const = ew.constant_like


def _wide(activation):
    """Computes an activation of a narrow type in float32, with its constants, and rounds once."""
    computed = _ops.computed_wide(activation)

    @functools.wraps(activation)
    def run(x, *args, **kwargs):
        if args:  # options in order
            names = list(inspect.signature(activation).parameters)[1:]
            kwargs.update(zip(names, args))
        return computed(ew.floating(x), **kwargs)

    return run


__getattr__ = missing.attribute_of(__name__)


def relu(x):
    x = convert_to_tensor(x)
    return _ops.relu(x) if is_float(x.dtype) else ew.maximum(x, 0)


def relu6(x):
    return ew.minimum(relu(x), 6)


def sigmoid(x):
    return _ops.sigmoid(ew.floating(x))


def sparse_sigmoid(x):
    return ew.multiply(ew.add(ew.clip(ew.floating(x), -1.0, 1.0), 1.0), 0.5)


def tanh(x):
    return _ops.tanh(ew.floating(x))


@_wide
def tanh_shrink(x):
    x = ew.floating(x)
    return _ops.sub(x, _ops.tanh(x))


def softplus(x):
    return _ops.softplus(ew.floating(x))


@_wide
def softsign(x):
    x = ew.floating(x)
    return _ops.div(x, _ops.add(_ops.abs(x), _const(1, x)))


def soft_shrink(x, threshold=0.5):
    x = ew.floating(x)
    low = ew.where(ew.less(x, -threshold), ew.add(x, threshold), 0.0)
    return ew.where(ew.greater(x, threshold), ew.subtract(x, threshold), low)


def hard_shrink(x, threshold=0.5):
    x = convert_to_tensor(x)
    return ew.where(ew.greater(ew.absolute(x), threshold), x, 0.0)


def threshold(x, threshold, default_value):
    x = convert_to_tensor(x)
    return ew.where(ew.greater(x, threshold), x, default_value)


@_wide
def sparse_plus(x):
    x = ew.floating(x)
    bend = ew.multiply(ew.square(ew.add(x, 1.0)), 0.25)
    return ew.where(ew.less_equal(x, -1.0), 0.0, ew.where(ew.greater_equal(x, 1.0), x, bend))


@_wide
def squareplus(x, b=4):
    x = ew.floating(x)
    return ew.multiply(_ops.add(x, ew.sqrt(ew.add(_ops.square(x), b))), 0.5)


@_wide
def silu(x):
    x = ew.floating(x)
    return _ops.mul(x, _ops.sigmoid(x))


def log_sigmoid(x):
    return _ops.neg(_ops.softplus(_ops.neg(ew.floating(x))))


def leaky_relu(x, negative_slope=0.2):
    x = ew.floating(x)
    return ew.where(ew.greater_equal(x, 0.0), x, ew.multiply(x, negative_slope))


@_wide
def hard_sigmoid(x):
    return ew.divide(relu6(ew.add(ew.floating(x), 3.0)), 6.0)


@_wide
def hard_silu(x):
    x = ew.floating(x)
    return _ops.mul(x, hard_sigmoid(x))


def hard_tanh(x):
    return ew.clip(x, -1, 1)


def _below_zero(x, curve):
    """x above zero, `curve` of x below; `curve` never sees a positive number."""
    positive = _ops.greater(x, _const(0, x))
    return _ops.select(positive, x, curve(_ops.select(positive, _const(0, x), x)))


@_wide
def elu(x, alpha=1.0):
    x = ew.floating(x)
    return _below_zero(x, lambda v: ew.multiply(_ops.expm1(v), alpha))


@_wide
def selu(x):
    # Self-normalizing neural networks (G. Klambauer et al., 2017).
    alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
    return ew.multiply(elu(x, alpha), scale)


@_wide
def celu(x, alpha=1.0):
    x = ew.floating(x)
    return _below_zero(x, lambda v: ew.multiply(_ops.expm1(ew.divide(v, alpha)), alpha))


@_wide
def gelu(x, approximate=True):
    x = ew.floating(x)
    if approximate:
        cube = _ops.mul(x, _ops.square(x))
        inside = ew.multiply(ew.add(x, ew.multiply(cube, 0.044715)), math.sqrt(2 / math.pi))
        cdf = ew.multiply(ew.add(_ops.tanh(inside), 1.0), 0.5)
    else:
        cdf = ew.multiply(ew.add(_ops.erf(ew.multiply(x, math.sqrt(0.5))), 1.0), 0.5)
    return _ops.mul(x, cdf)


def glu(x, axis=-1):
    x = ew.floating(x)
    if x.shape[axis] % 2:
        raise argument_error(
            f"axis size must be divisible by 2. Received: shape={x.shape}, axis={axis}"
        )
    a, b = split(x, 2, axis)
    return _ops.mul(a, _ops.sigmoid(b))


def _last_axis(x, axis):
    return axis if axis >= 0 else axis + len(x.shape)


def _along(row):
    def run(x, axis=-1):
        x = ew.floating(x)
        if axis is None:  # over all elements
            return reshape(row(reshape(x, (-1,)), axis=0), x.shape)
        return row(x, axis=_last_axis(x, axis))

    return run


softmax = _along(_ops.softmax)
log_softmax = _along(_ops.log_softmax)


def sparsemax(x, axis=-1):
    # From softmax to sparsemax (A. Martins, R. Astudillo, 2016).
    x = ew.floating(x)
    axis = _last_axis(x, axis)
    down = _ops.sort(x, axis=axis, descending=True)
    total = _ops.cumsum(down, axis=axis, exclusive=False, reverse=False)
    rank = _ops.iota(shape=tuple(x.shape), axis=axis, dtype=x.dtype)
    rank = ew.add(rank, 1.0)
    support = ew.greater(ew.subtract(down, ew.divide(ew.subtract(total, 1.0), rank)), 0.0)
    count = _reduce.sum(cast(support, x.dtype), axis, keepdims=True)
    mass = _reduce.sum(ew.where(support, down, 0.0), axis, keepdims=True)
    return ew.maximum(ew.subtract(x, ew.divide(ew.subtract(mass, 1.0), count)), 0.0)


def one_hot(x, num_classes, axis=-1, dtype=None, sparse=False):
    if sparse:
        raise argument_error("`sparse=True` is not supported with the tracefire backend")
    x = indices_of(x)
    axis = axis if axis >= 0 else axis + len(x.shape) + 1
    dtype = standardize_dtype(dtype or backend.floatx())
    return _ops.one_hot(x, depth=num_classes, axis=axis, dtype=dtype)


def multi_hot(x, num_classes, axis=-1, dtype=None, sparse=False):
    x = convert_to_tensor(x)
    reduction_axis = 1 if len(x.shape) > 1 else 0
    hot = one_hot(x, num_classes, axis=axis, dtype=dtype, sparse=sparse)
    return _reduce.max(hot, axis=reduction_axis)


def _check_loss_operands(target, output, output_rank_only=False):
    if len(output.shape) < 1 or (not output_rank_only and len(target.shape) < 1):
        raise argument_error(
            "Arguments `target` and `output` must be at least rank 1. "
            f"Received: target.shape={target.shape}, output.shape={output.shape}"
        )
    expected = output.shape[:-1] if output_rank_only else output.shape
    if tuple(target.shape) != tuple(expected):
        same = "the same shape"
        same += " up until the last dimension" if output_rank_only else ""
        raise argument_error(
            f"Arguments `target` and `output` must have {same}. "
            f"Received: target.shape={target.shape}, output.shape={output.shape}"
        )


def _log_probabilities(output, axis):
    """Logarithm of probabilities, which are scaled to sum to 1 and kept away from 0."""
    output = ew.divide(output, _reduce.sum(output, axis, keepdims=True))
    return ew.log(ew.clip(output, backend.epsilon(), 1.0 - backend.epsilon()))


def categorical_crossentropy(target, output, from_logits=False, axis=-1):
    target, output = convert_to_tensor(target), convert_to_tensor(output)
    _check_loss_operands(target, output)
    log_prob = log_softmax(output, axis) if from_logits else _log_probabilities(output, axis)
    return ew.negative(_reduce.sum(ew.multiply(target, log_prob), axis=axis))


def sparse_categorical_crossentropy(target, output, from_logits=False, axis=-1):
    target, output = convert_to_tensor(target), ew.floating(output)
    if is_float(target.dtype):
        target = _ops.check_finite(target)  # NaN would become a label of 0
    target = indices_of(target)
    if len(target.shape) == len(output.shape) and target.shape[-1] == 1:
        target = squeeze(target, axis=-1)
    _check_loss_operands(target, output, output_rank_only=True)
    axis = _last_axis(output, axis)
    if from_logits and axis == len(output.shape) - 1:
        return _ops.softmax_cross_entropy(output, target)
    classes = output.shape[axis]
    # A label without a class would count as a loss of zero.
    target = _ops.check_range(target, limit=(classes,), message="label")
    log_prob = log_softmax(output, axis) if from_logits else _log_probabilities(output, axis)
    hot = _ops.one_hot(target, depth=classes, axis=axis, dtype=output.dtype)
    return _ops.neg(_ops.reduce_sum(_ops.mul(hot, log_prob), axes=[axis], keepdims=False))


def binary_crossentropy(target, output, from_logits=False):
    target, output = convert_to_tensor(target), ew.floating(output)
    if tuple(target.shape) != tuple(output.shape):
        raise argument_error(
            "Arguments `target` and `output` must have the same shape. "
            f"Received: target.shape={target.shape}, output.shape={output.shape}"
        )
    target = cast(target, output.dtype)
    other = _ops.sub(_const(1, target), target)
    if from_logits:
        log_p, log_q = log_sigmoid(output), log_sigmoid(_ops.neg(output))
    else:
        output = ew.clip(output, backend.epsilon(), 1.0 - backend.epsilon())
        log_p, log_q = _ops.log(output), _ops.log(_ops.sub(_const(1, output), output))
    return _ops.neg(_ops.add(_ops.mul(target, log_p), _ops.mul(other, log_q)))


def moments(x, axes, keepdims=False, synchronized=False):
    if synchronized:
        raise missing.unsupported(
            "`moments` was called with synchronized=True",
            "statistics of one device",
            "Set synchronized=False",
        )
    x = convert_to_tensor(x)
    dtype = x.dtype
    # The range of 16-bit floats is too small for sums of squares.
    wide = cast(x, "float32") if dtype in ("float16", "bfloat16") else x
    mean = _reduce.mean(wide, axes, keepdims)
    variance = _reduce.var(wide, axes, keepdims)
    if wide is not x:
        mean = cast(ew.clip(mean, -65504.0, 65504.0), dtype)
        variance = cast(ew.clip(variance, -65504.0, 65504.0), dtype)
    return mean, variance


def batch_normalization(x, mean, variance, axis, offset=None, scale=None, epsilon=1e-3):
    x = convert_to_tensor(x)
    shape = [1] * len(x.shape)
    shape[axis] = mean.shape[0]
    inv = _ops.rsqrt(ew.add(reshape(variance, shape), epsilon))
    if scale is not None:
        inv = ew.multiply(inv, reshape(scale, shape))
    shift = ew.multiply(ew.negative(reshape(mean, shape)), inv)
    if offset is not None:
        shift = ew.add(shift, reshape(offset, shape))
    return ew.add(ew.multiply(x, inv), shift)


def psnr(x1, x2, max_val):
    x1, x2 = convert_to_tensor(x1), convert_to_tensor(x2)
    if x1.shape != x2.shape:
        raise argument_error(
            f"Input shapes {x1.shape} and {x2.shape} must match for PSNR calculation."
        )
    mse = _reduce.mean(ew.square(ew.subtract(x1, x2)))
    peak = ew.multiply(ew.log10(convert_to_tensor(max_val, x2.dtype)), 20.0)
    return ew.subtract(peak, ew.multiply(ew.log10(mse), 10.0))


def dot_product_attention(
    query,
    key,
    value,
    bias=None,
    mask=None,
    scale=None,
    is_causal=False,
    flash_attention=None,
    attn_logits_soft_cap=None,
):
    query, key, value = (convert_to_tensor(t) for t in (query, key, value))
    if {len(query.shape), len(key.shape), len(value.shape)} != {4}:
        raise argument_error(
            "`dot_product_attention` only supports 4D inputs. "
            f"Received: query.shape={query.shape}, key.shape={key.shape}, "
            f"value.shape={value.shape}."
        )
    if flash_attention:
        raise missing.unsupported(
            "`dot_product_attention` was called with flash_attention=True",
            "flash_attention=None or False",
            "Leave the argument out",
        )
    groups = query.shape[2] // key.shape[2]
    if groups > 1:  # several query heads share a key head
        key, value = repeat(key, groups, axis=2), repeat(value, groups, axis=2)
    dtype = result_type(query.dtype, key.dtype, value.dtype)
    # To [batch, heads, time, depth].
    query, key, value = (transpose(cast(t, dtype), (0, 2, 1, 3)) for t in (query, key, value))
    scale = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    logits = cast(_ops.matmul(query, key, transpose_b=True), result_type(dtype, "float32"))
    logits = ew.multiply(logits, scale)
    if attn_logits_soft_cap is not None:
        cap = float(attn_logits_soft_cap)
        logits = ew.multiply(ew.tanh(ew.divide(logits, cap)), cap)
    if bias is not None:
        logits = ew.add(logits, convert_to_tensor(bias, logits.dtype))
    if mask is not None:
        logits = ew.where(mask, logits, _lowest(logits))
    if is_causal:
        causal = tri(query.shape[2], key.shape[2], dtype="bool")
        logits = ew.where(causal, logits, _lowest(logits))
    weights = cast(_ops.softmax(logits, axis=3), dtype)
    return transpose(_ops.matmul(weights, value), (0, 2, 1, 3))


def _lowest(logits):
    """Far below every logit, yet finite: a row that masks everything stays free of NaN."""
    return _const(-0.7 * (65504.0 if logits.dtype == "float16" else 3.4e38), logits)


def depth_to_space(x, block_size, data_format="channels_last"):
    x, b = convert_to_tensor(x), block_size
    if data_format == "channels_last":
        n, h, w, c = x.shape
        x = transpose(reshape(x, (n, h, w, b, b, c // b**2)), (0, 1, 3, 2, 4, 5))
        return reshape(x, (n, h * b, w * b, c // b**2))
    n, c, h, w = x.shape
    x = transpose(reshape(x, (n, c // b**2, b, b, h, w)), (0, 1, 4, 2, 5, 3))
    return reshape(x, (n, c // b**2, h * b, w * b))


def space_to_depth(x, block_size, data_format="channels_last"):
    x, b = convert_to_tensor(x), block_size
    if data_format == "channels_last":
        n, h, w, c = x.shape
        x = transpose(reshape(x, (n, h // b, b, w // b, b, c)), (0, 1, 3, 2, 4, 5))
        return reshape(x, (n, h // b, w // b, c * b**2))
    n, c, h, w = x.shape
    x = transpose(reshape(x, (n, c, h // b, b, w // b, b)), (0, 1, 3, 5, 2, 4))
    return reshape(x, (n, c * b**2, h // b, w // b))
