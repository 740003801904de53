# SPDX-License-Identifier: Apache-2.0
"""Backend functions against NumPy, in three modes: at once, traced, and by shape alone."""

import keras
import numpy as np
import pytest
from keras import ops
from keras_tracefire.src.ops import core
from keras_tracefire.src.ops import nn
from keras_tracefire.src.ops import numpy as knp
from tracefire import _core
from tracefire import errors

import tracefire

R = np.random.default_rng(0)
M = R.normal(size=(3, 4)).astype("float32")
N = R.normal(size=(3, 4)).astype("float32")
POSITIVE = np.abs(M) + 0.1
INTEGERS = R.integers(-9, 9, (3, 4)).astype("int32")
CUBE = R.normal(size=(2, 3, 4)).astype("float32")
SORTED = np.array([0.1, 0.5, 0.9, 2.0], "float32")


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


# name: (our function, NumPy's function, arguments)
FUNCTIONS = {
    "add": (ops.add, np.add, (M, N)),
    "add of a row": (ops.add, np.add, (M, N[0])),
    "divide integers": (ops.divide, np.divide, (INTEGERS, INTEGERS + 20)),
    "divide_no_nan": (ops.divide_no_nan, lambda a, b: a / b, (M, POSITIVE)),
    "floor_divide": (ops.floor_divide, np.floor_divide, (INTEGERS, 4)),
    "mod": (ops.mod, np.mod, (INTEGERS, 4)),
    "power": (ops.power, np.power, (POSITIVE, N)),
    "maximum": (ops.maximum, np.maximum, (M, N)),
    "logaddexp": (ops.logaddexp, np.logaddexp, (M, N)),
    "arctan2": (ops.arctan2, np.arctan2, (M, N)),
    "hypot": (ops.hypot, np.hypot, (M, N)),
    "clip": (lambda x: ops.clip(x, -0.5, 0.5), lambda x: np.clip(x, -0.5, 0.5), (M,)),
    "where": (ops.where, np.where, (M > 0, M, N)),
    "sign": (ops.sign, np.sign, (M,)),
    "log1p": (ops.log1p, np.log1p, (POSITIVE,)),
    "round": (lambda x: ops.round(x, 1), lambda x: np.round(x, 1), (M,)),
    "trunc": (ops.trunc, np.trunc, (M * 3,)),
    "isclose": (ops.isclose, np.isclose, (M, M + 1e-9)),
    "gcd": (knp.gcd, np.gcd, (INTEGERS, INTEGERS.T.reshape(3, 4))),
    "left_shift": (ops.left_shift, np.left_shift, (np.abs(INTEGERS), 2)),
    "right_shift": (ops.right_shift, np.right_shift, (INTEGERS, 1)),
    "sum": (lambda x: ops.sum(x, axis=1), lambda x: x.sum(1), (CUBE,)),
    "mean of all": (ops.mean, np.mean, (CUBE,)),
    "var": (lambda x: ops.var(x, axis=(0, 2)), lambda x: x.var((0, 2)), (CUBE,)),
    "std": (lambda x: ops.std(x, axis=-1), lambda x: x.std(-1), (CUBE,)),
    "max": (lambda x: ops.max(x, axis=0), lambda x: x.max(0), (CUBE,)),
    "argmax": (lambda x: ops.argmax(x, axis=-1), lambda x: x.argmax(-1), (CUBE,)),
    "prod": (lambda x: ops.prod(x, axis=1), lambda x: x.prod(1), (CUBE,)),
    "cumsum": (lambda x: ops.cumsum(x, axis=1), lambda x: x.cumsum(1), (CUBE,)),
    "median": (lambda x: ops.median(x, axis=1), lambda x: np.median(x, 1), (CUBE,)),
    "quantile": (
        lambda x: ops.quantile(x, [0.2, 0.7], axis=1),
        lambda x: np.quantile(x, [0.2, 0.7], axis=1),
        (CUBE,),
    ),
    "average": (
        lambda x, w: ops.average(x, axis=1, weights=w),
        lambda x, w: np.average(x, axis=1, weights=w),
        (M, POSITIVE),
    ),
    "trapezoid": (ops.trapezoid, np.trapezoid, (M,)),
    "matmul": (ops.matmul, np.matmul, (M, N.T)),
    "matmul of a batch": (ops.matmul, np.matmul, (CUBE, N.T)),
    "matmul of integers": (ops.matmul, np.matmul, (INTEGERS, INTEGERS.T)),
    "dot": (ops.dot, np.dot, (CUBE, N[0])),
    "tensordot": (
        lambda a, b: ops.tensordot(a, b, axes=([1, 2], [0, 1])),
        lambda a, b: np.tensordot(a, b, axes=([1, 2], [0, 1])),
        (CUBE, CUBE.transpose(1, 2, 0)),
    ),
    "outer": (ops.outer, np.outer, (M[0], N[0])),
    "cross": (ops.cross, np.cross, (M[:, :3], N[:, :3])),
    "kron": (ops.kron, np.kron, (M[:2, :2], N)),
    "einsum": (
        lambda a, b: ops.einsum("bij,kj->bik", a, b),
        lambda a, b: np.einsum("bij,kj->bik", a, b),
        (CUBE, N),
    ),
    "einsum with dots": (
        lambda a, b: ops.einsum("...ij,...kj->...k", a, b),
        lambda a, b: np.einsum("...ij,...kj->...k", a, b),
        (CUBE, N),
    ),
    "einsum of a diagonal": (
        lambda a: ops.einsum("ii->i", a),
        lambda a: np.einsum("ii->i", a),
        (M[:, :3],),
    ),
    "einsum of three": (
        lambda a, b, c: ops.einsum("ij,jk,kl->il", a, b, c),
        lambda a, b, c: a @ b @ c,
        (M, N.T, M),
    ),
    "transpose": (lambda x: ops.transpose(x, (2, 0, 1)), lambda x: x.transpose(2, 0, 1), (CUBE,)),
    "moveaxis": (lambda x: ops.moveaxis(x, 0, -1), lambda x: np.moveaxis(x, 0, -1), (CUBE,)),
    "reshape": (lambda x: ops.reshape(x, (-1, 2)), lambda x: x.reshape(-1, 2), (CUBE,)),
    "stack": (lambda a, b: ops.stack([a, b], 1), lambda a, b: np.stack([a, b], 1), (M, N)),
    "split": (
        lambda x: ops.split(x, [1, 3], axis=1),
        lambda x: np.split(x, [1, 3], axis=1),
        (M,),
    ),
    "tile": (lambda x: ops.tile(x, (2, 1, 3)), lambda x: np.tile(x, (2, 1, 3)), (M,)),
    "repeat": (lambda x: ops.repeat(x, 3, 0), lambda x: np.repeat(x, 3, 0), (M,)),
    "roll": (lambda x: ops.roll(x, 2, 1), lambda x: np.roll(x, 2, 1), (M,)),
    "flip": (lambda x: ops.flip(x, 0), lambda x: np.flip(x, 0), (M,)),
    "pad": (
        lambda x: ops.pad(x, ((1, 0), (0, 2)), constant_values=7),
        lambda x: np.pad(x, ((1, 0), (0, 2)), constant_values=7),
        (M,),
    ),
    "pad by reflection": (
        lambda x: ops.pad(x, ((2, 1), (1, 2)), mode="reflect"),
        lambda x: np.pad(x, ((2, 1), (1, 2)), mode="reflect"),
        (M,),
    ),
    "take": (
        lambda x: ops.take(x, [2, -1], axis=1),
        lambda x: np.take(x, [2, -1], axis=1),
        (M,),
    ),
    "take_along_axis": (
        lambda x: ops.take_along_axis(x, [[0, 1], [2, 2], [3, 0]], axis=1),
        lambda x: np.take_along_axis(x, np.array([[0, 1], [2, 2], [3, 0]]), axis=1),
        (M,),
    ),
    "sort": (lambda x: ops.sort(x, axis=0), lambda x: np.sort(x, axis=0), (M,)),
    "argsort": (lambda x: ops.argsort(x, axis=1), lambda x: np.argsort(x, axis=1), (M,)),
    "searchsorted": (ops.searchsorted, np.searchsorted, (SORTED, M[0])),
    "digitize": (ops.digitize, np.digitize, (M, SORTED)),
    "isin": (ops.isin, np.isin, (INTEGERS, np.array([1, 2, -3], "int32"))),
    "diff": (lambda x: ops.diff(x, n=2), lambda x: np.diff(x, n=2), (M,)),
    "diag": (lambda x: ops.diag(x, 1), lambda x: np.diag(x, 1), (M[0],)),
    "diagonal": (ops.diagonal, np.diagonal, (M,)),
    "tril": (lambda x: ops.tril(x, -1), lambda x: np.tril(x, -1), (M,)),
    "histogram": (
        lambda x: ops.histogram(x, bins=5),
        lambda x: (np.histogram(x, bins=5)[0].astype("int32"), np.histogram(x, bins=5)[1]),
        (CUBE.ravel(),),
    ),
    "linspace": (
        lambda a, b: ops.linspace(a, b, 5),
        lambda a, b: np.linspace(a, b, 5),
        (M[0], N[0]),
    ),
    "meshgrid": (ops.meshgrid, np.meshgrid, (SORTED, M[0])),
    "softmax": (ops.softmax, softmax, (CUBE,)),
    "softmax over another axis": (
        lambda x: ops.softmax(x, axis=1),
        lambda x: softmax(x, 1),
        (CUBE,),
    ),
    "log_softmax": (ops.log_softmax, lambda x: np.log(softmax(x)), (CUBE,)),
    "sigmoid": (ops.sigmoid, lambda x: 1 / (1 + np.exp(-x)), (M,)),
    "softplus": (ops.softplus, lambda x: np.log1p(np.exp(x)), (M,)),
    "leaky_relu": (ops.leaky_relu, lambda x: np.where(x > 0, x, 0.2 * x), (M,)),
    "logsumexp": (
        lambda x: ops.logsumexp(x, axis=1),
        lambda x: np.log(np.exp(x).sum(1)),
        (CUBE,),
    ),
    "segment_sum": (
        lambda x, ids: ops.segment_sum(x, ids, num_segments=3),
        lambda x, ids: np.stack([x[0] + x[2], np.zeros(4, "f4"), x[1]]),
        (M, np.array([0, 2, 0], "int32")),
    ),
    "norm": (lambda x: ops.norm(x, axis=-1), lambda x: np.linalg.norm(x, axis=-1), (CUBE,)),
    "i0": (knp.i0, np.i0, (np.linspace(-20, 20, 9).astype("float32"),)),
}


