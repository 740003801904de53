# SPDX-License-Identifier: Apache-2.0
"""Tests of the Keras backend. They use the built extension module, or else its NumPy double."""

import os
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
for path in (HERE, HERE.parents[1] / "python"):
    if str(path) not in sys.path:
        sys.path.insert(0, str(path))

os.environ["KERAS_BACKEND"] = "tracefire"

import core_choice  # noqa: E402

CORE = core_choice.choose()

import keras_tracefire  # noqa: E402, F401


def pytest_report_header(config):
    return f"tracefire._core: {CORE}"
