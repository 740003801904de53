# SPDX-License-Identifier: Apache-2.0
"""What a step of an epoch poisoned, seen from later steps and epochs, also as captured graphs."""

import emulated_gpu
import numpy as np
import pytest

from tracefire import errors

keras = pytest.importorskip("keras")


@pytest.mark.slow
def test_replayed_steps_carry_poison_through_variables():
    seen = emulated_gpu.run(
        """
weight, speed, other = (core.Variable(v, name=n) for v, n in ((1.0, "w"), (0.0, "s"), (5.0, "o")))
table = core.tensor([1.0, 2.0, 3.0])
with core.TraceScope() as scope:
    rows = scope.parameter((1,), "int32")
    loss = weight.read() * 2.0
    untouched = other.read() + 1.0
    weight.assign(weight.read() - speed.read())
    speed.assign(core.ops.reshape(core.ops.gather(table, rows, axis=0), shape=()))
    other.assign(untouched)
    step = scope.finish([loss, untouched])
good, bad = np.ones(40, "int32"), np.ones(40, "int32")
bad[3] = 7

def reads(tensor):
    try:
        return float(tensor.numpy())
    except Exception as error:
        return "TF-E0301" in str(error) and "index 7" in str(error)

out = step.run_epoch([bad], None, 1, 0, 40)
found = [reads(out[0]), reads(out[1])]
weight.assign(1.0)
out = step.run_epoch([good], None, 1, 0, 40)
found += [reads(out[0]), reads(out[1])]
weight.assign(1.0)
speed.assign(0.0)
out = step.run_epoch([good], None, 1, 0, 40)
answer(found + [reads(out[0]), reads(out[1]), "not capturable" in step.program_text()])
"""
    )
    # weight: 1, 1, then 2 less in each of 38 steps.
    assert seen == [True, 45.0, True, 85.0, 2 * (1 - 2 * 38.0), 125.0, False]


def test_an_epoch_with_a_bad_batch_raises_again_after_good_weights_came_back():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 5, (96, 4)).astype("int32")
    y = rng.integers(0, 3, 96).astype("int32")
    bad = x.copy()
    bad[50, 2] = 77
    layers = [keras.Input((4,), dtype="int32"), keras.layers.Embedding(5, 3)]
    model = keras.Sequential([*layers, keras.layers.Flatten(), keras.layers.Dense(3)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss)
    model.fit(x, y, batch_size=16, verbose=0)
    weights = model.get_weights()
    for _ in range(2):
        with pytest.raises(errors.OutOfRangeError, match="TF-E0301.*index 77"):
            model.fit(bad, y, batch_size=16, epochs=1, shuffle=False, verbose=0)
        model.set_weights(weights)
