# SPDX-License-Identifier: Apache-2.0
"""tracefire.Variable in expressions, as in TensorFlow; and the operators that Tensor shares with it."""

import copy
import operator
import pickle

import numpy as np
import pytest

tracefire = pytest.importorskip("tracefire")
from tracefire import errors  # noqa: E402

A = np.arange(6, dtype="float32").reshape(2, 3) + 1
BITS = np.arange(6, dtype="int32").reshape(2, 3) + 1
BINARY = {
    name: getattr(operator, name)
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "eq", "ne", "lt", "le", "gt", "ge")
}
WHOLE = {name: getattr(operator, name) for name in ("and_", "or_", "xor", "lshift", "rshift")}
KINDS = {"Variable": tracefire.Variable, "Tensor": tracefire.tensor}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*BINARY, *WHOLE, "divmod"])
def test_binary_operators_are_numpys_with_every_partner(kind, name):
    function = {**BINARY, **WHOLE, "divmod": divmod}[name]
    array = BITS if name in WHOLE else A
    two = array.dtype.type(2)
    partners = [two.item(), two, np.full_like(array, 2), tracefire.tensor(np.full_like(array, 2)),
                tracefire.Variable(np.full_like(array, 2))]  # fmt: skip
    x = KINDS[kind](array)
    for partner in partners:
        for got, want in (
            (function(x, partner), function(array, np.full_like(array, 2))),
            (function(partner, x), function(np.full_like(array, 2), array)),
        ):
            for one, other in zip(got, want) if name == "divmod" else [(got, want)]:
                assert isinstance(one, tracefire.Tensor), type(partner)
                assert one.dtype == other.dtype.name
                np.testing.assert_allclose(one.numpy(), other, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_products_and_unary_operators(kind):
    x = KINDS[kind](A)
    for other in (A.T, tracefire.tensor(A.T), tracefire.Variable(A.T)):
        assert isinstance(x @ other, tracefire.Tensor)
        np.testing.assert_array_equal(x @ other, A @ A.T)
        np.testing.assert_array_equal(other @ x, A.T @ A)
    np.testing.assert_array_equal(-x, -A)
    np.testing.assert_array_equal(+x, A)
    np.testing.assert_array_equal(abs(-x), A)
    np.testing.assert_array_equal(~KINDS[kind](BITS), ~BITS)
    np.testing.assert_array_equal(~KINDS[kind](A > 2), A <= 2)
    np.testing.assert_array_equal(x.T, A.T)


@pytest.mark.parametrize("kind", KINDS)
def test_indexing_length_iteration_and_numbers(kind):
    x = KINDS[kind](A)
    for key in (0, -1, (1, 2), (slice(None), slice(None, None, 2)), ..., None, [1, 0]):
        np.testing.assert_array_equal(x[key], A[key])
    assert len(x) == 2 and x.ndim == 2 and x.size == 6 and x.tolist() == A.tolist()
    for row, want in zip(x, A, strict=True):
        np.testing.assert_array_equal(row, want)
    scalar = KINDS[kind](np.float32(2.5))
    assert float(scalar) == 2.5 and int(scalar) == 2 and bool(scalar) and complex(scalar) == 2.5
    assert scalar.item() == 2.5 and f"{scalar:.1f}" == "2.5"
    assert "abcd"[KINDS[kind](np.int32(2))] == "c"
    assert not KINDS[kind](0.0)
    for wrong in (lambda: float(x), lambda: bool(x), lambda: int(x)):
        with pytest.raises(errors.InvalidArgumentError, match="TF-E0101"):
            wrong()
    with pytest.raises(errors.DTypeError, match="TF-E0102"):
        "abcd"[scalar]


@pytest.mark.parametrize("kind", KINDS)
def test_numpy_takes_both(kind):
    x = KINDS[kind](A)
    for made in (np.array(x), np.asarray(x), x.numpy(), np.asarray(x, dtype="float64")):
        assert isinstance(made, np.ndarray)
        np.testing.assert_array_equal(made, A)
    np.testing.assert_allclose(np.exp(x), np.exp(A))
    np.testing.assert_array_equal(np.concatenate([x, x]), np.concatenate([A, A]))
    # An array does not take the tensor apart, so that the result stays on the device.
    assert isinstance(A + x, tracefire.Tensor) and isinstance(np.float64(2) * x, tracefire.Tensor)


def test_assignments_change_the_variable_and_return_it():
    v = tracefire.Variable(A, name="w")
    assert v.assign_add(1) is v and v.assign_sub(A) is v
    np.testing.assert_array_equal(v, np.ones((2, 3)))
    assert v.assign(A) is v
    np.testing.assert_array_equal(v.assign_add(A).read_value(), 2 * A)
    np.testing.assert_array_equal(v.value(), 2 * A)


@pytest.mark.parametrize("name", ["iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "imatmul"])
def test_in_place_operators_are_refused_as_in_tensorflow(name):
    v = tracefire.Variable(A)
    with pytest.raises(RuntimeError, match="TF-E0502.*assign_add"):
        getattr(operator, name)(v, 1)
    t = tracefire.tensor(A)
    t += 1  # a new tensor, as ever
    np.testing.assert_array_equal(t, A + 1)


def test_variables_are_keys_by_their_storage():
    v, w = tracefire.Variable(1.0), tracefire.Variable(1.0)
    assert {v: "v", w: "w"}[v] == "v" and hash(v) != hash(w)
    assert bool(v == w) and v is not w
    assert (v == None) is False and (v != None) is True  # noqa: E711


def test_copies_are_variables_of_their_own():
    v = tracefire.Variable(A, name="w", trainable=False)
    for other in (copy.deepcopy(v), copy.copy(v), pickle.loads(pickle.dumps(v))):
        other.assign_add(1)
        assert (other.name, other.trainable) == ("w", False)
        np.testing.assert_array_equal(v, A)
        np.testing.assert_array_equal(other, A + 1)


def test_gradients_flow_through_operators_of_a_variable():
    v = tracefire.Variable(A)
    with tracefire.GradientTape() as tape:
        loss = ((v * v)[0] @ tracefire.tensor(np.ones(3, "float32"))) + v[1, 2] ** 3 / 2
    want = np.zeros((2, 3), "float32")
    want[0], want[1, 2] = 2 * A[0], 1.5 * A[1, 2] ** 2
    np.testing.assert_allclose(tape.gradient(loss, v), want)


def test_a_traced_function_reads_the_variable_in_each_call():
    core = tracefire._core
    v = tracefire.Variable(1.0)
    with core.TraceScope() as scope:
        x = scope.parameter((2,), "float32")
        v.assign_add(1)
        function = scope.finish([x * v])
    ones = core.tensor(np.ones(2, "float32"))
    assert [function(ones)[0].tolist() for _ in range(2)] == [[2, 2], [3, 3]]


@pytest.mark.parametrize("wrong", [None, object(), {}, [None]])
def test_what_is_no_value_is_refused_with_a_code(wrong):
    with pytest.raises(errors.Error, match=r"\[TF-E01\d\d\]"):
        tracefire.Variable(wrong)
    with pytest.raises(errors.Error, match=r"\[TF-E01\d\d\]"):
        tracefire.Variable(1.0).assign(wrong)


def test_jacobians_have_a_row_for_each_element_of_the_target():
    x, w = tracefire.Variable(A), tracefire.Variable(np.float32(3))
    alone = tracefire.Variable(1.0)
    with tracefire.GradientTape(persistent=True) as tape:
        y = x[:, :2] * x[:, 1:] * w
        z = tracefire._core.ops.reduce_sum(x, axes=[0, 1])
    of_x, of_w, none = tape.jacobian(y, [x, w, alone])
    want = np.zeros((2, 2, 2, 3), "float32")
    for i in range(2):
        for j in range(2):
            want[i, j, i, j], want[i, j, i, j + 1] = 3 * A[i, j + 1], 3 * A[i, j]
    np.testing.assert_allclose(of_x, want)
    np.testing.assert_allclose(of_w, A[:, :2] * A[:, 1:])
    assert none is None
    np.testing.assert_array_equal(tape.jacobian(y, alone, "zero"), np.zeros((2, 2)))
    np.testing.assert_array_equal(tape.jacobian(z, x), np.ones((2, 3)))
    with tracefire.GradientTape() as once:
        y = x * 2
    with pytest.raises(RuntimeError, match="TF-E0502.*persistent"):
        once.jacobian(y, x)


def test_a_gradient_of_ones_own_gives_one_value_for_each_argument():
    double = tracefire.custom_gradient(lambda x: (x * 2, lambda d: (d, d)))
    x = tracefire.tensor(1.0)
    with tracefire.GradientTape() as tape:
        y = double(x)
    with pytest.raises(errors.InvalidArgumentError, match="TF-E0103.*returned 2 values. Expected: 1"):
        tape.gradient(y, x)


def test_fractions_are_not_cut_off_by_assigning():
    v = tracefire.Variable([1, 2])
    with pytest.raises(TypeError, match="TF-E0"):
        v.assign([1.5, 2])
    assert v.numpy().tolist() == [1, 2]
    assert v.assign([3, 4]).numpy().tolist() == [3, 4]
    assert tracefire.Variable([1.0], name=None).assign([2]).numpy().tolist() == [2.0]
