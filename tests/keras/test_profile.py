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
    # 51 whole batches an epoch and a partial one, three epochs. The first epoch's graph of each was
    # measured step by step instead.
    (epochs,) = [p for p in profile["programs"] if p["executions"] == 3 * 52]
    assert epochs["records"] == 3 * 2
    assert epochs["graph_launches"] == 2 * 2
    on_gpu = [row for row in profile["operations"] if row["device"] == "/GPU:0"]
    products = [row for row in on_gpu if row["op"] == "matmul" and row["runs"] >= 3 * 52]
    assert products
    for row in products:
        assert row["source"] == "sampled"
        assert row["time"]["measured"] % (8 + 1) == 0  # the last 8 of 51, and the partial batch
        assert row["time"]["total_us"] == pytest.approx(row["runs"] * row["time"]["mean_us"])
        assert row["symbols"] == ["cublasLtMatmul"]
    assert any("one record that stands for its steps" in note for note in profile["notes"])
    assert any("`sampled`" in note for note in profile["notes"])
    assert {"/GPU:0"} <= {memory["device"] for memory in profile["memory"]}
    assert profile["waits"]["count"] >= 3


@pytest.mark.slow
def test_a_profile_counts_each_kernel_as_often_as_the_proof_counts_its_steps():
    """Rows are of one set of kernels each, so that a profiler's list can be held against them."""
    seen = emulated_gpu.run(
        """
import json
from tracefire import profiler
x = np.random.default_rng(0).random((205, 6), "float32")
y = np.arange(205) % 3
model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(8, "relu"), keras.layers.Dense(3, "softmax")])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
fit = lambda: model.fit(x, y, batch_size=16, verbose=0)
fit()
core.reset_proof()
profiler.start(step_times=False)
fit()
proof = json.loads(core.proof().json())
profile = json.loads(profiler.stop().json())
answer([proof["rows"], profile["operations"], proof["graph_launches"]])
"""
    )
    proof, profile, launches = seen
    assert launches == 2  # the captured graphs are those of an epoch without a profile
    steps = sum(row["runs"] for row in proof if row["device"] == "/GPU:0")
    on_gpu = [row for row in profile if row["device"] == "/GPU:0"]
    assert steps == sum(row["runs"] for row in on_gpu)
    assert all(row["symbols"] for row in on_gpu)
    products = sum(row["runs"] for row in on_gpu if row["symbols"] == ["cublasLtMatmul"])
    assert products == sum(row["runs"] for row in proof if row["op"] == "matmul") == 13 * 5
