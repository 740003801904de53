# SPDX-License-Identifier: Apache-2.0
"""`python -m tracefire.demo` with whatever people give it; what it trains is tested by `make demo`."""

import json
import os
import subprocess
import sys

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
    made_with = json.loads(path.read_text())["manifest"]
    assert made_with["schema"] == "tracefire.manifest/1" and made_with["seed"] == 4294967295
    assert made_with["python"]["keras"] and made_with["python"]["numpy"]


def test_a_full_disk_loses_the_file_and_not_the_result():
    done = demo("--epochs", "1", "--json", "/dev/full")
    assert done.returncode == 1 and "No space left on device" in done.stderr
    assert done.stdout.splitlines()[-1].startswith("verdict ") and "Traceback" not in done.stderr
