# SPDX-License-Identifier: Apache-2.0
"""Traced functions: parameters, captures, variables, scopes, and views of what they write."""

import gc

import numpy as np
import pytest

core = pytest.importorskip("tracefire._core")
ops = core.ops


def test_a_function_computes_what_was_traced():
    with core.TraceScope("double") as scope:
        x = scope.parameter((2, 3), "float32")
        assert core.is_tracing()
        assert x.shape == (2, 3)
        function = scope.finish([ops.add(x, x), ops.neg(x)])
        assert not core.is_tracing()
    double, negative = function(np.arange(6, dtype="float32").reshape(2, 3))
    assert double.tolist() == [[0, 2, 4], [6, 8, 10]]
    assert negative.numpy()[1, 2] == -5
    assert function.parameters == 1
    assert "add" in function.text()
    assert "add" in function.explain() or "kernel" in function.explain()


def test_one_function_serves_many_sizes():
    with core.TraceScope() as scope:
        x = scope.parameter((None, 3), "float32")
        assert x.shape == (None, 3)
        assert str(x.dims[0]) != "None" and x.dims[1] == 3
        flat = ops.reshape(x, shape=(x.dims[0] * 3,))
        function = scope.finish([ops.reduce_sum(x, axes=[1]), flat])
    for rows in (1, 4, 0, 7):
        given = np.random.default_rng(rows).standard_normal((rows, 3)).astype("float32")
        total, flat = function(given)
        np.testing.assert_allclose(total.numpy(), given.sum(1), rtol=1e-6)
        np.testing.assert_array_equal(flat.numpy(), given.reshape(-1))