def leaves(x):
    return [np.asarray(v) for v in (x if isinstance(x, (list, tuple)) else [x])]


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_function(name):
    ours, reference, args = FUNCTIONS[name]
    expected = leaves(reference(*args))
    at_once = leaves(ours(*args))
    with _core.TraceScope() as scope:
        inputs = [scope.parameter(a.shape, a.dtype.name) if is_array(a) else a for a in args]
        out = ours(*inputs)
        function = scope.finish(list(out) if isinstance(out, (list, tuple)) else [out])
    traced = function(*[_core.tensor(a) for a in args if is_array(a)])
    specs = keras.tree.flatten(
        core.compute_output_spec(
            ours, *[keras.KerasTensor(a.shape, a.dtype.name) if is_array(a) else a for a in args]
        )
    )
    assert len(at_once) == len(traced) == len(specs) == len(expected)
    for now, later, spec, right in zip(at_once, traced, specs, expected):
        np.testing.assert_allclose(now, right, rtol=2e-5, atol=2e-6)
        np.testing.assert_allclose(later.numpy(), right, rtol=2e-5, atol=2e-6)
        assert tuple(spec.shape) == now.shape == right.shape
        assert spec.dtype == now.dtype.name == later.dtype


def is_array(x):
    return isinstance(x, np.ndarray)


