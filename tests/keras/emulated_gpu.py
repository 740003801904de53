# SPDX-License-Identifier: Apache-2.0
"""Programs run on an emulated GPU, as on a machine that has one: libraries and all.

What is launched, copied and waited for is what a GPU would see, and values are right.
"""

import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import pytest

import tracefire

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
import emulated_libraries  # noqa: E402

_BUILD = pathlib.Path(tracefire._core.__file__).parents[2]
_folder = tempfile.TemporaryDirectory(prefix="tracefire_emulated_")


@functools.cache
def _environment():
    missing = emulated_libraries.what_is_missing(_BUILD)
    if missing:
        pytest.skip(missing)
    return emulated_libraries.make(_BUILD, _folder.name)


def run(program):
    """Runs a Python program whose default device is an emulated GPU.

    Before it stand `import numpy as np`, keras, and `core`, tracefire's module. What it passes to
    `answer()` is returned.
    """
    before = (
        "import json, os, sys\n"
        "import numpy as np\n"
        "import keras_tracefire\n"
        "import keras\n"
        "from tracefire import _core as core\n"
        "assert core.default_device() == '/GPU:0', core.why_no_gpu()\n"
        "def answer(value): print('answer', json.dumps(value))\n"
    )
    env = {
        **os.environ,
        **_environment(),
        "KERAS_BACKEND": "tracefire",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run(
        [sys.executable, "-c", before + program], capture_output=True, text=True, env=env
    )
    assert done.returncode == 0, done.stderr
    answers = [x[7:] for x in done.stdout.splitlines() if x.startswith("answer ")]
    return json.loads(answers[-1])
