# SPDX-License-Identifier: Apache-2.0
"""Keras on Tracefire.

`KERAS_BACKEND=tracefire` is all a program needs: a `.pth` file beside this package imports it at
Python's start when that variable is set. Importing it by hand before Keras works too.

Importing this package imports neither Keras nor NumPy nor the engine; it only prepares Keras's
import.
"""

import os

from keras_tracefire import _hook

os.environ.setdefault("KERAS_BACKEND", "tracefire")
_hook.install()
