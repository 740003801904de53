# SPDX-License-Identifier: Apache-2.0
"""Profiles on a GPU: replays stand for their steps, times are sampled outside the captured graph,
and what is trained is the same."""

import emulated_gpu
import pytest

_MODEL = """
import json
from tracefire import profiler
x = np.random.default_rng(0).random((205, 6), "float32")
y = np.arange(205) % 3
def trained(profiled):
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(8), keras.layers.Dense(3)])
    model.compile(keras.optimizers.Adam(0.01), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    if not profiled:
        return model.fit(x, y, batch_size=4, epochs=3, verbose=0, shuffle=False).history["loss"], None
    with profiler.Session() as session:
        losses = model.fit(x, y, batch_size=4, epochs=3, verbose=0, shuffle=False).history["loss"]
    return losses, json.loads(session.profile.json())
"""


@pytest.mark.slow
def test_replays_are_sampled_and_training_is_the_same():
    seen = emulated_gpu.run(
        _MODEL
        + """
plain, _ = trained(False)
losses, profile = trained(True)
answer({"plain": plain, "losses": losses, "profile": profile})
"""
    )
    assert seen["losses"] == seen["plain"]
    profile = seen["profile"]
    # 51 whole batches an epoch, three epochs; the partial batch is a program of its own.
    (epochs,) = [p for p in profile["programs"] if p["executions"] == 3 * 51]
    assert epochs["records"] == 3
    assert epochs["graph_launches"] == 2  # the first epoch's only graph was measured step by step
    on_gpu = [row for row in profile["operations"] if row["device"] == "/GPU:0"]
    products = [row for row in on_gpu if row["op"] == "matmul" and row["runs"] >= 3 * 51]
    assert products
    for row in products:
        assert row["source"] == "sampled"
        assert 0 < row["time"]["measured"] <= 16 * 2
        assert row["time"]["total_us"] == pytest.approx(row["runs"] * row["time"]["mean_us"])
        assert row["symbols"] == ["cublasLtMatmul"]
    assert any("one record that stands for its steps" in note for note in profile["notes"])
    assert any("`sampled`" in note for note in profile["notes"])
    assert {"/GPU:0"} <= {memory["device"] for memory in profile["memory"]}
    assert profile["waits"]["count"] >= 3