DIFFERENTIABLE = [
    "add of a row", "divide_no_nan", "power", "maximum", "logaddexp", "hypot", "clip",
    "log1p", "mean of all", "var", "std", "max", "prod", "cumsum", "matmul", "matmul of a batch",
    "dot", "tensordot", "cross", "einsum", "einsum with dots", "einsum of three", "transpose",
    "stack", "tile", "roll", "pad", "pad by reflection", "take", "take_along_axis", "diff",
    "softmax", "log_softmax", "sigmoid", "softplus", "logsumexp", "segment_sum", "norm",
]  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradient(name):
    """Against differences of NumPy's function in double precision, in one random direction."""
    ours, reference, args = FUNCTIONS[name]
    first, rest = args[0], args[1:]
    x = _core.tensor(first)
    with tracefire.GradientTape() as tape:
        out = ours(x, *rest)
        weights = np.random.default_rng(1).normal(size=out.shape)
        loss = ops.sum(ops.multiply(out, weights.astype("float32")))
    grad = tape.gradient(loss, x).numpy()
    direction = np.random.default_rng(2).normal(size=first.shape)

    def value(step):
        moved = first.astype("float64") + step * direction
        return float((reference(moved, *[_double(r) for r in rest]) * weights).sum())

    numeric = (value(1e-5) - value(-1e-5)) / 2e-5
    assert float((grad * direction).sum()) == pytest.approx(numeric, rel=2e-3, abs=2e-3)


