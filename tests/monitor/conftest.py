# SPDX-License-Identifier: Apache-2.0
"""Runs the monitor against a scripted NVML (tests/monitor/fake_nvml)."""
import json
import os
import pathlib
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("TRACEFIRE_BUILD_DIR", pathlib.Path(__file__).parents[2] / "build"))
PROGRAM = BUILD / "bin" / "tracefire-monitor"
# What the build took from git: nothing where the tree is no checkout.
COMMIT = r"[0-9a-f]{12}(\+changes)?" if (pathlib.Path(__file__).parents[2] / ".git").exists() else ""


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes more than five seconds")
    config.addinivalue_line("markers", "deep: runs in `make test-deep` alone")


class Machine:
    """A machine whose GPUs are what `script()` was last given."""

    def __init__(self, folder):
        self.folder = folder
        self.file = folder / "nvml.json"
        self.library("new")
        self.script({})

    def library(self, kind):
        """'new', 'old' (without what newer drivers added) or None (no NVML at all)."""
        place = self.folder / "driver" / "libnvidia-ml.so.1"
        place.parent.mkdir(exist_ok=True)
        place.unlink(missing_ok=True)
        if kind is not None:
            place.symlink_to(BUILD / "tests" / f"libtf_fake_nvml_{kind}.so")

    def script(self, what):
        # In one step, so that the program never reads half a file.
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(what))
        new.rename(self.file)

    def environment(self, **more):
        env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "TF_FAKE_NVML", "LC_ALL")}
        return env | {"TRACEFIRE_CUDA_PATH": str(self.folder / "driver"), "TF_FAKE_NVML": str(self.file),
                      "LANG": "C.UTF-8", "TZ": "UTC"} | more

    def run(self, *arguments, timeout=40, **more):
        return subprocess.run([str(PROGRAM), *arguments], env=self.environment(**more), capture_output=True,
                              text=True, timeout=timeout, stdin=subprocess.DEVNULL)

    def start(self, *arguments, **more):
        return subprocess.Popen([str(PROGRAM), *arguments], env=self.environment(**more), text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def snapshot(self, *arguments, status=0):
        done = self.run("--once", "--json", *arguments)
        assert done.returncode == status, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def machine(tmp_path):
    if not PROGRAM.exists():
        pytest.skip("tracefire-monitor is not built: run make")
    return Machine(tmp_path)
