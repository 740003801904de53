# SPDX-License-Identifier: Apache-2.0
"""`prove` of programs that compute with Tracefire: operations, layers and source lines by the executor's records."""
import importlib.util
import json
import os
import stat
import subprocess
import sys

import pytest

from prove_tools import BUILD, Sandbox
from test_report import report_of

TENSORS = """
import numpy, tracefire as tf
a = tf.tensor(numpy.ones((64, 32), "float32"))
c = tf.tensor(numpy.ones((32, 16), "float32"))
b = a @ c
print(float(b.numpy()[0, 0]))
"""
KERAS = """
import keras_tracefire, keras, numpy
model = keras.Sequential([keras.layers.Input((20,)), keras.layers.Dense(64, activation="relu", name="hidden"),
                          keras.layers.Dense(3, name="logits")])
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(numpy.ones((256, 20), "float32"), numpy.zeros(256, "int32"), batch_size=32, epochs=1, verbose=0)
"""


@pytest.fixture
def box(tmp_path):
    found = Sandbox(tmp_path)
    found.environment["PYTHONPATH"] = str(BUILD / "python")
    found.environment["LD_LIBRARY_PATH"] = os.pathsep.join(
        filter(None, [str(BUILD / "lib"), found.environment.get("LD_LIBRARY_PATH")]))
    return found


def script(tmp_path, text):
    path = tmp_path / "train.py"
    path.write_text(text.lstrip("\n"))
    return path


def test_python_program_on_the_cpu(box, tmp_path):
    path = script(tmp_path, TENSORS)
    done = box.prove("--json", "--out", tmp_path / "out", "--", sys.executable, path)
    assert done.returncode == 0, done.stderr
    product = next(r for r in (tmp_path / "out").glob("*.ops.json"))
    assert stat.S_IMODE(product.stat().st_mode) == 0o600
    assert "32.0\n" in done.stderr  # what the program prints; stdout is the document alone
    report = report_of(done)
    assert report["verdict"] == "on-cpu" and report["evidence"] == "traced"
    row, = (o for o in report["tracefire"]["operations"] if o["op"] == "matmul")
    assert row["location"] == f"{path}:4"
    assert row["device"] == "/CPU:0" and row["runs"] == 1 and row["flops"] == 2 * 64 * 32 * 16
    assert row["kernel_ns"] is None
    assert report["processes"][0]["verdict"] == "on-cpu" and report["processes"][0]["tracing"] == "no-cuda"
    assert report["processes"][0]["clean_end"]
    printed = (tmp_path / "out" / "report.txt").read_text()
    assert f"{path}:4" in printed and "matmul" in printed
    assert f"{path}:4" in (tmp_path / "out" / "report.html").read_text()
    again = report_of(box.prove("--json", "--from", tmp_path / "out"))
    assert again == report


def test_a_program_that_ran_no_operation(box, tmp_path):
    """It is not taken for one that computed on the CPU."""
    done = box.prove("--json", "--require", "on-gpu", "--out", tmp_path / "out", "--", sys.executable,
                     script(tmp_path, "import tracefire"))
    assert done.returncode == 3
    report = json.loads(done.stdout)
    assert report["verdict"] == "unknown" and "no operation was run" in report["reason"]
    assert report_of(box.prove("--json", "--from", tmp_path / "out")) == report


def test_a_child_without_records_beside_operations_on_the_cpu(box, tmp_path):
    """What ran here ran on the CPU; what the child did is not known."""
    busy = "import time\nbegin = time.process_time()\nwhile time.process_time() < begin + 2: pass"
    text = TENSORS + f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {busy!r}], env={{}}, check=True)\n"
    done = box.prove("--json", "--require", "on-gpu", "--", sys.executable, script(tmp_path, text))
    assert done.returncode == 3
    report = json.loads(done.stdout)
    assert report["verdict"] == "unknown" and "could leave no records" in report["reason"], report["reason"]
    assert any("could leave no records" in reason for reason in report["incomplete"])
    assert any("os.environ" in action for a in report["advice"] for action in a["actions"])


def test_layers_of_keras_are_named(box, tmp_path):
    if importlib.util.find_spec("keras") is None:
        pytest.skip("Keras is not installed")
    done = box.prove("--json", "--", sys.executable, script(tmp_path, KERAS), KERAS_BACKEND="tracefire")
    assert done.returncode == 0, done.stderr
    report = report_of(done)
    products = {o["layer"]: o for o in report["tracefire"]["operations"] if o["op"] == "matmul"}
    forward = {name.rsplit("/", 1)[-1]: o for name, o in products.items() if not name.startswith("gradients")}
    assert {"hidden", "logits"} <= set(forward)
    assert forward["hidden"]["runs"] == forward["logits"]["runs"] == 8
    assert forward["hidden"]["flops"] == 8 * 2 * 32 * 20 * 64
    assert all(o["location"].endswith("train.py:5") for o in forward.values())


