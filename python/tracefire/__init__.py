# SPDX-License-Identifier: Apache-2.0
"""Tracefire: train and run neural networks, and know where the work was done.

Importing this package imports neither NumPy nor Keras. Keras programs need no line of it: with
`KERAS_BACKEND=tracefire` in the environment, set before Keras is imported, unmodified Keras runs on
Tracefire.
"""

import sys as _sys

import tracefire_keras as _tracefire_keras
from tracefire import _core
from tracefire import _operators
from tracefire import _variable
from tracefire import config
from tracefire import debugging
from tracefire import errors
from tracefire import profiler
from tracefire import summary
from tracefire._core import Tensor
from tracefire._core import Variable
from tracefire._core import fetch
from tracefire._core import proof
from tracefire._core import reset_proof
from tracefire._core import stop_gradient
from tracefire._core import tensor
from tracefire._manifest import manifest
from tracefire._tape import GradientTape
from tracefire._tape import custom_gradient

_tracefire_keras.install()
if "keras" in _sys.modules and _tracefire_keras.is_wanted():
    import keras_tracefire  # noqa: F401 - says so if Keras was imported without it

__version__ = _core.__version__
_operators.install(_core)
_variable.install(_core)


def device(name):
    """A scope whose operations are placed on `name`, such as "/GPU:0" or "/CPU:0"."""
    return _core.device_scope(name)


__all__ = [
    "GradientTape",
    "Tensor",
    "Variable",
    "config",
    "custom_gradient",
    "debugging",
    "device",
    "errors",
    "fetch",
    "manifest",
    "profiler",
    "proof",
    "reset_proof",
    "stop_gradient",
    "summary",
    "tensor",
]
