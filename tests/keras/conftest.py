# SPDX-License-Identifier: Apache-2.0
"""Tests of the Keras backend. They use the built extension module, or its NumPy double."""

import importlib.util
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "python")]


def _choose_core():
    """TRACEFIRE_TEST_CORE=fake takes the double even where the module is built."""
    import tracefire_core_choice

    tracefire_core_choice.choose()


os.environ["KERAS_BACKEND"] = "tracefire"
if importlib.util.find_spec("tracefire_core_choice"):
    _choose_core()
