# SPDX-License-Identifier: Apache-2.0
"""How often a GPU is waited for: once an epoch, once an evaluation, once a prediction."""

import emulated_gpu
import numpy as np
import pytest

_MODEL = """
keras.utils.set_random_seed(1)
x = np.random.default_rng(0).random((205, 6), "float32")
y = np.arange(205) % 3
model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(8), keras.layers.Dense(3)])
model.compile(
    keras.optimizers.Adam(0.01),
    keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy", keras.metrics.SparseTopKCategoricalAccuracy(2, name="top")],
)
def waits(work):
    work()  # compiles, uploads
    core.synchronize()
    core.reset_proof()
    result = work()
    proof = core.proof()
    return {"waits": proof.synchronizations, "runs": proof.runs, "result": result}
"""


@pytest.mark.slow
def test_an_epoch_waits_once():
    seen = emulated_gpu.run(
        _MODEL
        + """
fit = lambda **more: model.fit(x, y, batch_size=32, verbose=0, **more).history
answer({
    "one": waits(lambda: fit()),
    "three": waits(lambda: fit(epochs=3)),
    "validated": waits(lambda: fit(epochs=2, validation_data=(x[:50], y[:50]))),
    "evaluate": waits(lambda: model.evaluate(x, y, batch_size=32, verbose=0, return_dict=True)),
})
"""
    )
    assert seen["one"]["waits"] == 1
    assert set(seen["one"]["result"]) == {"loss", "accuracy", "top"}
    assert seen["one"]["runs"] == 0  # but replays: nothing is computed after the epoch
    assert seen["three"]["waits"] == 3
    losses = seen["one"]["result"]["loss"] + seen["three"]["result"]["loss"]
    assert len(losses) == 4 and all(0.5 < loss < 2 for loss in losses)  # log 3 is 1.1
    assert seen["validated"]["waits"] == 4  # an epoch and an evaluation, twice
    assert seen["evaluate"]["waits"] == 1
    assert set(seen["evaluate"]["result"]) == {"loss", "accuracy", "top"}


@pytest.mark.slow
def test_metrics_of_ones_own_are_read_with_one_wait():
    """What users write computes its results after the epoch, as one program."""
    seen = emulated_gpu.run(
        _MODEL
        + """
class Half(keras.metrics.SparseCategoricalAccuracy):
    def result(self):
        return super().result() / 2

model.compile("sgd", "sparse_categorical_crossentropy", metrics=[Half(name="half"), "accuracy"])
answer(waits(lambda: model.fit(x, y, batch_size=32, verbose=0).history))
"""
    )
    assert seen["waits"] == 1 and seen["runs"] == 1


@pytest.mark.slow
def test_a_prediction_is_a_call_for_full_batches_and_one_for_the_rest_and_waits_once():
    seen = emulated_gpu.run(
        _MODEL
        + """
def shapes(rows):
    out = model.predict(x[:rows], batch_size=32, verbose=0)
    launches = core.proof().graph_launches
    first, first_bias, second, second_bias = (w.astype("float64") for w in weights)
    want = (x[:rows] @ first + first_bias) @ second + second_bias
    np.testing.assert_allclose(out, want, rtol=1e-3, atol=1e-4)  # TF32
    return [list(out.shape), launches]
weights = model.get_weights()
answer({rows: waits(lambda: shapes(rows)) for rows in (205, 192, 31)})
"""
    )
    assert seen["205"] == {"waits": 1, "runs": 0, "result": [[205, 3], 2]}
    assert seen["192"] == {"waits": 1, "runs": 0, "result": [[192, 3], 1]}
    assert seen["31"] == {"waits": 1, "runs": 0, "result": [[31, 3], 1]}


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1, 64, 70, 150])
def test_captured_graphs_leave_the_results_of_each_step_in_its_place(steps):
    seen = emulated_gpu.run(
        f"""
count = core.Variable(np.float32(0))
with core.TraceScope() as scope:
    scope.parameter((2,), "float32")
    before = count.read()
    count.assign(core.ops.add(before, core.tensor(1.0)))
    now = count.read()
    index = core.ops.iota(shape=(8, 8), axis=1, dtype="float32")
    step = scope.finish([
        now,
        before,
        core.ops.add(core.ops.iota(shape=(3,), dtype="float32"), now),  # no multiple of 256 bytes
        core.ops.mul(index, now),
    ])
data = core.tensor(np.zeros(2 * {steps}, "float32"))
def run():
    count.assign(core.tensor(0.0))
    return core.fetch(step.run_epoch([data], None, 2, 0, {steps}, collect=True))
first = [a.tolist() for a in run()]
core.reset_proof()
again = [a.tolist() for a in run()]
proof = core.proof()
last = [a.tolist() for a in core.fetch(step.run_epoch([data], None, 2, 0, {steps}))]
answer([first, again, last, proof.graph_launches, proof.synchronizations])
"""
    )
    first, again, last, launches, waits = seen
    assert first == again
    count = np.arange(1, steps + 1, dtype="float32")
    expected = [
        count,
        count - 1,
        (np.arange(3) + count[:, None]).reshape(-1),
        np.tile(np.arange(8) * count[:, None, None], (1, 8, 1)).reshape(-1, 8),
    ]
    for got, want in zip(first, expected):
        np.testing.assert_array_equal(got, want)
    after = [2 * steps, 2 * steps - 1, np.arange(3) + 2 * steps]
    for got, want in zip(last, after + [np.tile(np.arange(8) * 2 * steps, (8, 1))]):
        np.testing.assert_array_equal(got, want)
    assert launches == {1: 1, 64: 1, 70: 2, 150: 3}[steps]
    assert waits == 1


@pytest.mark.slow
def test_values_of_the_host_are_brought_to_a_function_on_the_gpu():
    seen = emulated_gpu.run(
        """
with core.TraceScope() as scope:
    x = scope.parameter((3,), "float32")
    function = scope.finish([core.ops.add(x, x)])
here = core.tensor(np.array([1, 2, 3], "float32"), device="/CPU:0")
core.reset_proof()
(out,) = function(here)
copied = core.proof().copies_in
answer([copied, out.device, out.tolist(), here.to("/GPU:0").tolist(), here.device])
"""
    )
    assert seen == [12, "/GPU:0", [2, 4, 6], [1, 2, 3], "/CPU:0"]
