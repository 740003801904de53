# SPDX-License-Identifier: Apache-2.0
"""Tests of the Keras backend. `tracefire` comes from PYTHONPATH: build/python, or a wheel."""

import os
import pathlib
import sys

os.environ["KERAS_BACKEND"] = "tracefire"
sys.path.insert(0, str(pathlib.Path(__file__).parent))

import keras_tracefire  # noqa: E402, F401
