# SPDX-License-Identifier: Apache-2.0
"""`tracefire monitor`: the same options as tracefire-monitor, through the program's own parser."""
import json
import re

import pytest
from conftest import BUILD, COMMIT, PROGRAM

COMMAND = BUILD / "bin" / "tracefire"
GPU = {"name": "NVIDIA H200", "uuid": "GPU-aa"}


@pytest.fixture
def tracefire(machine, monkeypatch):
    if not COMMAND.exists():
        pytest.skip("tracefire is not built: run make")
    import conftest
    machine.script({"gpus": [GPU, GPU | {"uuid": "GPU-bb"}]})

    def run(*arguments):
        monkeypatch.setattr(conftest, "PROGRAM", COMMAND)
        done = machine.run("monitor", *arguments)
        monkeypatch.setattr(conftest, "PROGRAM", PROGRAM)
        return done
    return run


def test_forms(tracefire, machine):
    done = tracefire("--once", "--json", "-i", "1")
    assert done.returncode == 0 and [g["uuid"] for g in json.loads(done.stdout)["gpus"]] == ["GPU-bb"]
    assert "NVIDIA H200" in tracefire("--once").stdout
    done = tracefire("--query-gpu=index,name", "--format=csv,noheader")
    assert done.stdout == "0, NVIDIA H200\n1, NVIDIA H200\n"
    done = tracefire("--metrics", "--dcgm-names")
    assert re.search(rf'tracefire_build_info\{{version="[\d.]+",commit="{COMMIT}"\}} 1', done.stdout)
    assert "\x1b[" in tracefire("--once", "--color=always").stdout and "\x1b[" not in tracefire("--once").stdout


def test_serve_with_and_without_a_value(tracefire):
    done = tracefire("--serve", "127.0.0.1:0", "--count", "1")
    assert done.returncode == 0 and "serving at http://127.0.0.1:" in done.stderr
    done = tracefire("--count", "1", "--serve")
    assert done.returncode in (0, 2) and "127.0.0.1:9422" in done.stderr  # 2: somebody else is there


def test_repeated_and_wrong(tracefire):
    done = tracefire("--serve=127.0.0.1:0", "--allow-host", "a.example", "--allow-host", "b.example", "--count", "1")
    assert done.returncode == 0
    for wrong in (["--every", "soon"], ["--json", "--csv"], ["--query-gpu=nam", "--format=csv"], ["--jsn"], ["extra"],
                  ["--once", "--log-keep", "2"], ["--log-size", "1MB", "--count", "1"], ["--once", "--allow-host", "a.example"],
                  ["--once", "--dcgm-names"]):
        done = tracefire(*wrong)
        assert done.returncode == 2 and done.stdout == "" and "tracefire: error:" in done.stderr, wrong


def test_help_tells_every_option(tracefire):
    text = tracefire("--help").stdout
    for option in ("--once", "--log", "--serve", "--alerts", "--query-gpu", "--webhook", "--read-only", "--gpus"):
        assert option in text
