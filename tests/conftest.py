# SPDX-License-Identifier: Apache-2.0
"""What all Python tests share: labels for scripts/run_tests, and an end for a test that hangs."""

import faulthandler
import os
import pathlib
import sys

LABELS = ("deep", "slow", "threads")
SECONDS = {"deep": 3600, "slow": 900}  # how long a test may take, by its label
OTHERS = 300

_stderr = None
_running = os.environ.pop("RUN_TESTS_CURRENT", None)  # not for the programs that tests start


def pytest_configure(config):
    global _stderr
    _stderr = os.fdopen(os.dup(sys.stderr.fileno()), "w")  # pytest captures the other


def pytest_collection_modifyitems(items):
    for item in items:
        for label in LABELS:
            if item.get_closest_marker(label):
                item.user_properties.append(("label", label))


def pytest_runtest_setup(item):
    """Ends the process with every thread's stack where a test hangs in C++ or in Python, and leaves
    the test's name where scripts/run_tests finds it: the report has not been written then."""
    limits = [SECONDS[label] for label in SECONDS if item.get_closest_marker(label)]
    faulthandler.dump_traceback_later(max(limits, default=OTHERS), exit=True, file=_stderr)
    if _running:
        pathlib.Path(_running).write_text(item.nodeid)


def pytest_runtest_teardown(item):
    faulthandler.cancel_dump_traceback_later()
