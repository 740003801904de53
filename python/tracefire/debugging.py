# SPDX-License-Identifier: Apache-2.0
"""Switches that make the engine say what it does."""

from tracefire import _core
from tracefire.config import truth


def set_log_device_placement(enabled):
    """Prints every operation that runs, in call order, to stderr, with its device and, where it did
    not run on the device that was wanted, the reason. Raises TypeError for what is no truth value."""
    _core.set_log_device_placement(truth(enabled, "set_log_device_placement"))


def get_log_device_placement():
    return bool(_core.get_setting("log_device_placement"))