def _double(x):
    return x.astype("float64") if is_array(x) and x.dtype.kind == "f" else x


def test_missing_function_is_named():
    with pytest.raises(AttributeError, match=r"TF-E0601.*`nn.ctc_decode`"):
        ops.ctc_decode(np.ones((1, 4, 3), "float32"), np.array([4]))
    assert not hasattr(nn, "ctc_decode")
    with pytest.raises(AttributeError):
        nn.__wrapped__  # noqa: B018


def test_sparse_and_ragged_are_refused():
    with pytest.raises(ValueError, match="TF-E0601.*sparse=True"):
        ops.convert_to_tensor(M, sparse=True)


@pytest.mark.parametrize(
    "value, dtype",
    [
        (1, "int32"),
        (1.5, "float32"),
        (True, "bool"),
        ([1, 2.5], "float32"),
        ([], "float32"),
        (np.float64(2), "float32"),
        (np.arange(3), "int64"),
        (np.uint64([1]), "uint64"),
        (np.ones(2), "float32"),
        ([2**40], "int64"),
        (2**63, "uint64"),
        (np.ones(2, "float16"), "float16"),
        (np.ones(2, "uint8"), "uint8"),
    ],
    ids=str,
)
def test_dtypes_of_conversion(value, dtype):
    assert ops.convert_to_tensor(value).dtype == dtype


def test_conversion_of_mixed_nests():
    x = _core.tensor(np.float32(2.0))
    v = keras.Variable(3.0)
    out = ops.convert_to_tensor([[1, x], [v, 4.5]])
    assert out.dtype == "float32" and out.tolist() == [[1.0, 2.0], [3.0, 4.5]]
    assert ops.convert_to_numpy([x, v]).tolist() == [2.0, 3.0]
    assert ops.convert_to_tensor(M, "bfloat16").dtype == "bfloat16"
    assert ops.convert_to_tensor(np.float64(1), "float64").dtype == "float64"


def test_output_spec_keeps_open_dimensions():
    spec = core.compute_output_spec(
        lambda x, w: ops.concatenate([ops.matmul(x, w), x[:, :1]], axis=-1),
        keras.KerasTensor((None, 4)),
        keras.KerasTensor((4, 7)),
    )
    assert spec.shape == (None, 8)


def traced(function, *args):
    """`function` traced over arguments of these shapes, then called."""
    args = [_core.tensor(a) for a in args]
    with _core.TraceScope() as scope:
        out = function(*[scope.parameter(a.shape, a.dtype) for a in args])
        compiled = scope.finish(list(out) if isinstance(out, (list, tuple)) else [out])
    return [o.numpy() for o in compiled(*args)]


