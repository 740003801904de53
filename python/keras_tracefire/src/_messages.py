# SPDX-License-Identifier: Apache-2.0
"""What this backend says: warnings that point at the user's own line, errors with their code."""

import contextlib
import os
import sys
import warnings

from tracefire import errors

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def warn(text):
    """A UserWarning at the innermost frame outside Keras and this package."""
    keras = os.path.dirname(os.path.abspath(sys.modules["keras.src"].__file__)) + os.sep
    inside = (_OURS, keras, contextlib.__file__)  # decorators that are context managers
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(inside):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)


def argument_error(text):
    """A ValueError (TF-E0103) in the words of Keras's other backends."""
    return errors.coded("BadAttribute", text)


def dtype_error(text):
    """A TypeError (TF-E0102), likewise."""
    return errors.coded("DTypeMismatch", text)
