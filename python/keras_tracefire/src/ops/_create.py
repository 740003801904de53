# SPDX-License-Identifier: Apache-2.0
"""Functions that make tensors: constants, ranges, triangles, windows."""

import math

from keras.src.backend import config
from keras.src.backend.common import standardize_dtype
from keras_tracefire.src._messages import argument_error
from keras_tracefire.src.ops import _elementwise as ew
from keras_tracefire.src.ops._shape import broadcast_to
from keras_tracefire.src.ops._shape import moveaxis
from keras_tracefire.src.ops._shape import reshape
from keras_tracefire.src.ops._tensor import Tensor
from keras_tracefire.src.ops._tensor import cast
from keras_tracefire.src.ops._tensor import convert_to_tensor
from keras_tracefire.src.ops._tensor import is_float
from keras_tracefire.src.ops._tensor import result_type
from tracefire import _core
from tracefire import _ops
from tracefire import errors



def full(shape, fill_value, dtype=None):
    dtype = standardize_dtype(dtype) if dtype is not None else config.floatx()
    return broadcast_to(convert_to_tensor(fill_value, dtype), shape)


def zeros(shape, dtype=None):
    return full(shape, 0, dtype)


def ones(shape, dtype=None):
    return full(shape, 1, dtype)


def empty(shape, dtype=None):
    return zeros(shape, dtype)


def full_like(x, fill_value, dtype=None):
    x = convert_to_tensor(x)
    return full(x.shape, fill_value, dtype or x.dtype)


def zeros_like(x, dtype=None):
    return full_like(x, 0, dtype)


def ones_like(x, dtype=None):
    return full_like(x, 1, dtype)


def empty_like(x, dtype=None):
    return full_like(x, 0, dtype)


def iota(length, dtype="int32"):
    return _ops.iota(shape=(length,), axis=0, dtype=dtype)


def arange(start, stop=None, step=None, dtype=None):
    given = [v for v in (start, stop, step) if v is not None]
    given_dtype = dtype
    if dtype is None:
        dtype = result_type(*[getattr(v, "dtype", type(v)) for v in given])
    dtype = standardize_dtype(dtype)
    start, stop = (0, start) if stop is None else (start, stop)
    step = 1 if step is None else step
    # The size of the result must be known, so bounds that are tensors are read.
    start, stop, step = [v.item() if isinstance(v, Tensor) else v for v in (start, stop, step)]
    length = _range_length(start, stop, step)
    last = start + (length - 1) * step
    wide = not all(-(2**31) <= v < 2**31 for v in (start, last, step))
    if dtype == "int32" and wide and given_dtype is None:
        dtype = "int64"
    if is_float(dtype):
        compute = result_type(dtype, "float32")
    else:
        compute = "uint64" if dtype == "uint64" else "int64" if wide else "int32"
    whole = not [v for v in (start, step) if isinstance(v, float) and v != int(v)]
    if not whole and not is_float(compute):
        compute = "float32"
    out = iota(length, compute)
    if step != 1:
        out = _ops.mul(out, _core.tensor(step, compute))
    if start != 0:
        out = _ops.add(out, _core.tensor(start, compute))
    return cast(out, dtype)


def _range_length(start, stop, step):
    if step == 0 or not all(math.isfinite(v) for v in (start, stop, step)):
        raise errors.raised_here(
            "BadAttribute",
            f"`arange` was called with start={start}, stop={stop} and step={step}",
            "finite numbers, and a step that is not 0",
            "A range goes from start up to, but not including, stop by steps",
        )
    if all(isinstance(v, int) for v in (start, stop, step)):
        return len(range(start, stop, step))
    return max(0, math.ceil((stop - start) / step))


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    if num < 0:
        raise argument_error(f"`num` must be a non-negative integer. Received: num={num}")
    kinds = [getattr(v, "dtype", type(v)) for v in (start, stop)]
    compute = result_type(*kinds, float)
    dtype = compute if dtype is None else standardize_dtype(dtype)
    compute = result_type(compute, "float32")  # 16 bits do not count far
    start, stop = cast(start, compute), cast(stop, compute)
    shape = tuple(_ops.add(start, stop).shape)
    start, stop = broadcast_to(start, shape), broadcast_to(stop, shape)
    gaps = num - 1 if endpoint else num
    delta = _ops.sub(stop, start)
    t = reshape(iota(num, compute), (num,) + (1,) * len(shape))
    if gaps > 0:
        t = _ops.div(t, _core.tensor(gaps, compute))
        step = _ops.div(delta, _core.tensor(gaps, compute))
    else:
        step = ew.multiply(delta, math.nan)
    # Both ends are met exactly.
    one = _core.tensor(1, compute)
    out = _ops.add(_ops.mul(_ops.sub(one, t), start), _ops.mul(t, stop))
    out = moveaxis(broadcast_to(out, (num,) + shape), 0, axis)
    if not is_float(dtype):
        out = _ops.floor(out)
    out = cast(out, dtype)
    return (out, step) if retstep else out


def logspace(start, stop, num=50, endpoint=True, base=10, dtype=None, axis=0):
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    out = ew.power(convert_to_tensor(base, exponents.dtype), exponents)
    return out if dtype is None else cast(out, dtype)


def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    start, stop = ew.floating(start), ew.floating(stop)
    sign = ew.sign(start)
    exponents = linspace(
        ew.log(ew.absolute(start)), ew.log(ew.absolute(stop)), num, endpoint, axis=axis
    )
    out = ew.multiply(ew.exp(exponents), sign)
    return out if dtype is None else cast(out, dtype)


