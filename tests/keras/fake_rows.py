# SPDX-License-Identifier: Apache-2.0
"""NumPy definitions of the engine's operation rows, for the test double of `tracefire._core`."""

import math

import ml_dtypes
import numpy as np

_DTYPE = {"bfloat16": ml_dtypes.bfloat16}


def _np(dtype):
    return np.dtype(_DTYPE.get(dtype, dtype))


def _erf(x):
    return np.vectorize(math.erf, otypes=[np.float64])(x.astype(np.float64)).astype(x.dtype)


_ERF_INV_SMALL = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
_ERF_INV_LARGE = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip


def _erf_inv(x):
    """M. Giles, Approximating the erfinv function (2012), single precision."""
    f = np.float32
    v = x.astype(f)
    w = -np.log1p(-v * v)
    small = w < f(5)
    w = np.where(small, w - f(2.5), np.sqrt(np.maximum(w, f(0))) - f(3))
    p = np.where(small, f(_ERF_INV_SMALL[0]), f(_ERF_INV_LARGE[0]))
    for a, b in zip(_ERF_INV_SMALL[1:], _ERF_INV_LARGE[1:]):
        p = np.where(small, f(a), f(b)) + p * w
    out = p * v
    return np.where(np.abs(v) == 1, v * f(np.inf), out).astype(x.dtype)


def _rotate(x, r):
    return (x << np.uint32(r)) | (x >> np.uint32(32 - r))


def threefry2x32(key, hi, lo):
    """J. Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011), 20 rounds."""
    rotations = ((13, 15, 26, 6), (17, 29, 16, 24))
    k0, k1 = np.uint32(key[0]), np.uint32(key[1])
    ks = (k0, k1, k0 ^ k1 ^ np.uint32(0x1BD11BDA))
    x0, x1 = hi + ks[0], lo + ks[1]
    for i in range(5):
        for r in rotations[i % 2]:
            x0 = x0 + x1
            x1 = x0 ^ _rotate(x1, r)
        x0 = x0 + ks[(i + 1) % 3]
        x1 = x1 + ks[(i + 2) % 3] + np.uint32(i + 1)
    return x0, x1


def _philox4x32(key, counter):
    """The same paper; counter (lo, hi, 0, 0), ten rounds; word 0."""
    c = [counter.astype(np.uint32), (counter >> np.uint64(32)).astype(np.uint32)]
    c += [np.zeros_like(c[0]), np.zeros_like(c[0])]
    k0, k1 = np.uint32(key[0]), np.uint32(key[1])
    for _ in range(10):
        a = c[0].astype(np.uint64) * np.uint64(0xD2511F53)
        b = c[2].astype(np.uint64) * np.uint64(0xCD9E8D57)
        hi_a, lo_a = (a >> np.uint64(32)).astype(np.uint32), a.astype(np.uint32)
        hi_b, lo_b = (b >> np.uint64(32)).astype(np.uint32), b.astype(np.uint32)
        c = [hi_b ^ c[1] ^ k0, lo_b, hi_a ^ c[3] ^ k1, lo_a]
        k0, k1 = k0 + np.uint32(0x9E3779B9), k1 + np.uint32(0xBB67AE85)
    return c


def _random_bits(key, shape, algorithm="threefry2x32", words=1):
    count = np.arange(math.prod(shape), dtype=np.uint64)
    if algorithm == "threefry2x32":
        hi, lo = (count >> np.uint64(32)).astype(np.uint32), count.astype(np.uint32)
        pair = threefry2x32(key, hi, lo)
    else:
        pair = _philox4x32(key, count)[:2]
    if words == 2:
        return np.stack(pair, axis=-1).reshape(tuple(shape) + (2,))
    out = pair[0] ^ pair[1] if algorithm == "threefry2x32" else pair[0]
    return out.reshape(shape)


def _slice(x, starts, limits, strides=None):
    strides = strides or [1] * len(starts)
    return x[tuple(slice(a, b, s) for a, b, s in zip(starts, limits, strides))]


def _pad(x, low, high, interior=None, value=0):
    interior = interior or [0] * x.ndim
    shape = [
        lo + hi + n + max(n - 1, 0) * i for lo, hi, n, i in zip(low, high, x.shape, interior)
    ]
    out = np.full(shape, value, x.dtype)
    at = tuple(
        slice(lo, lo + (n - 1) * (i + 1) + 1 if n else lo, i + 1)
        for lo, n, i in zip(low, x.shape, interior)
    )
    out[at] = x
    return out


def _one_hot(x, depth, axis=-1, dtype="float32"):
    axis = axis if axis >= 0 else x.ndim + 1 + axis
    classes = np.arange(depth).reshape([-1 if i == axis else 1 for i in range(x.ndim + 1)])
    return (np.expand_dims(x, axis) == classes).astype(_np(dtype))