def test_cond_with_variables():
    counter = keras.Variable(0, dtype="int32")

    def step(x):
        def positive():
            counter.assign(counter + 1)
            return {"y": x * 2.0, "n": None}

        return ops.cond(ops.sum(x) > 0, positive, lambda: {"y": x - 1.0, "n": None})["y"]

    x = np.array([1.0, 2.0], "float32")
    with _core.TraceScope() as scope:
        function = scope.finish([step(scope.parameter((2,), "float32"))])
    assert function(_core.tensor(x))[0].tolist() == [2.0, 4.0]
    assert function(_core.tensor(-x))[0].tolist() == [-2.0, -3.0]
    assert int(counter.numpy()) == 1
    assert np.asarray(step(_core.tensor(x))).tolist() == [2.0, 4.0]
    assert int(counter.numpy()) == 2


def test_cond_of_different_structures_is_refused():
    with _core.TraceScope() as scope:
        flag = scope.parameter((), "bool")
        with pytest.raises(ValueError, match="same structure"):
            ops.cond(flag, lambda: (flag, flag), lambda: flag)


def test_switch():
    branches = [lambda x: x + 1.0, lambda x: x * 10.0, lambda x: -x]

    def run(i, x):
        return ops.switch(i, branches, x)

    for i, expected in ((0, 3.0), (1, 20.0), (2, -2.0), (9, -2.0), (-4, 3.0)):
        at = np.int32(i)
        assert traced(run, at, np.float32(2.0))[0] == expected
        assert float(run(at, ops.convert_to_tensor(2.0))) == expected


@pytest.mark.parametrize("limit", [None, 3])
def test_while_loop(limit):
    def run(x):
        return ops.while_loop(
            lambda i, y: ops.less(i, 5),
            lambda i, y: (i + 1, y * 2.0),
            (0, x),
            maximum_iterations=limit,
        )

    rounds = 5 if limit is None else limit
    at_once = [np.asarray(v) for v in run(_core.tensor(np.float32(1)))]
    for i, y in (traced(run, np.float32(1.0)), at_once):
        assert i == rounds and y == 2.0**rounds


def test_while_loop_that_assigns_is_refused_when_traced():
    v = keras.Variable(0.0)

    def body(i):
        v.assign(v + 1.0)
        return i + 1

    with _core.TraceScope() as scope:
        start = scope.parameter((), "int32")
        with pytest.raises(NotImplementedError, match="TF-E0601.*assigns the variable"):
            ops.while_loop(lambda i: ops.less(i, 3), body, (start,))


def test_scan_map_and_loops():
    x = np.arange(6.0, dtype="float32").reshape(3, 2)

    def total(carry, row):
        carry = carry + row
        return carry, carry * 2.0

    def run(x):
        carry, rows = ops.scan(total, ops.zeros((2,)), x)
        mapped = ops.map(lambda row: ops.sum(row), x)
        vector = ops.vectorized_map(lambda row: row * row, x)
        loop = ops.fori_loop(0, 3, lambda i, v: v + ops.cast(i, "float32"), ops.zeros(()))
        joined = ops.associative_scan(ops.add, x, axis=0)
        return carry, rows, mapped, vector, loop, joined

    expected = [x.sum(0), x.cumsum(0) * 2, x.sum(1), x * x, 3.0, x.cumsum(0)]
    for got in (traced(run, x), [np.asarray(v) for v in run(_core.tensor(x))]):
        for a, b in zip(got, expected):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_slices_with_fixed_and_moving_starts():
    x = np.arange(20.0, dtype="float32").reshape(4, 5)
    np.testing.assert_array_equal(np.asarray(ops.slice(x, (1, 2), (2, -1))), x[1:3, 2:])
    np.testing.assert_array_equal(np.asarray(ops.slice(x, (3, 0), (2, 2))), x[2:4, :2])
    start = np.array([1, 3], "int32")
    out = traced(lambda x, s: ops.slice(x, s, (2, 2)), x, start)[0]
    np.testing.assert_array_equal(out, x[1:3, 3:5])
    patch = -np.ones((2, 2), "float32")
    expected = x.copy()
    expected[1:3, 3:5] = patch
    now = ops.slice_update(x, (1, 3), patch)
    later = traced(lambda x, s, p: ops.slice_update(x, s, p), x, start, patch)[0]
    np.testing.assert_array_equal(np.asarray(now), expected)
    np.testing.assert_array_equal(later, expected)


