# SPDX-License-Identifier: Apache-2.0
"""Warnings that point at the user's own line."""

import os
import sys
import warnings

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def warn(text):
    """A UserWarning at the innermost frame outside Keras and this package."""
    keras = os.path.dirname(os.path.abspath(sys.modules["keras.src"].__file__)) + os.sep
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((_OURS, keras)):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)
