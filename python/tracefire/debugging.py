# SPDX-License-Identifier: Apache-2.0
"""Switches that make the engine say what it does."""

from tracefire import _core


def set_log_device_placement(enabled):
    """Prints, for every operation that runs, its device and kernel to stderr."""
    _core.set_log_device_placement(bool(enabled))


def get_log_device_placement():
    return bool(_core.get_setting("log_device_placement"))
