# SPDX-License-Identifier: Apache-2.0
"""Devices and placement policy, with TensorFlow's names."""

from typing import NamedTuple

from tracefire import _core, errors


class PhysicalDevice(NamedTuple):
    """A device of this machine: name "/physical_device:GPU:0", device_type "GPU"."""

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device that tensors can be placed on: name "/device:GPU:0", device_type "GPU"."""

    name: str
    device_type: str


def _devices(prefix, cls, device_type):
    found = []
    for name in _core.list_devices():
        kind, index = name.rsplit("/", 1)[-1].split(":")[-2:]
        if device_type in (None, kind):
            found.append(cls(f"/{prefix}:{kind}:{index}", kind))
    return sorted(found, key=lambda device: device.device_type != "CPU")


def list_physical_devices(device_type=None):
    """The devices that can be used, CPUs first; `device_type` is None, "CPU" or "GPU"."""
    return _devices("physical_device", PhysicalDevice, device_type)


def list_logical_devices(device_type=None):
    """The devices by the names that tensors and `tracefire.device` use."""
    return _devices("device", LogicalDevice, device_type)


def truth(value, setter):
    """`value` as `setter` takes it: True or False, NumPy's included, and nothing else."""
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return bool(value)
    raise errors.raised_here(
        "BadSetting", f"{setter} was given {value!r:.100}", "True or False", "Pass one of these", TypeError
    )


def set_soft_device_placement(enabled):
    """True: an operation without a kernel on its device runs on the CPU and says so. False: error.

    The message and the proof name every operation that fell back. Raises TypeError for what is no
    truth value.
    """
    _core.set_soft_device_placement(truth(enabled, "set_soft_device_placement"))


def get_soft_device_placement():
    return _core.get_setting("device_policy") == "soft"


def why_no_gpu():
    """Why no GPU is used and how to fix it, in one line; "" where one is used."""
    return _core.why_no_gpu()


def library_report():
    """Every NVIDIA library that was looked for: places, versions and outcome, as text."""
    return _core.library_report()
