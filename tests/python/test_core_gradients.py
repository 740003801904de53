# SPDX-License-Identifier: Apache-2.0
"""Gradients through tapes and inside traced functions, against finite differences."""

import numpy as np
import pytest

core = pytest.importorskip("tracefire._core")
ops = core.ops

RANDOM = np.random.default_rng(3)
POSITIVE = RANDOM.uniform(0.5, 1.5, (2, 3))
SIGNED = RANDOM.standard_normal((2, 3))
FUNCTIONS = {
    "add": (lambda a, b: ops.add(a, b), [SIGNED, SIGNED[0]]),
    "mul": (lambda a, b: ops.mul(a, b), [SIGNED, POSITIVE]),
    "div": (lambda a, b: ops.div(a, b), [SIGNED, POSITIVE]),
    "pow": (lambda a, b: ops.pow(a, b), [POSITIVE, SIGNED]),
    "exp": (lambda a: ops.exp(a), [SIGNED]),
    "log": (lambda a: ops.log(a), [POSITIVE]),
    "tanh": (lambda a: ops.tanh(a), [SIGNED]),
    "sigmoid": (lambda a: ops.sigmoid(a), [SIGNED]),
    "matmul": (lambda a, b: ops.matmul(a, b), [SIGNED, SIGNED.T.copy()]),
    "matmul_t": (lambda a, b: ops.matmul(a, b, transpose_b=True), [SIGNED, POSITIVE]),
    "softmax": (lambda a: ops.softmax(a, axis=1), [SIGNED]),
    "mean": (lambda a: ops.reduce_mean(a, axes=[0]), [SIGNED]),
    "max": (lambda a: ops.reduce_max(a, axes=[1]), [SIGNED]),
    "prod": (lambda a: ops.reduce_prod(a, axes=[1]), [POSITIVE]),
    "slice": (lambda a: ops.slice(a, starts=[0, 1], limits=[2, 3]), [SIGNED]),
    "transpose": (lambda a: ops.transpose(a, perm=[1, 0]), [SIGNED]),
    "concat": (lambda a, b: ops.concat(a, b, axis=1), [SIGNED, POSITIVE]),
    "gather": (lambda a: ops.gather(a, core.tensor([1, 1, 0]), axis=0), [SIGNED]),
    "select": (lambda a, b: ops.select(ops.less(a, b), a, b), [SIGNED, POSITIVE]),
    "cross_entropy": (
        lambda a: ops.softmax_cross_entropy(a, core.tensor([2, 0])),
        [SIGNED],
    ),
}


def loss_of(function, weights, tensors):
    """A scalar that depends on every element of the result in its own way."""
    out = function(*tensors)
    return ops.reduce_sum(ops.mul(out, core.tensor(weights)), axes=list(range(out.ndim)))


def finite_differences(function, weights, arrays, which, step=1e-6):
    gradient = np.zeros_like(arrays[which])
    for index in np.ndindex(gradient.shape):
        values = []
        for sign in (1, -1):
            shifted = [a.copy() for a in arrays]
            shifted[which][index] += sign * step
            values.append(loss_of(function, weights, [core.tensor(a) for a in shifted]).item())
        gradient[index] = (values[0] - values[1]) / (2 * step)
    return gradient


