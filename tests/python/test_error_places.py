# SPDX-License-Identifier: Apache-2.0
"""An error names the source line of the call that failed, also where an equal computation ran before
from another line and its program is used again."""

import inspect

import numpy as np
import pytest

core = pytest.importorskip("tracefire._core")
import tracefire as tf  # noqa: E402
from tracefire import errors  # noqa: E402

TABLE = np.arange(12, dtype="float32").reshape(4, 3)


def gather(index):
    """A row of the table, and the number of the line that asks for it."""
    line = inspect.currentframe().f_lineno + 1
    return core.ops.gather(tf.tensor(TABLE), tf.tensor([index]), axis=0), line


def gather_too(index):
    line = inspect.currentframe().f_lineno + 1
    return core.ops.gather(tf.tensor(TABLE), tf.tensor([index]), axis=0), line


def finite(value):
    line = inspect.currentframe().f_lineno + 1
    return core.ops.check_finite(tf.tensor([1.0, value])) + 1, line


def finite_too(value):
    line = inspect.currentframe().f_lineno + 1
    return core.ops.check_finite(tf.tensor([1.0, value])) + 1, line


@pytest.mark.parametrize(
    "calls, good, bad",
    [((gather, gather_too), 1, 77), ((finite, finite_too), 2.0, np.nan)],
)
def test_equal_computations_of_two_lines_are_told_apart(calls, good, bad):
    for call in calls:
        call(good)[0].numpy()  # a program is made, or one is found
    for call in calls + calls:
        value, line = call(bad)
        with pytest.raises(errors.Error, match=rf"test_error_places\.py:{line}\b"):
            value.numpy()
