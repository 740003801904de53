# SPDX-License-Identifier: Apache-2.0
"""tf.summary.experimental: the default step, and the scope that gives a tag."""

import contextlib

from tracefire.summary._state import state


def set_step(step):
    """The default step of this thread: a number, or a variable that is read at each use."""
    state.step = step


def get_step():
    return state.step


@contextlib.contextmanager
def summary_scope(name, default_name="summary", values=None):
    """Yields (tag, scope) for a value called `name`."""
    name = name or default_name
    yield name, name.rstrip("/") + "/"
