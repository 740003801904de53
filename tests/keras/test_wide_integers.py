# SPDX-License-Identifier: Apache-2.0
"""Integers of 64 bits stay what they are, as in Keras on TensorFlow; what does not fit is an error."""

import keras
import numpy as np
import pytest
from keras import ops
from keras_tracefire.src.ops import core
from keras_tracefire.src.ops import numpy as knp

BIG = np.array([2**40, -(2**40), 2**31, 3], "int64")


@pytest.mark.parametrize(
    "function",
    [
        lambda x: ops.add(x, 1),
        lambda x: ops.multiply(x, ops.convert_to_tensor([1, 2, 3, 4], "int32")),
        lambda x: ops.maximum(x, 0),
        lambda x: ops.where(x > 0, x, -x),
        lambda x: ops.sum(x),
        lambda x: ops.max(x),
        lambda x: ops.cumsum(x),
        lambda x: ops.sort(x),
        lambda x: ops.concatenate([x, x]),
        lambda x: ops.stack([x, x]),
        lambda x: ops.abs(x),
        lambda x: ops.reshape(x, (2, 2)),
        lambda x: x + 1,
    ],
)
def test_functions_of_int64_equal_numpys(function):
    # The same expression of NumPy, whose functions have the same names.
    names = {"ops": np}
    code = function.__code__
    import types

    numpy_ops = types.SimpleNamespace(
        **{n: getattr(np, n) for n in ("add", "multiply", "maximum", "where", "sum", "max", "cumsum",
                                       "sort", "concatenate", "stack", "abs", "reshape")},
        convert_to_tensor=lambda v, dtype: np.array(v, dtype),
    )
    names["ops"] = numpy_ops
    expected = types.FunctionType(code, names)(BIG)
    got = function(ops.convert_to_tensor(BIG))
    assert np.asarray(got).dtype == "int64"
    np.testing.assert_array_equal(got, expected)


def test_symbolic_results_have_the_same_dtype():
    inputs = keras.Input((4,), dtype="int64")
    assert ops.add(inputs, 1).dtype == "int64"
    model = keras.Model(inputs, ops.add(inputs, 1))
    np.testing.assert_array_equal(model(BIG[None]), BIG[None] + 1)


def test_indices_of_64_bits_are_not_cut():
    table = np.arange(12, dtype="float32").reshape(4, 3)
    far = np.array([2**32 + 1], "int64")
    with pytest.raises(IndexError, match="TF-E0301"):
        np.asarray(ops.take(table, far, axis=0))
    np.testing.assert_array_equal(ops.take(table, np.array([-1, 0]), axis=0), table[[-1, 0]])
    np.testing.assert_array_equal(ops.one_hot(far, 4), np.zeros((1, 4)))
    np.testing.assert_array_equal(ops.segment_sum(np.ones(2, "float32"), BIG[2:], 4), [0, 0, 0, 1])
    scores = np.float32([[0, 1, 2, 3]])
    np.testing.assert_array_equal(ops.one_hot(np.array([3], "uint32"), 4), [[0, 0, 0, 1]])
    with pytest.raises(IndexError, match="TF-E0301"):
        np.asarray(ops.sparse_categorical_crossentropy(far, scores, from_logits=True))
    with pytest.raises(IndexError, match="TF-E0301"):
        np.asarray(ops.take_along_axis(table, far[None], axis=1))


def test_indices_are_integers():
    x = np.float32([1, 2])
    for wrong in (np.float32([1.7]), 0.5, [0.0]):
        with pytest.raises(TypeError, match="TF-E0102.*float32"):
            ops.take(x, wrong)
    with pytest.raises(TypeError, match="TF-E0102.*float32"):
        ops.take_along_axis(x, np.float32([0]))
    assert tuple(ops.take(x, []).shape) == (0,)


@pytest.mark.parametrize("value,dtype", [(300, "uint8"), (-1, "uint32"), (2**31, "int32")])
def test_numbers_that_do_not_fit_are_errors(value, dtype):
    for given in (value, [value], [[0, value]]):
        with pytest.raises(ValueError, match="TF-E0103.*does not fit"):
            ops.convert_to_tensor(given, dtype=dtype)
    with pytest.raises(ValueError, match="TF-E0103.*does not fit"):
        ops.add(ops.convert_to_tensor([1], dtype), value)


def test_lists_without_an_end():
    itself, twice, deep = [], [1.0], [1.0]
    itself.append(itself)
    for _ in range(60):
        twice = [twice, twice]
    for _ in range(70):
        deep = [deep]
    for endless in (itself, twice, deep, [ops.ones(1), twice]):
        # Keras's own functions look for symbolic tensors in them first.
        with pytest.raises(ValueError, match="TF-E0101"):
            core.convert_to_tensor(endless)
        with pytest.raises(ValueError, match="TF-E0101"):
            knp.add(1.0, endless)


def test_tensors_of_float64_are_not_rounded():
    x = ops.convert_to_tensor([1 / 3, 1e300], "float64")
    for got, expected in [
        (ops.add(x, 1.0), np.array([1 / 3, 1e300]) + 1),
        (ops.mean(x), np.mean([1 / 3, 1e300])),
        (ops.maximum(x, ops.convert_to_tensor([0.0, 0.0])), np.array([1 / 3, 1e300])),
        (ops.var(x[:1]), 0.0),
        (knp.median(x[:1]), 1 / 3),
    ]:
        assert np.asarray(got).dtype == "float64"
        np.testing.assert_allclose(got, expected, rtol=1e-15)


def test_ranges_of_wide_integers():
    np.testing.assert_array_equal(ops.arange(2**40, 2**40 + 3), np.arange(2**40, 2**40 + 3))
    np.testing.assert_array_equal(
        ops.arange(2**31, 2**31 + 3, dtype="uint32"), np.arange(2**31, 2**31 + 3)
    )
    got = np.asarray(ops.arange(0, 4096, dtype="float16"))
    np.testing.assert_array_equal(got, np.arange(4096).astype("float16"))


@pytest.mark.parametrize("step", [0, 0.0])
def test_a_range_needs_a_step(step):
    with pytest.raises(ValueError, match="TF-E0103.*step"):
        ops.arange(0, 3, step)
    for bounds in ((float("nan"),), (0, float("inf"))):
        with pytest.raises(ValueError, match="TF-E0103"):
            ops.arange(*bounds)
