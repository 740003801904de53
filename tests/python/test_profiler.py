# SPDX-License-Identifier: Apache-2.0
"""The profiler from Python: its own names and TensorFlow's, and what fit records."""

import json
import subprocess
import sys
import time

import pytest

np = pytest.importorskip("numpy")
tf = pytest.importorskip("tracefire")


@pytest.mark.parametrize("wrong", [3, None, "/proc/nowhere/logs", "a\0b", __file__ + "/logs"])
def test_a_folder_that_cannot_be_is_refused_before_anything_is_recorded(wrong):
    with pytest.raises(tf.errors.Error, match=r"\[TF-E0(404|502)\].*(folder|path)"):
        tf.profiler.experimental.start(wrong)
    assert not tf._core.is_profiling()
    with tf.profiler.Session() as session:
        work()
    with pytest.raises(tf.errors.Error, match=r"\[TF-E0404\]"):
        session.profile.write("a\0b")


def work():
    x = tf.tensor(np.ones((256, 256), "float32"))
    return float(tf._core.ops.reduce_sum(x @ x, axes=[0, 1]))


def by_op(profile):
    rows = {}
    for row in json.loads(profile.json())["operations"]:
        rows.setdefault(row["op"], []).append(row)
    return rows


def test_operations_have_times_kernels_and_lines():
    with tf.profiler.Session() as session:
        for i in range(5):
            with tf.profiler.Step("train", i):
                work()
    rows = by_op(session.profile)
    (product,) = rows["matmul"]
    assert product["runs"] == 5
    assert product["flops"] == 5 * 2 * 256**3
    assert product["kernel"] and product["library"]
    assert product["location"].startswith("test_profiler.py:") or "test_profiler.py:" in product["location"]
    if product["device"].startswith("/CPU"):
        assert product["source"] == "measured"
        assert 0 < product["time"]["mean_us"] < 1e6
    document = json.loads(session.profile.json())
    (step,) = [s for s in document["spans"] if s["kind"] == "step"]
    assert step["name"] == "train" and step["time"]["measured"] == 5
    assert step["between"]["measured"] == 4
    assert "matmul" in str(session.profile)


def test_input_time_is_told_apart():
    with tf.profiler.Session() as session:
        for i in range(3):
            with tf.profiler.Input("read"):
                time.sleep(0.02)
            with tf.profiler.Step("train", i):
                work()
    got = json.loads(session.profile.json())["input"]
    assert got["input_us"] >= 3 * 20e3
    assert got["between_steps_us"] < 20e3
    assert 0 < got["share"] <= 1


def test_names_of_tensorflow(tmp_path):
    tf.profiler.experimental.start(tmp_path, tf.profiler.experimental.ProfilerOptions())
    with tf.profiler.experimental.Trace("train", step_num=4, _r=1):
        work()
    folder = tf.profiler.experimental.stop()
    names = {path.name for path in (tmp_path / "plugins" / "profile").glob("*/*")}
    assert {"profile.txt", "profile.json", "profile.html", "trace.json"} < names
    assert [name for name in names if name.endswith(".xplane.pb")]
    with open(f"{folder}/trace.json", encoding="utf-8") as file:
        assert "train 4" in {e["name"] for e in json.load(file)["traceEvents"]}
    with tf.profiler.experimental.Profile(tmp_path):
        work()
    assert len(list((tmp_path / "plugins" / "profile").iterdir())) == 2
    tf.profiler.experimental.start("")
    assert tf.profiler.experimental.stop(save=False) is None


def test_wrong_order_is_an_error():
    with pytest.raises(tf.errors.Error, match="no profile"):
        tf.profiler.stop()
    with tf.profiler.Session(), pytest.raises(tf.errors.Error, match="already"):
        tf.profiler.start()


PROGRAM = """
import os
os.environ["KERAS_BACKEND"] = "tracefire"
import keras_tracefire, keras
import numpy as np
x = np.random.default_rng(0).normal(size=(640, 8)).astype("float32")
y = (x.sum(1) > 0).astype("int32")
model = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(2)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
"""


def run(program, tmp_path, **environment):
    import os

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + program],
        capture_output=True, text=True, timeout=300, cwd=tmp_path, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


def test_a_keras_program_is_profiled_through_the_environment(tmp_path):
    pytest.importorskip("keras_tracefire")
    run("model.fit(x, y, batch_size=64, epochs=2, verbose=0)", tmp_path, TRACEFIRE_PROFILE=str(tmp_path / "out"))
    (folder,) = (tmp_path / "out").iterdir()
    document = json.loads((folder / "profile.json").read_text())
    assert document["pid"] == int(folder.name)
    assert [p for p in document["programs"] if p["executions"] == 20]  # 2 epochs of 10 steps
    names = {s["name"] for s in document["spans"]}
    assert {"shuffle", "data to the device"} <= names
    assert document["memory"][0]["holders"]
    assert all(row["source"] == "measured" for row in document["operations"] if "CPU" in row["device"])


def test_kerass_tensorboard_callback_writes_event_files_and_keeps_whole_epochs(tmp_path):
    pytest.importorskip("keras_tracefire")
    import event_files

    if subprocess.run([sys.executable, "-c", "import tensorflow"], capture_output=True).returncode == 0:
        pytest.skip("TensorFlow is installed, and Keras uses its writer")
    done = run(
        "board = keras.callbacks.TensorBoard('logs', histogram_freq=1, write_images=True)\n"
        "model.fit(x, y, batch_size=64, epochs=3, verbose=0, validation_data=(x, y), callbacks=[board])\n"
        "import tracefire; print(tracefire.proof().json())",
        tmp_path,
    )
    assert "runs at every batch" not in done.stderr
    (train,) = (tmp_path / "logs" / "train").iterdir()
    (validation,) = (tmp_path / "logs" / "validation").iterdir()
    events = event_files.events(train)
    losses = [e for e in events if e.get("tag") == "epoch_loss"]
    assert [e["step"] for e in losses] == [0, 1, 2]
    assert losses[0]["tensor"][2][0] > losses[2]["tensor"][2][0] > 0
    assert {e.get("plugin") for e in events} >= {"scalars", "histograms", "images", "graph_keras_model"}
    (graph,) = [e["graph"] for e in events if "graph" in e]
    assert {"Placeholder", "matmul", "Variable"} <= {node["op"] for node in graph}
    assert "epoch_accuracy" in {e.get("tag") for e in event_files.events(validation)}
