# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/ run, and do what they say."""

import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TRACEFIRE_BUILD_DIR", ROOT / "build"))


def run(name):
    program = BUILD / "examples" / name
    if not program.exists():
        pytest.skip(f"{program} is not built: run make")
    done = subprocess.run([program], capture_output=True, text=True, timeout=120, cwd="/")
    assert done.returncode == 0, done.stderr
    return done


def test_every_example_is_run():
    names = {path.stem for path in (ROOT / "examples").glob("*.cpp")}
    assert names == {"first", "custom_layer", "proof"}


def test_first():
    done = run("first")
    (accuracy,) = re.fullmatch(r"accuracy (\d\.\d{4})\n", done.stdout).groups()
    assert float(accuracy) > 0.9
    assert "epoch  20/20" in done.stderr


def test_first_is_short():
    """Ten statements and nothing else: what README calls ten lines."""
    text = (ROOT / "examples" / "first.cpp").read_text()
    body = re.sub(r"//.*", "", text[text.index("int main") :])
    assert len([line for line in body.splitlines() if line.strip()]) <= 11


def test_custom_layer():
    done = run("custom_layer")
    first, last, slope = map(float, re.findall(r"\d+\.\d+", done.stdout))
    assert last < first / 20 and slope > 0
    assert re.search(r"slope \d", done.stderr)


def test_proof():
    lines = run("proof").stdout.splitlines()
    verdict = lines[-1].removeprefix("verdict ")
    assert verdict in ("on-gpu", "partly-on-gpu", "on-cpu")
    assert any(re.match(r"matmul\s+/(CPU|GPU):0\s+\S+", line) for line in lines)
    assert ("GPU" in lines[-2]) == (verdict != "on-gpu")
