# SPDX-License-Identifier: Apache-2.0
"""Programs run on an emulated GPU, as on a machine that has one: libraries and all.

What is launched, copied and waited for is what a GPU would see, and values are right.
"""

import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

import tracefire

_LIBRARIES = ("libcuda.so.1", "libnvrtc.so.13", "libcublasLt.so.13", "libnvidia-ml.so.1")


_KERNELS = pathlib.Path(tracefire._core.__file__).parents[2] / "tests" / "libtf_emulated_kernels.so"


@functools.cache
def _folder():
    """A folder with the emulator under the names of NVIDIA's libraries, and for what it compiles."""
    emulator = _KERNELS.with_name("libtf_cuda_emulator.so")
    if not emulator.exists() or not _KERNELS.exists():
        pytest.skip(f"needs the emulated GPU of a build folder, {emulator} and {_KERNELS.name}")
    if not shutil.which("c++"):
        pytest.skip("needs c++, with which the emulated NVRTC compiles")
    folder = tempfile.TemporaryDirectory(prefix="tracefire_emulated_")
    first = pathlib.Path(folder.name) / _LIBRARIES[0]
    shutil.copy(emulator, first)
    for name in _LIBRARIES[1:]:
        os.link(first, first.with_name(name))
    return folder


def run(program):
    """Runs a Python program whose default device is an emulated GPU.

    Before it stand `import numpy as np`, keras, and `core`, tracefire's module. What it passes to
    `answer()` is returned.
    """
    folder = _folder().name
    before = (
        "import json, os, sys\n"
        "import numpy as np\n"
        "import keras_tracefire\n"
        "import keras\n"
        "from tracefire import _core as core\n"
        "assert core.default_device() == '/GPU:0', core.why_no_gpu()\n"
        "def answer(value): print('answer', json.dumps(value))\n"
    )
    env = dict(
        os.environ,
        KERAS_BACKEND="tracefire",
        TRACEFIRE_CUDA_PATH=folder,
        TF_EMU_READY_KERNELS=str(_KERNELS),
        TF_EMU_PRELUDE=str(pathlib.Path(__file__).parents[1] / "nvidia" / "emulator" / "device_prelude.h"),
        TRACEFIRE_CACHE_DIRECTORY=folder + "/cache",
        PYTHONPATH=os.pathsep.join(sys.path),
    )
    done = subprocess.run(
        [sys.executable, "-c", before + program], capture_output=True, text=True, env=env
    )
    assert done.returncode == 0, done.stderr
    answers = [x[7:] for x in done.stdout.splitlines() if x.startswith("answer ")]
    return json.loads(answers[-1])