@pytest.mark.parametrize("how", ["tape", "trace"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_against_finite_differences(name, how):
    function, arrays = FUNCTIONS[name]
    tensors = [core.tensor(a) for a in arrays]
    weights = RANDOM.standard_normal(function(*tensors).shape)
    if how == "tape":
        with core.Tape() as tape:
            loss = loss_of(function, weights, tensors)
        grads = tape.gradients([loss], tensors)
    else:
        with core.TraceScope() as scope:
            inside = [scope.parameter(a.shape, "float64") for a in arrays]
            loss = loss_of(function, weights, inside)
            traced = scope.finish(core.gradients([loss], inside))
        grads = traced(*tensors)
    for which, grad in enumerate(grads):
        expected = finite_differences(function, weights, arrays, which)
        np.testing.assert_allclose(grad.numpy(), expected, rtol=1e-5, atol=1e-7)


def test_gradients_of_variables_in_a_training_step():
    w = core.Variable(np.float64([1.0, -2.0]))
    with core.TraceScope() as scope:
        x = scope.parameter((None, 2), "float64")
        loss = ops.reduce_sum(ops.square(ops.mul(x, w.read())), axes=[0, 1])
        (grad,) = core.gradients([loss], [w.read()])
        w.assign(ops.sub(w.read(), ops.mul(grad, core.tensor(0.1, "float64"))))
        step = scope.finish([loss])
    before = step(np.float64([[1.0, 1.0]]))[0].item()
    assert before == 5.0
    np.testing.assert_allclose(w.numpy(), [0.8, -1.6])


def test_no_influence_gives_none():
    x, y = core.tensor(2.0), core.tensor(3.0)
    with core.Tape() as tape:
        out = ops.square(x)
    gx, gy = tape.gradients([out], [x, y])
    assert gx.item() == 4.0 and gy is None
    with core.Tape() as tape:
        out = ops.square(ops.stop_gradient(x))
    assert tape.gradients([out], [x]) == [None]


def test_output_gradients():
    x = core.tensor([1.0, 2.0])
    with core.Tape() as tape:
        a, b = ops.square(x), ops.neg(x)
    (g,) = tape.gradients([a, b], [x], [core.tensor([1.0, 10.0]), None])
    assert g.tolist() == [1.0, 39.0]
    with pytest.raises(core.Error):
        tape.gradients([a, b], [x], [core.tensor([1.0, 10.0])])


def test_a_tape_can_pause():
    x = core.tensor(2.0)
    tape = core.Tape()
    with tape:
        a = ops.square(x)
    b = ops.square(x)
    with tape:
        c = ops.mul(a, x)
    assert tape.gradients([c], [x])[0].item() == 12.0
    assert tape.gradients([b], [x]) == [None]


def test_second_derivatives():
    x = core.tensor(2.0)
    with core.Tape() as outer:
        with core.Tape() as inner:
            y = ops.mul(ops.square(x), x)
        (first,) = inner.gradients([y], [x])
    (second,) = outer.gradients([first], [x])
    assert (first.item(), second.item()) == (12.0, 12.0)


def test_gradients_need_something_that_remembers():
    x = core.tensor(2.0)
    with pytest.raises(RuntimeError, match="TF-E0114.*Tape"):
        core.gradients([ops.square(x)], [x])
    with pytest.raises(ValueError, match="TF-E0502"):
        core.Tape().gradients([x], [x])


def test_missing_gradients_name_the_operation():
    x = core.tensor([3.0, 1.0])
    with core.Tape() as tape:
        (y,) = core.host_call(lambda a: a * 2, [x], [((2,), "float32")])
    with pytest.raises(ValueError, match="TF-E0107.*host_call"):
        tape.gradients([y], [x])


def test_gradients_repeat_no_effect():
    """What was recorded with an effect happens once, with and without a gradient through it."""
    seen = []
    weight = core.Variable(np.ones(3, "float32"))

    def step(x):
        (same,) = core.host_call(lambda a: seen.append(1) or [a], [x], [((3,), "float32")])
        return ops.mul(ops.add(x, same), weight.read())

    x = core.tensor(np.arange(3, dtype="float32"))
    with core.Tape() as tape:
        out = step(x)
    (grad,) = tape.gradients([out], [weight.read()], None)
    np.testing.assert_array_equal(grad.numpy(), [0, 2, 4])
    assert seen == [1]
    with core.TraceScope() as scope:
        given = scope.parameter((3,), "float32")
        out = step(given)
        function = scope.finish(core.gradients([out], [weight.read()], None) + [out])
    assert function.has_effects and function.can_fail
    np.testing.assert_array_equal(function(x)[0].numpy(), [0, 2, 4])
    assert seen == [1, 1]
