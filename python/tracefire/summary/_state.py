# SPDX-License-Identifier: Apache-2.0
"""The default writer, step and condition of each thread."""

import contextlib
import threading


class _State(threading.local):
    def __init__(self):
        self.writer = None
        self.step = None
        self.record = True

    @contextlib.contextmanager
    def using(self, writer, step):
        before = self.writer, self.step
        self.writer = writer
        if step is not None:
            self.step = step
        try:
            yield writer
        finally:
            writer.flush()
            self.writer, self.step = before


state = _State()


@contextlib.contextmanager
def record_if(condition):
    """Values are written inside the `with` block only if `condition`, a bool or a function, is
    true."""
    before, state.record = state.record, condition
    try:
        yield
    finally:
        state.record = before


def should_record_summaries():
    return bool(state.record() if callable(state.record) else state.record)