def test_dims_compute():
    n = core.Dim("N", 64)
    assert n.value is None and core.Dim("N") != n
    assert (n + 1) - 1 == n
    assert n * 28 // 28 == n
    assert hash(n) == hash((2 * n) // 2)
    assert str(n) == "N"


def test_arguments_must_fit():
    with core.TraceScope("fits") as scope:
        x = scope.parameter((2,), "float32")
        function = scope.finish([x])
    with pytest.raises(ValueError, match=r"TF-E0101.*fits"):
        function(core.tensor([1.0]))
    with pytest.raises(TypeError, match="TF-E0102"):
        function(core.tensor([1, 2]))
    with pytest.raises(ValueError, match="TF-E0106"):
        function()


def test_values_do_not_exist_while_tracing():
    with core.TraceScope() as scope:
        x = scope.parameter((), "float32")
        assert "traced" in repr(x)
        for observe in (float, bool, lambda t: t.numpy(), lambda t: t.item(), np.array):
            with pytest.raises(RuntimeError, match="TF-E0114"):
                observe(x)
    with pytest.raises(RuntimeError, match="TF-E0114"):
        ops.neg(x)


def test_small_constants_are_nodes_and_large_ones_are_captured():
    with core.TraceScope() as scope:
        small = core.tensor(np.arange(16, dtype="float32"))
        large = core.tensor(np.arange(17, dtype="float32"))
        function = scope.finish([ops.neg(small), ops.neg(large)])
    assert function.text().count("constant") == 1
    small, large = function()
    assert small.tolist() == [-float(i) for i in range(16)]
    assert large.tolist() == [-float(i) for i in range(17)]


def test_outer_tensors_are_captured():
    outer = ops.mul(core.tensor([1.0, 2.0]), core.tensor([10.0, 10.0]))
    with core.TraceScope() as scope:
        x = scope.parameter((2,), "float32")
        function = scope.finish([ops.add(x, outer)])
    del outer
    gc.collect()
    assert function(core.tensor([1.0, 1.0]))[0].tolist() == [11.0, 21.0]


def test_variables_are_read_and_assigned():
    v = core.Variable([1.0, 2.0], name="weights")
    assert (v.name, v.trainable, v.shape, v.dtype) == ("weights", True, (2,), "float32")
    with core.TraceScope() as scope:
        g = scope.parameter((2,), "float32")
        before = v.read()
        v.assign(ops.sub(before, g))
        function = scope.finish([before, v.read()])
    assert v.numpy().tolist() == [1.0, 2.0]
    old, new = function(core.tensor([0.5, 0.5]))
    assert old.tolist() == [1.0, 2.0]
    assert new.tolist() == v.numpy().tolist() == [0.5, 1.5]
    function(core.tensor([0.5, 0.5]))
    assert v.numpy().tolist() == [0.0, 1.0]
    assert [u.name for u in function.variables] == ["weights"]
    assert hash(function.variables[0]) == hash(v)


def test_variables_keep_dtype_and_shape():
    v = core.Variable([1.0, 2.0], name="v")
    v.assign([3, 4])
    assert v.numpy().tolist() == [3.0, 4.0]
    with pytest.raises(TypeError, match="TF-E0102.*'v'"):
        v.assign(core.tensor([1, 2]))
    with pytest.raises(ValueError, match="TF-E0101.*'v'"):
        v.assign([1.0])
    assert np.asarray(v).tolist() == [3.0, 4.0]


def step_function(v):
    with core.TraceScope() as scope:
        v.assign(ops.add(v.read(), core.tensor(1.0)))
        return scope.finish([])


def test_views_keep_their_value_when_the_variable_changes():
    v = core.Variable(np.zeros(1000, "float32"), device="/CPU:0")
    step = step_function(v)
    step()
    view = v.numpy()
    pending = ops.add(v.read(), core.tensor(10.0))
    capsule = np.from_dlpack(v.read())
    for _ in range(3):
        step()
    np.testing.assert_array_equal(view, np.full(1000, 1.0))
    np.testing.assert_array_equal(capsule, np.full(1000, 1.0))
    np.testing.assert_array_equal(pending.numpy(), np.full(1000, 11.0))
    np.testing.assert_array_equal(v.numpy(), np.full(1000, 4.0))


def test_leaving_by_an_exception_changes_nothing():
    v = core.Variable(1.0)
    with pytest.raises(ZeroDivisionError):
        with core.TraceScope() as scope:
            v.assign(ops.add(v.read(), core.tensor(1.0)))
            raise ZeroDivisionError
    assert not core.is_tracing()
    assert v.numpy() == 1.0
    with pytest.raises(ValueError, match="TF-E0502"):
        scope.finish([])
    with core.TraceScope():
        pass
    assert not core.is_tracing()


def test_a_failed_finish_ends_the_scope():
    with core.TraceScope() as scope:
        x = scope.parameter((), "float32")
    with core.TraceScope() as scope:
        with pytest.raises(core.Error):
            scope.finish([x])
        assert not core.is_tracing()


def test_abstract_scopes_only_infer():
    with core.abstract() as scope:
        assert core.is_abstract() and not core.is_tracing()
        x = scope.parameter((2, 3), "float32")
        y = ops.matmul(x, core.tensor(np.ones((3, 4), "float32")))
        assert (y.shape, y.dtype) == ((2, 4), "float32")
        assert core.Variable(np.ones(3, "float32")).read().shape == (3,)
        with pytest.raises(core.Error):
            y.numpy()
        with pytest.raises(ValueError, match="TF-E0101"):
            ops.matmul(x, x)
    assert not core.is_abstract()


def test_init_scope_leaves_the_trace():
    with core.TraceScope() as scope:
        x = scope.parameter((), "float32")
        with core.init_scope():
            assert not core.is_tracing()
            value = ops.add(core.tensor(1.0), core.tensor(2.0))
            assert value.item() == 3.0
            v = core.Variable(value)
        assert core.is_tracing()
        function = scope.finish([ops.add(x, v.read())])
    assert function(core.tensor(1.0))[0].item() == 4.0


def test_functions_inside_functions():
    v = core.Variable(1.0)
    with core.TraceScope() as scope:
        x = scope.parameter((), "float32")
        v.assign(ops.add(v.read(), x))
        inner = scope.finish([ops.mul(x, x)])
    with core.TraceScope() as scope:
        x = scope.parameter((), "float32")
        outer = scope.finish([ops.add(inner(x)[0], v.read())])
    assert outer(core.tensor(3.0))[0].item() == 13.0
    assert v.numpy() == 4.0


def epoch_function(v, batch=None):
    with core.TraceScope("step") as scope:
        x = scope.parameter((batch, 2), "float32")
        v.assign(ops.add(v.read(), ops.reduce_sum(x, axes=[0])))
        return scope.finish([ops.reduce_sum(x, axes=[1]), v.read()])


@pytest.mark.parametrize("batch", [None, 3])
def test_run_epoch(batch):
    data = np.arange(40, dtype="float32").reshape(20, 2)
    order = np.random.default_rng(0).permutation(20).astype("int32")
    v = core.Variable([0.0, 0.0])
    function = epoch_function(v, batch)
    rows, total = function.run_epoch([data], order, 3, 0, 4)
    np.testing.assert_allclose(rows.numpy(), data[order[9:12]].sum(1))
    np.testing.assert_allclose(total.numpy(), data[order[:12]].sum(0))
    function.run_epoch([data], core.tensor(order), 3, 4, 6)
    np.testing.assert_allclose(v.numpy(), data[order[:18]].sum(0))


def test_run_epoch_in_order_and_collecting():
    data = np.arange(40, dtype="float32").reshape(20, 2)
    v = core.Variable([0.0, 0.0])
    function = epoch_function(v)
    (rows,) = function.run_epoch([data], None, 4, 1, 5, collect=[0])
    np.testing.assert_allclose(rows.numpy(), data[4:].sum(1))
    np.testing.assert_allclose(v.numpy(), data[4:].sum(0))
    with core.TraceScope() as scope:
        x = scope.parameter((None, 2), "float32")
        function = scope.finish([ops.neg(x), ops.add(x, x)])
    negative, double = function.run_epoch([data], None, 5, 0, 4, collect=True)
    np.testing.assert_array_equal(negative.numpy(), -data)
    np.testing.assert_array_equal(double.numpy(), data * 2)
    with pytest.raises(ValueError, match="TF-E0103"):
        function.run_epoch([data], None, 5, 0, 4, collect=[2])


def test_run_epoch_checks_its_arguments():
    v = core.Variable([0.0, 0.0])
    function = epoch_function(v)
    data = np.zeros((6, 2), "float32")
    with pytest.raises(ValueError):
        function.run_epoch([data], np.arange(6, dtype="int32"), 3, 1, 1)
    with pytest.raises(ValueError):
        function.run_epoch([data], np.arange(3, dtype="int32"), 3, 0, 2)
    with pytest.raises(ValueError):
        function.run_epoch([data, data], None, 3, 0, 2)
    with pytest.raises(core.Error):
        function.run_epoch([data.astype("float64")], None, 3, 0, 2)
    assert v.numpy().tolist() == [0.0, 0.0]
