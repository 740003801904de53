# SPDX-License-Identifier: Apache-2.0
"""How often a GPU is waited for: once an epoch, once an evaluation, once a prediction."""

import emulated_gpu
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
    assert len(seen["three"]["result"]["loss"]) == 3
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