def test_scatter():
    indices, values = np.array([[0, 1], [2, 0], [0, 1]]), np.array([1.0, 2.0, 3.0], "float32")
    expected = np.zeros((3, 2), "float32")
    np.add.at(expected, tuple(indices.T), values)
    np.testing.assert_array_equal(np.asarray(ops.scatter(indices, values, (3, 2))), expected)
    base = np.ones((3, 2), "float32")
    out = ops.scatter_update(base, indices[:2], values[:2])
    base[0, 1], base[2, 0] = 1.0, 2.0
    np.testing.assert_array_equal(np.asarray(out), base)


@pytest.mark.parametrize("reduction", [None, "add", "mul", "max", "min"])
def test_scatter_update_of_places_hit_twice(reduction):
    base = R.normal(size=(4, 3)).astype("float32")
    indices, updates = np.array([[1], [3], [1]]), R.normal(size=(3, 3)).astype("float32")
    expected = base.copy()
    if reduction is None:
        expected[1], expected[3] = updates[2], updates[1]  # the last one stands
    else:
        combine = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[reduction]
        combine.at(expected, indices[:, 0], updates)
    update = lambda b, i, u: ops.scatter_update(b, i, u, reduction)  # noqa: E731
    np.testing.assert_allclose(np.asarray(update(base, indices, updates)), expected, rtol=1e-6)
    np.testing.assert_allclose(traced(update, base, indices, updates)[0], expected, rtol=1e-6)
    with pytest.raises(errors.OutOfRangeError, match="scatter"):
        np.asarray(update(base, np.array([[4], [0], [0]]), updates))


def test_sorting_is_stable_with_nan_last():
    x = np.array([[2.0, np.nan, -np.inf, 2.0, np.inf], [0.0, -0.0, 0.0, np.nan, -1.0]], "float32")
    order = np.argsort(x, axis=1, kind="stable")
    np.testing.assert_array_equal(np.asarray(ops.argsort(x, axis=1)), order)
    np.testing.assert_array_equal(np.asarray(ops.sort(x, axis=1)), np.sort(x, axis=1))
    np.testing.assert_array_equal(np.asarray(ops.sort(x, axis=None)), np.sort(x, axis=None))
    np.testing.assert_array_equal(np.asarray(ops.sort(x > 0, axis=0)), np.sort(x > 0, axis=0))


def test_products_of_bytes_are_int32():
    a = R.integers(-128, 128, (5, 70)).astype("int8")
    b = R.integers(-128, 128, (70, 3)).astype("int8")
    expected = a.astype("int32") @ b.astype("int32")
    for product in (ops.matmul(a, b), ops.tensordot(a, b, axes=1), ops.dot(a, b), ops.einsum("ij,jk", a, b)):
        assert keras.backend.standardize_dtype(product.dtype) == "int32"
        np.testing.assert_array_equal(np.asarray(product), expected)
    unsigned = a.view("uint8")
    got = _core.ops.int_matmul(_core.tensor(unsigned), _core.tensor(b)).numpy()
    np.testing.assert_array_equal(got, unsigned.astype("int32") @ b.astype("int32"))


def test_gradient_of_cumprod_at_zeros():
    x = np.array([2.0, 0.0, 3.0, 4.0], "float32")
    with tracefire.GradientTape() as tape:
        v = ops.convert_to_tensor(x)
        tape.watch(v)
        total = ops.sum(ops.cumprod(v))
    # y = x0 + x0 x1 + x0 x1 x2 + x0 x1 x2 x3
    np.testing.assert_array_equal(np.asarray(tape.gradient(total, v)), [1.0, 2.0 * (1 + 3 + 12), 0.0, 0.0])