def _scatter(operand, indices, updates, reduction="update"):
    """indices [n, k] address the first k axes of operand; updates [n, operand.shape[k:]]."""
    out = np.array(operand)
    at = tuple(np.moveaxis(indices, -1, 0))
    if reduction == "update":
        out[at] = updates
    else:
        ufunc = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
        ufunc[reduction].at(out, at, updates)
    return out


def _top_k(x, k):
    order = np.argsort(-x.astype(np.float64), axis=-1, kind="stable")[..., :k]
    return np.take_along_axis(x, order, -1), order.astype(np.int32)


def _softmax(x, axis=-1):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True, dtype=x.dtype)


def _log_softmax(x, axis=-1):
    s = x - np.max(x, axis=axis, keepdims=True)
    return s - np.log(np.sum(np.exp(s), axis=axis, keepdims=True, dtype=x.dtype))


def _sparse_xent(logits, labels):
    _check_range(labels, 0, logits.shape[-1], "label")
    picked = np.take_along_axis(_log_softmax(logits), labels[..., None].astype(np.int64), -1)
    return -picked[..., 0]


def _matmul(a, b, transpose_a=False, transpose_b=False, dtype=None):
    a = np.swapaxes(a, -1, -2) if transpose_a else a
    b = np.swapaxes(b, -1, -2) if transpose_b else b
    if a.dtype == ml_dtypes.bfloat16 or a.dtype == np.float16:
        return np.matmul(a.astype("f4"), b.astype("f4")).astype(_np(dtype or a.dtype))
    if dtype is not None:
        a, b = a.astype(_np(dtype)), b.astype(_np(dtype))
    return np.matmul(a, b)


def _reduce(fn):
    def run(x, axes=None, keepdims=False):
        axes = None if axes is None else tuple(axes)
        return fn(x, axis=axes, keepdims=keepdims)

    return run


def _sum(x, axis, keepdims):
    wide = np.float32 if x.dtype in (np.float16, ml_dtypes.bfloat16) else x.dtype
    return np.sum(x, axis=axis, keepdims=keepdims, dtype=wide).astype(x.dtype)


def _cumulative(fn):
    def run(x, axis, exclusive=False, reverse=False):
        x = np.flip(x, axis) if reverse else x
        out = fn(x, axis=axis, dtype=x.dtype)
        if exclusive:
            first = 0 if fn is np.cumsum else 1
            pad = [(1, 0) if i == axis % x.ndim else (0, 0) for i in range(x.ndim)]
            out = np.pad(out, pad, constant_values=first)
            out = np.take(out, range(x.shape[axis]), axis=axis)
        return np.flip(out, axis) if reverse else out

    return run


def _while_loop(*values, cond, body, max_iterations=None):
    n, i = len(body.outputs), 0
    variables, outer = list(values[:n]), values[n:]
    k = len(cond.captured)

    def call(fn, captured):
        from fake_core import _concrete

        for (inner, old), new in zip(list(fn._scope.captures.values()), captured):
            fn._scope.captures[id(old)] = (inner, _concrete(new))
        return [np.asarray(o.numpy()) for o in fn(*[_concrete(v) for v in variables])]

    while max_iterations is None or i < max_iterations:
        if not bool(call(cond, outer[:k])[0]):
            break
        variables, i = call(body, outer[k:]), i + 1
    return tuple(variables)


def _host_call(*values, fn, out_specs):
    results = fn(*values)
    return tuple(np.asarray(r, dtype=_np(d)).reshape(s) for r, (s, d) in zip(results, out_specs))


def _fma(a, b, c):
    """One rounding: the product of two 24-bit numbers is exact in double precision."""
    wide = a.astype("f8") * b.astype("f8") + c.astype("f8")
    return wide.astype(np.result_type(a, b, c))


def _check_range(x, low, high, what):
    if x.size and (x.min() < low or x.max() >= high):
        from fake_core import Error

        raise Error(
            f"a {what} is outside {low} to {high - 1}; the smallest is {x.min()} and the largest "
            f"{x.max()}",
            "IndexOutOfRange",
        )
    return x


ELEMENTWISE_BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "pow": np.power,
    "div": lambda a, b: np.divide(a, b, dtype=a.dtype) if a.dtype.kind == "f" else a / b,
    "floor_div": np.floor_divide, "mod": np.mod, "atan2": np.arctan2,
    "maximum": np.maximum, "minimum": np.minimum,
    "equal": np.equal, "not_equal": np.not_equal, "less": np.less,
    "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "shift_left": np.left_shift, "shift_right_logical": np.right_shift,
}  # fmt: skip

