# SPDX-License-Identifier: Apache-2.0
"""Puts the NumPy double in the place of `tracefire._core` where the module is not built."""

import importlib.util
import os
import pathlib
import sys

PACKAGE = pathlib.Path(__file__).parents[2] / "python" / "tracefire"


def is_built():
    return any(PACKAGE.glob("_core*.so"))


def choose():
    """Returns "engine" or "double"."""
    if is_built() and os.environ.get("TRACEFIRE_TEST_CORE") != "fake":
        return "engine"
    if "tracefire._core" not in sys.modules:
        import fake_core

        sys.modules["tracefire._core"] = fake_core
        package = importlib.util.find_spec("tracefire")
        assert package is not None
    return "double"