def test_attention_matches_numpy():
    q, k, v = (R.normal(size=(2, 5, 3, 4)).astype("float32") for _ in range(3))
    logits = np.einsum("bthd,bshd->bhts", q, k) / 2.0
    logits = np.where(np.tri(5, 5, dtype=bool), logits, -np.inf)
    expected = np.einsum("bhts,bshd->bthd", softmax(logits), v)
    got = ops.dot_product_attention(q, k, v, is_causal=True)
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-5, atol=1e-6)


def test_data_dependent_sizes_work_outside_a_trace_only():
    x = np.array([0.0, 3.0, 0.0, 1.0], "float32")
    assert ops.nonzero(x)[0].tolist() == [1, 3]
    assert ops.bincount(np.array([1, 1, 3])).tolist() == [0, 2, 0, 1]
    with _core.TraceScope() as scope:
        p = scope.parameter((4,), "float32")
        with pytest.raises(errors.InvalidArgumentError, match="TF-E0113"):
            ops.nonzero(p)
        with pytest.raises(errors.InvalidArgumentError, match="TF-E0113"):
            ops.bincount(ops.cast(p, "int32"))


def test_device_names():
    with keras.device("cpu:0"):
        assert float(ops.add(1.0, 2.0)) == 3.0
    with pytest.raises(ValueError, match="TF-E0201"), keras.device(3):
        pass


def test_gradient_function():
    grad = core.grad(lambda x, y: ops.sum(x * x * y), argnums=(0, 1))
    gx, gy = grad(np.array([1.0, 2.0], "float32"), np.array([3.0, 4.0], "float32"))
    assert np.asarray(gx).tolist() == [6.0, 16.0] and np.asarray(gy).tolist() == [1.0, 4.0]


@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (2, 4, 2)])
def test_the_gradient_of_qr_is_that_of_its_factors(shape):
    x = R.normal(size=shape)
    a, b = R.normal(size=shape), R.normal(size=(*shape[:-2], shape[-1], shape[-1]))

    def weighed(x):
        q, r = np.linalg.qr(x)
        return (q * a).sum() + (r * b).sum()

    at = ops.convert_to_tensor(x, "float64")
    with tracefire.GradientTape() as tape:
        q, r = ops.qr(at)
        y = ops.sum(q * ops.convert_to_tensor(a, "float64")) + ops.sum(
            r * ops.convert_to_tensor(b, "float64")
        )
    got = np.asarray(tape.gradient(y, at))
    expected = np.zeros(shape)
    for i in np.ndindex(*shape):
        step = np.zeros(shape)
        step[i] = 1e-6
        expected[i] = (weighed(x + step) - weighed(x - step)) / 2e-6
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-7)


def test_a_gradient_of_qr_that_is_none_says_so():
    x = ops.convert_to_tensor(R.normal(size=(2, 3)).astype("float32"))
    with tracefire.GradientTape() as tape:
        q, r = ops.qr(x)
        y = ops.sum(r)
    with pytest.raises(NotImplementedError, match="TF-E0601.*qr"):
        tape.gradient(y, x)


@pytest.mark.parametrize("subscripts", ["ij,kk->iz", "ij,jk->ii"])
def test_an_einsum_whose_result_cannot_be_is_an_argument_error(subscripts):
    with pytest.raises(errors.InvalidArgumentError, match=r"TF-E\d+\] einsum .*the result has '[zi]', which"):
        ops.einsum(subscripts, np.ones((3, 3)), np.ones((3, 3)))


@pytest.mark.parametrize("value", [1.5, -1.5, [1.5, -2.75, 3.0]])
def test_a_conversion_to_integers_is_a_cast_as_with_other_backends(value):
    converted = keras.ops.convert_to_tensor(value, dtype="int32")
    np.testing.assert_array_equal(converted, np.array(value).astype("int32"))
