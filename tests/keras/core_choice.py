# SPDX-License-Identifier: Apache-2.0
"""Puts the NumPy double in the place of `tracefire._core` where the module is not built."""

import importlib.machinery
import importlib.util
import os
import sys


def choose():
    """Returns "engine" or "double". TRACEFIRE_TEST_CORE=double asks for the double."""
    if os.environ.get("TRACEFIRE_TEST_CORE") != "double":
        package = importlib.util.find_spec("tracefire")
        places = list(package.submodule_search_locations)
        if importlib.machinery.PathFinder.find_spec("tracefire._core", places):
            return "engine"
    if "tracefire._core" not in sys.modules:
        import fake_core

        sys.modules["tracefire._core"] = fake_core
    return "double"
