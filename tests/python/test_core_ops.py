# SPDX-License-Identifier: Apache-2.0
"""The functions of `ops`, which are made from the op table, and the errors they raise."""

import inspect
import pathlib
import re

import numpy as np
import pytest

core = pytest.importorskip("tracefire._core")
ops = core.ops
BOUND = [row for row in core.op_specs() if row["bound"]]


def test_every_row_has_a_documented_function():
    assert len(BOUND) > 80
    for row in BOUND:
        function = getattr(ops, row["name"])
        assert function.__name__ == row["name"]
        assert row["doc"] in function.__doc__
        parameters = inspect.signature(function).parameters
        keywords = [n for n, p in parameters.items() if p.kind is inspect.Parameter.KEYWORD_ONLY]
        assert sorted(keywords) == sorted(a["name"] for a in row["attrs"])


def test_results_are_one_tensor_or_a_tuple():
    x = core.tensor([3.0, 1.0, 2.0])
    assert ops.add(x, x).tolist() == [6.0, 2.0, 4.0]
    values, indices = ops.top_k(x, k=2)
    assert (values.tolist(), indices.tolist()) == ([3.0, 2.0], [0, 2])


def test_variables_are_operands():
    v = core.Variable([1.0, 2.0])
    assert ops.mul(v, v).tolist() == [1.0, 4.0]


def test_any_number_of_operands_may_be_a_list():
    x = core.tensor([1])
    assert ops.concat(x, x, axis=0).tolist() == [1, 1]
    assert ops.concat([x, x, x], axis=0).tolist() == [1, 1, 1]


def test_attributes_of_every_type():
    x = core.tensor(np.arange(6, dtype="float32").reshape(2, 3))
    assert ops.reduce_sum(x, axes=[0], keepdims=True).shape == (1, 3)
    assert ops.reduce_sum(x, axes=(np.int64(1),)).tolist() == [3.0, 12.0]
    assert ops.reduce_sum(x, axes=1, keepdims=None).shape == (2,)
    assert ops.reshape(x, shape=(3, 2)).shape == (3, 2)
    assert ops.cast(x, dtype=np.int32).dtype == "int32"
    assert ops.softmax(x, axis=np.int32(1)).shape == (2, 3)


def test_operands_of_the_wrong_kind():
    x = core.tensor([1.0])
    with pytest.raises(TypeError, match=r"TF-E0102.*add: operand 1.*float 2.0.*Tensor"):
        ops.add(x, 2.0)
    with pytest.raises(TypeError, match="TF-E0102"):
        ops.add(x, core.tensor([1]))
    with pytest.raises(ValueError, match=r"TF-E0101.*\(2,\)"):
        ops.add(core.tensor([1.0, 2.0, 3.0]), core.tensor([1.0, 2.0]))
    with pytest.raises(ValueError, match="TF-E0106"):
        ops.add(x)


def test_attributes_of_the_wrong_kind():
    x = core.tensor([[1.0]])
    with pytest.raises(ValueError, match="Did you mean 'keepdims'"):
        ops.reduce_sum(x, axes=[0], keepdim=True)
    with pytest.raises(ValueError, match=r"attribute 'axes' is float 0.5; expected a sequence"):
        ops.reduce_sum(x, axes=0.5)
    with pytest.raises(IndexError, match="TF-E0104"):
        ops.reduce_sum(x, axes=[2])
    with pytest.raises(ValueError, match="TF-E0103"):
        ops.cast(x, dtype="float33")
    with pytest.raises(ValueError, match="TF-E0103"):
        ops.reshape(x)


def test_unknown_names():
    with pytest.raises(AttributeError, match="TF-E0105.*Did you mean 'matmul'"):
        ops.matmull
    assert not hasattr(ops, "no_such_operation")
    with pytest.raises(core.Error, match="Did you mean 'reduce_sum'"):
        core.apply("reducesum", [])
    with pytest.raises(AttributeError):
        core.no_such_name


def test_apply_by_name():
    x = core.tensor([[1.0, 2.0]])
    assert [t.tolist() for t in core.apply("reduce_max", [x], {"axes": [1]})] == [[2.0]]


def test_errors_carry_codes_and_fit_builtin_classes():
    catalogue = core.error_catalogue()
    assert catalogue["ShapeMismatch"] == (101, "InvalidArgument")
    with pytest.raises(core.Error) as caught:
        ops.add(core.tensor([1.0, 2.0, 3.0]), core.tensor([1.0, 2.0]))
    assert caught.value.code == "TF-E0101"
    assert isinstance(caught.value, ValueError)


def test_errors_of_the_work_name_the_users_line():
    x = core.tensor([[1.0, 2.0]])
    labels = core.tensor([7])
    line = inspect.currentframe().f_lineno + 1
    loss = ops.softmax_cross_entropy(x, labels)
    with pytest.raises(IndexError, match=rf"{re.escape(pathlib.Path(__file__).name)}:{line}"):
        loss.numpy()
    with pytest.raises(IndexError):
        loss.numpy()


def here():
    """This file and the line of the caller's call, as errors name it."""
    return core.user_location()


def test_user_location_skips_the_frameworks():
    file, line = here()
    assert file == __file__
    assert line == here.__code__.co_firstlineno + 2
    namespace = {"__name__": "keras.src.layers", "core": core}
    exec(compile("def call():\n    return core.user_location()", "layer.py", "exec"), namespace)
    file, line = namespace["call"]()
    assert file == __file__
    assert line == inspect.currentframe().f_lineno - 2


def test_operators_of_the_package():
    import tracefire  # noqa: F401

    x = core.tensor([1.0, 2.0])
    assert (x + 1).tolist() == [2.0, 3.0]
    assert (np.array([1.0, 1.0], "float32") + x).tolist() == [2.0, 3.0]
    assert type(np.ones(2, "float32") * x) is core.Tensor
    assert (x == x).tolist() == [True, True]
    assert len({x, x}) == 1