def test_cpp_program(box, tmp_path):
    program = BUILD / "examples" / "first"
    if not program.exists():
        pytest.skip("the examples are not built: run make")
    done = box.prove("--json", "--out", tmp_path / "out", "--", program)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["verdict"] == "on-cpu"
    layers = {o["layer"] for o in report["tracefire"]["operations"]}
    assert {"sequential/dense", "gradients/sequential/dense_1"} <= layers


def test_a_daemons_work_is_its_own(box, tmp_path):
    """What a child does after fork is counted once, in records of its own."""
    path = script(tmp_path, """
import numpy, os, tracefire as tf
def product(n):
    a = tf.tensor(numpy.ones((n, n), "float32"))
    return float((a @ a).numpy()[0, 0])
if os.fork() == 0:
    product(8)
    raise SystemExit(0)
assert os.wait()[1] == 0
product(16)
""")
    done = box.prove("--json", "--", sys.executable, path)
    assert done.returncode == 0, done.stderr
    report = report_of(done)
    assert len(report["processes"]) == 2
    flops = [o["flops"] for o in report["tracefire"]["operations"] if o["op"] == "matmul"]
    assert sum(flops) == 2 * 8 ** 3 + 2 * 16 ** 3


def test_a_killed_programs_operations_are_kept(box, tmp_path):
    path = script(tmp_path, """
import glob, numpy, os, signal, time, tracefire as tf
a = tf.tensor(numpy.ones((8, 8), "float32"))
written = os.environ["TRACEFIRE_PROVE_DIR"] + "/*.ops.json"
begin = time.monotonic()
while time.monotonic() < begin + (1.5 if glob.glob(written) else 50):
    float((a @ a).numpy()[0, 0])
os.kill(os.getpid(), signal.SIGKILL)
""")
    done = box.prove("--json", "--", sys.executable, path)
    assert done.returncode == 137
    report = report_of(done)
    assert report["tracefire"]["operations"] and not report["processes"][0]["clean_end"]
    assert any("last records are missing" in note for note in report["notes"])


def test_records_go_only_into_a_private_folder(box, tmp_path):
    path = script(tmp_path, TENSORS)
    for mode, files in ((0o700, 1), (0o755, 0)):
        folder = tmp_path / f"records{mode:o}"
        folder.mkdir()
        folder.chmod(mode)
        subprocess.run([sys.executable, path], check=True, timeout=60, stdout=subprocess.DEVNULL,
                       env={**box.environment, "TRACEFIRE_PROVE_DIR": str(folder)})
        assert len(list(folder.glob("*.ops.json"))) == files


def test_damaged_operations_are_told(box, tmp_path):
    path = script(tmp_path, TENSORS)
    box.prove("--quiet", "--out", tmp_path / "out", "--", sys.executable, path)
    file, = (tmp_path / "out").glob("*.ops.json")
    text = file.read_text()
    whole = json.loads(text)
    places = range(0, len(text), 3)
    changed = [text[:p] + chr(ord(text[p]) ^ 1) + text[p + 1:] for p in places if text[p].isdigit()]
    assert len(changed) > 20
    cut = [text[:len(text) * part // 100] for part in range(0, 100, 3)]
    for damage in (*cut, *changed, "", "{", "[]", json.dumps({**whole, "rows": 3}), json.dumps({**whole, "verdict": "in-orbit"}),
                   json.dumps({**whole, "rows": [{"symbols": [7]}]})):
        file.write_text(damage)
        report = report_of(box.prove("--json", "--from", tmp_path / "out"))
        assert report["complete"] is False, damage
        assert any(".ops.json" in reason for reason in report["incomplete"]), damage
    file.unlink()
    report = report_of(box.prove("--json", "--from", tmp_path / "out"))
    assert any(file.name in reason and "missing" in reason for reason in report["incomplete"])
    # Texts from elsewhere reach no page unescaped, and no figure is believed.
    hostile = {**whole, "gpu_flops": -1e300, "rows": [{**whole["rows"][0], "layer": "<script>\x1b[2J", "flops": 1e308}]}
    file.write_text(json.dumps(hostile))
    done = box.prove("--from", tmp_path / "out")
    assert done.returncode == 0 and "\x1b" not in done.stdout


