# SPDX-License-Identifier: Apache-2.0
"""`python -m tracefire.demo` with whatever people give it; what it trains is tested by `make demo`."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

pytest.importorskip("tracefire._core")
pytest.importorskip("sklearn")


def demo(*words):
    env = {k: v for k, v in os.environ.items() if not k.startswith("TRACEFIRE_")}
    return subprocess.run(
        [sys.executable, "-m", "tracefire.demo", *words], capture_output=True, text=True, timeout=300, env=env
    )


@pytest.mark.parametrize("word", ["", "-1", " 1", "+1", "1.5", "1_0", "0x1", "\u0663", "9" * 30, "nan"])
@pytest.mark.parametrize("option", ["--epochs", "--batch", "--seed"])
def test_what_is_no_number_is_refused(option, word):
    done = demo(f"{option}={word}")
    assert done.returncode == 2 and done.stdout == ""
    assert f"argument {option}: '" in done.stderr and "A whole number of" in done.stderr


def test_the_range_of_seeds_is_the_one_of_keras():
    assert "0 to 4294967295" in demo("--seed", str(2**32)).stderr
    assert "1 to" in demo("--epochs", "0").stderr and "1 to" in demo("--batch", "0").stderr
    assert demo("--se", "1").returncode == 2


@pytest.mark.parametrize(
    "path, status, said",
    [
        ("", 2, "The name of a file was expected"),
        ("-", 2, "The name of a file was expected"),
        ("missing/demo.json", 1, "[TF-E0404] the file missing/demo.json cannot be written: No such file"),
        ("/", 1, "Is a directory"),
        ("x" * 300, 1, "File name too long"),
    ],
)
def test_where_the_result_cannot_be_written_nothing_is_trained(path, status, said):
    done = demo("--json", path)
    assert done.returncode == status and said in done.stderr
    assert "loss" not in done.stderr and done.stdout == "" and "Traceback" not in done.stderr


def test_the_result_carries_what_it_was_made_with(tmp_path):
    path = tmp_path / "demo.json"
    done = demo("--epochs", "1", "--seed", "4294967295", "--json", str(path))
    assert done.stdout.splitlines()[-1].startswith("verdict ") and "Traceback" not in done.stderr
    result = json.loads(path.read_text())
    made_with = result["manifest"]
    assert made_with["precision"] == result["proof"]["precision"]
    assert made_with["schema"] == "tracefire.manifest/1" and made_with["seed"] == 4294967295
    assert made_with["python"]["keras"] and made_with["python"]["numpy"]


def interrupted_after(line, *words, pause=0.2):
    """Runs the demo, sends it SIGINT `pause` seconds after a line of its talk; gives its status and what it said."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tracefire.demo", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    guard = threading.Timer(240, process.kill)  # a line that never comes holds nobody up
    guard.start()
    try:
        said = ""
        while not re.search(line, said):
            said += process.stderr.readline()
            assert process.poll() is None, said
        time.sleep(pause)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    finally:
        guard.cancel()
        process.kill()
    return process.returncode, out, said + err


def test_interrupted_training_says_how_far_it_came():
    status, out, err = interrupted_after(r"epoch +\d+/600 ", "--epochs", "600")
    assert status == 130 and out == "", err
    assert "Traceback" not in err
    done = re.search(r"^tracefire: interrupted: \[TF-E0501\] Ctrl-C: finished (\d+) of 600 epochs", err, re.M)
    assert done and 60 <= int(done[1]) < 600, err
    assert "The weights were those of the last whole step" in err
    assert re.search(r"^loss \d\.\d+  accuracy \d\.\d+$", err, re.M)


def test_an_interruption_before_the_training_has_the_code_too():
    for _ in range(5):  # a test that is held up sends it when epochs have ended
        status, _, err = interrupted_after("devices: ", "--epochs", "600", pause=0)
        if "finished 0 of" in err:
            break
    assert status == 130 and "[TF-E0501] Ctrl-C: finished 0 of 600 epochs" in err and "Traceback" not in err


def test_an_accuracy_that_is_too_low_is_told():
    done = demo("--epochs", "1", "--seed", "3")
    assert done.returncode == 1
    said = re.search(r"^tracefire: the accuracy 0\.\d{4} is below 0\.95, so the exit status is 1\.", done.stderr, re.M)
    assert said and "--epochs 40" in done.stderr


def test_a_full_disk_loses_the_file_and_not_the_result():
    done = demo("--epochs", "1", "--json", "/dev/full")
    assert done.returncode == 1 and "No space left on device" in done.stderr
    assert done.stdout.splitlines()[-1].startswith("verdict ") and "Traceback" not in done.stderr
