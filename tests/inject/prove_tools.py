# SPDX-License-Identifier: Apache-2.0
"""Runs tracefire-prove against the stand-in for CUPTI (tests/inject/fake)."""
import os
import pathlib
import shutil
import signal
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("TRACEFIRE_BUILD_DIR", ROOT / "build"))
PROVE = BUILD / "bin" / "tracefire-prove"


class Sandbox:
    """A folder with a program whose CUPTI is the stand-in, laid out as a Python environment is."""

    def __init__(self, folder):
        self.folder = folder
        cupti = folder / "lib" / "python3.12" / "site-packages" / "nvidia" / "cu13" / "lib" / "libcupti.so.13"
        cupti.parent.mkdir(parents=True)
        shutil.copy(BUILD / "tests" / "libtf_fake_cupti.so", cupti)
        (folder / "bin").mkdir()
        self.program = str(shutil.copy(BUILD / "tests" / "tf_fake_gpu_program", folder / "bin" / "program"))
        self.cupti = cupti
        self.environment = {k: v for k, v in os.environ.items()
                            if not k.startswith(("TRACEFIRE_", "CUDA_", "TF_FAKE_")) and k != "RANK"}

    def prove(self, *words, timeout=60, **variables):
        """tracefire-prove with these words; variables are added to the environment."""
        return subprocess.run([str(PROVE), *map(str, words)], env={**self.environment, **variables}, text=True,
                              errors="replace", stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout)

    def start(self, *words, **variables):
        # Ctrl-C as on a terminal, also where the tests run in the background, which ignores it.
        return subprocess.Popen([str(PROVE), *map(str, words)], env={**self.environment, **variables}, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