def _grid(rows, columns):
    """Row and column number of each element."""
    shape = (rows, columns)
    return (
        _ops.iota(shape=shape, axis=0, dtype="int32"),
        _ops.iota(shape=shape, axis=1, dtype="int32"),
    )


def tri(N, M=None, k=0, dtype=None):
    row, column = _grid(N, N if M is None else M)
    below = _ops.less_equal(column, _ops.add(row, _core.tensor(k, "int32")))
    return cast(below, dtype or config.floatx())


def _triangle(lower):
    def run(x, k=0):
        x = convert_to_tensor(x)
        k = convert_to_tensor(k, "int32")
        row, column = _grid(*x.shape[-2:])
        edge = _ops.add(row, k)
        keep = _ops.less_equal(column, edge) if lower else _ops.greater_equal(column, edge)
        return _ops.select(keep, x, ew.constant_like(0, x))

    return run


tril = _triangle(True)
triu = _triangle(False)


def eye(N, M=None, k=0, dtype=None):
    row, column = _grid(N, N if M is None else M)
    on_diagonal = _ops.equal(column, _ops.add(row, _core.tensor(k, "int32")))
    return cast(on_diagonal, dtype or config.floatx())


def identity(n, dtype=None):
    return eye(n, dtype=dtype)


def vander(x, N=None, increasing=False):
    x = convert_to_tensor(x)
    n = x.shape[0] if N is None else N
    powers = iota(n)
    if not increasing:
        powers = _ops.reverse(powers, axes=[0])
    return ew.power(reshape(x, (-1, 1)), cast(powers, x.dtype))


def _window(terms):
    """A sum of cosines over the window's length."""

    def run(x):
        length = int(convert_to_tensor(x))
        dtype = config.floatx()
        if length == 1:
            return ones((1,), dtype)
        t = ew.multiply(iota(length, dtype), 2 * math.pi / (length - 1))
        out = full((length,), terms[0], dtype)
        for i, weight in enumerate(terms[1:], 1):
            out = ew.add(out, ew.multiply(ew.cos(ew.multiply(t, float(i))), weight))
        return out

    return run


hanning = _window((0.5, -0.5))
hamming = _window((0.54, -0.46))
blackman = _window((0.42, -0.5, 0.08))


def bartlett(x):
    length = int(convert_to_tensor(x))
    if length == 1:
        return ones((1,))
    t = ew.multiply(iota(length, config.floatx()), 2 / (length - 1))
    return ew.subtract(1.0, ew.absolute(ew.subtract(t, 1.0)))


# Chebyshev coefficients of the modified Bessel function I0 (Cephes, S. Moshier): on [0, 8] of
# exp(-x) I0(x) in x/2 - 2, and beyond of exp(-x) sqrt(x) I0(x) in 32/x - 2.
_BESSEL_SMALL = (
    -1.30002500998624804212e-8, 6.04699502254191894932e-8, -2.67079385394061173391e-7,
    1.11738753912010371815e-6, -4.41673835845875056359e-6, 1.64484480707288970893e-5,
    -5.75419501008210370398e-5, 1.88502885095841655729e-4, -5.76375574538582365885e-4,
    1.63947561694133579842e-3, -4.32430999505057594430e-3, 1.05464603945949983183e-2,
    -2.37374148058994688156e-2, 4.93052842396707084878e-2, -9.49010970480476444210e-2,
    1.71620901522208775349e-1, -3.04682672343198398683e-1, 6.76795274409476084995e-1,
)  # fmt: skip
_BESSEL_LARGE = (
    3.39623202570838634515e-9, 2.26666899049817806459e-8, 2.04891858946906374183e-7,
    2.89137052083475648297e-6, 6.88975834691682398426e-5, 3.36911647825569408990e-3,
    8.04490411014108831608e-1,
)  # fmt: skip


def _chebyshev(x, coefficients):
    b0, b1, b2 = ew.constant_like(coefficients[0], x), ew.constant_like(0, x), None
    for c in coefficients[1:]:
        b2, b1 = b1, b0
        b0 = _ops.add(_ops.sub(_ops.mul(x, b1), b2), ew.constant_like(c, x))
    return _ops.mul(_ops.sub(b0, b2), ew.constant_like(0.5, x))


def i0(x):
    x = ew.floating(x)
    dtype, size = x.dtype, cast(ew.absolute(x), "float32")
    limit = ew.constant_like(8, size)
    is_small = _ops.less_equal(size, limit)
    low = _ops.select(is_small, size, limit)
    high = _ops.select(is_small, limit, size)
    two = ew.constant_like(2, size)
    small = _chebyshev(_ops.sub(_ops.div(low, two), two), _BESSEL_SMALL)
    large = _chebyshev(_ops.sub(_ops.div(ew.constant_like(32, size), high), two), _BESSEL_LARGE)
    out = _ops.select(is_small, small, _ops.div(large, _ops.sqrt(high)))
    # e^|x| overflows before the result does.
    root = _ops.exp(_ops.mul(size, ew.constant_like(0.5, size)))
    return cast(_ops.mul(_ops.mul(out, root), root), dtype)


def kaiser(x, beta):
    length = int(convert_to_tensor(x))
    if length == 1:
        return ones((1,))
    dtype = config.floatx()
    t = ew.subtract(ew.multiply(iota(length, dtype), 2 / (length - 1)), 1.0)
    beta = convert_to_tensor(beta, dtype)
    inside = ew.maximum(ew.subtract(1.0, ew.square(t)), 0.0)
    return ew.divide(i0(ew.multiply(beta, ew.sqrt(inside))), i0(beta))
