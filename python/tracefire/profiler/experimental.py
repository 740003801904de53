# SPDX-License-Identifier: Apache-2.0
"""The profiler with TensorFlow's names (tf.profiler.experimental).

A profile is written below LOGDIR/plugins/profile/TIME/, where TensorBoard's profile plugin looks,
with profile.txt, profile.json, profile.html and trace.json beside it.
"""

import os
import socket
import time
from typing import NamedTuple

from tracefire import _core
from tracefire import errors
from tracefire._calls import described


class ProfilerOptions(NamedTuple):
    """As TensorFlow's. host_tracer_level 0 leaves out the times of single operations."""

    host_tracer_level: int = 2
    python_tracer_level: int = 0
    device_tracer_level: int = 1
    delay_ms: int | None = None


_logdir = None


def start(logdir, options=None):
    """Begins to record; stop() writes the profile below `logdir`. "" records for nobody."""
    global _logdir
    options = options or ProfilerOptions()
    if not hasattr(options, "host_tracer_level"):
        raise errors.raised_here(
            "BadUsage",
            f"profiler.start was given {described(options)} as its options",
            "ProfilerOptions, or None",
            "Pass options=ProfilerOptions(host_tracer_level=2)",
            errors.DTypeError,
        )
    folder = _checked(logdir)
    _core.start_profile(step_times=options.host_tracer_level > 0)
    _logdir = folder


def _checked(logdir):
    """The folder as a text; it is made now, so that no recording is lost at its end."""
    if not isinstance(logdir, (str, os.PathLike)):
        raise errors.raised_here(
            "BadUsage",
            f"profiler.start was given {type(logdir).__name__} {logdir!r} as the folder",
            "a path",
            "Give the path of a folder, or '' to record without writing",
        )
    folder = os.fspath(logdir)
    try:
        if folder:
            os.makedirs(os.path.join(folder, "plugins", "profile"), exist_ok=True)
    except (OSError, ValueError) as problem:  # ValueError: a NUL byte
        raise errors.raised_here(
            "CannotWrite",
            f"the folder {folder!r} for profiles cannot be made: "
            f"{getattr(problem, 'strerror', None) or problem}",
            "a place that this user may write to",
            "Choose another folder",
        ) from problem
    return folder


def stop(save=True):
    """Ends the recording; returns the folder of the profile, None where it is not saved."""
    global _logdir
    logdir, _logdir = _logdir, None
    profile = _core.stop_profile()
    return _save(profile, logdir) if save and logdir else None


def _save(profile, logdir):
    base = os.path.join(logdir, "plugins", "profile", time.strftime("%Y_%m_%d_%H_%M_%S"))
    folder, number = base, 1
    while os.path.exists(folder):
        number += 1
        folder = f"{base}_{number}"
    profile.write(folder)
    with open(os.path.join(folder, f"{socket.gethostname()}.xplane.pb"), "wb") as file:
        file.write(profile.xplane())
    return folder


class Profile:
    """Records inside a `with` block and writes the profile below `logdir`."""

    def __init__(self, logdir, options=None):
        self._logdir, self._options = logdir, options

    def __enter__(self):
        start(self._logdir, self._options)

    def __exit__(self, kind, value, traceback):
        stop()


class Trace:
    """Names a stretch of the program; with step_num=N it is a step of a loop."""

    def __init__(self, name, **metadata):
        step = metadata.get("step_num")
        self._scope = _core.ProfileScope(name) if step is None else _core.ProfileScope(name, "step", int(step))

    def __enter__(self):
        self._scope.__enter__()
        return self

    def __exit__(self, kind, value, traceback):
        self._scope.__exit__(kind, value, traceback)

    def set_metadata(self, **metadata):
        """Taken and left out: profiles keep names and steps only."""