ELEMENTWISE_UNARY = {
    "neg": np.negative, "abs": np.abs, "sign": np.sign, "exp": np.exp, "expm1": np.expm1,
    "log": np.log, "log1p": np.log1p, "sqrt": np.sqrt,
    "rsqrt": lambda x: (1 / np.sqrt(x)).astype(x.dtype), "square": np.square,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "tanh": np.tanh,
    "sigmoid": lambda x: (1 / (1 + np.exp(-x))).astype(x.dtype),
    "softplus": lambda x: np.logaddexp(x, np.zeros_like(x)),
    "relu": lambda x: np.maximum(x, np.zeros_like(x)), "erf": _erf, "erf_inv": _erf_inv,
    "floor": np.floor, "ceil": np.ceil, "round": np.rint,
    "is_nan": np.isnan, "is_inf": np.isinf, "is_finite": np.isfinite,
    "logical_not": np.logical_not, "bitwise_not": np.invert,
    "stop_gradient": lambda x: x,
}  # fmt: skip

ROWS = dict(ELEMENTWISE_BINARY)
ROWS.update(ELEMENTWISE_UNARY)
ROWS.update(
    {
        "select": lambda c, a, b: np.where(c, a, b),
        "fma": _fma,
        "check_range": _check_range,
        "cast": lambda x, dtype: x.astype(_np(dtype)),
        "bitcast": lambda x, dtype: x.view(_np(dtype)),
        "constant": lambda value, shape, dtype: np.broadcast_to(
            np.asarray(value, _np(dtype)), shape
        ),
        "iota": lambda shape, axis, dtype: np.broadcast_to(
            np.arange(shape[axis], dtype=_np(dtype)).reshape(
                [-1 if i == axis else 1 for i in range(len(shape))]
            ),
            shape,
        ),
        "broadcast_to": lambda x, shape: np.broadcast_to(x, shape),
        "reshape": lambda x, shape: np.reshape(x, shape),
        "transpose": lambda x, perm: np.transpose(x, perm),
        "slice": _slice,
        "pad": _pad,
        "concat": lambda *xs, axis: np.concatenate(xs, axis=axis),
        "reverse": lambda x, axes: np.flip(x, tuple(axes)),
        "gather": lambda x, i, axis: np.take(x, i, axis=axis, mode="clip"),
        "gather_along": lambda x, i, axis: np.take_along_axis(x, i, axis),
        "scatter": _scatter,
        "reduce_sum": _reduce(_sum),
        "reduce_mean": _reduce(lambda x, axis, keepdims: np.mean(x, axis, keepdims=keepdims)),
        "reduce_prod": _reduce(lambda x, axis, keepdims: np.prod(x, axis, x.dtype, None, keepdims)),
        "reduce_max": _reduce(np.max),
        "reduce_min": _reduce(np.min),
        "reduce_any": _reduce(np.any),
        "reduce_all": _reduce(np.all),
        "argmax": lambda x, axis, keepdims=False: np.argmax(x, axis, keepdims=keepdims).astype(
            np.int32
        ),
        "argmin": lambda x, axis, keepdims=False: np.argmin(x, axis, keepdims=keepdims).astype(
            np.int32
        ),
        "cumsum": _cumulative(np.cumsum),
        "cumprod": _cumulative(np.cumprod),
        "sort": lambda x, axis: np.sort(x, axis=axis, kind="stable"),
        "argsort": lambda x, axis: np.argsort(x, axis=axis, kind="stable").astype(np.int32),
        "top_k": _top_k,
        "matmul": _matmul,
        "one_hot": _one_hot,
        "softmax": _softmax,
        "log_softmax": _log_softmax,
        "sparse_softmax_cross_entropy": _sparse_xent,
        "random_bits": _random_bits,
        "while_loop": _while_loop,
        "host_call": _host_call,
    }
)


def check(op, tensors, attrs, error):
    """What the engine's verifier would refuse."""
    if op not in ROWS:
        raise error(f"there is no operation {op!r}", "UnknownOp")
    same = tensors[1:] if op == "select" else tensors
    if op in ELEMENTWISE_BINARY or op in ("select", "concat", "matmul", "fma"):
        if len({t.dtype for t in same}) > 1:
            raise error(
                f"{op} was given operands of {[t.dtype for t in same]}; one dtype is expected",
                "DTypeMismatch",
            )


def evaluate(op, attrs, values, shapes_only=False):
    if shapes_only and op == "host_call":
        return [np.zeros(s, _np(d)) for s, d in attrs["out_specs"]]
    if shapes_only and op == "while_loop":
        return values[: len(attrs["body"].outputs)]
    out = ROWS[op](*values, **attrs)
    return [np.asarray(o) for o in (out if isinstance(out, tuple) else (out,))]
