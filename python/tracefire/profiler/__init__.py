# SPDX-License-Identifier: Apache-2.0
"""Where time and memory go: operations, kernels, steps, input, memory over time.

    with tracefire.profiler.Session() as session:
        for i, batch in enumerate(batches):
            with tracefire.profiler.Step("train", i):
                train(batch)
    print(session.profile)

TensorFlow's names are in `tracefire.profiler.experimental`.
"""

from tracefire import _core
from tracefire._core import Profile
from tracefire.profiler import experimental


def start(step_times=True, memory=True, max_events=100000):
    """Begins to record. `step_times` measures single operations, `memory` keeps bytes in use over
    time, `max_events` limits the time line."""
    _core.start_profile(step_times=step_times, memory=memory, max_events=max_events)


def stop():
    """Ends the recording and returns its Profile."""
    return _core.stop_profile()


class Session:
    """Records inside a `with` block; afterwards `profile` holds the result."""

    def __init__(self, **options):
        self._options = options
        self.profile = None

    def __enter__(self):
        start(**self._options)
        return self

    def __exit__(self, kind, value, traceback):
        self.profile = stop()


def Step(name, step=-1):  # noqa: N802 - a context manager
    """One step of a loop. What lies between two steps of a name is time without work."""
    return _core.ProfileScope(name, "step", step)


def Input(name):  # noqa: N802
    """Fetching or preparing data."""
    return _core.ProfileScope(name, "input")


def Annotation(name):  # noqa: N802
    """A stretch of the program with a name."""
    return _core.ProfileScope(name)


__all__ = [
    "Annotation",
    "Input",
    "Profile",
    "Session",
    "Step",
    "experimental",
    "start",
    "stop",
]
