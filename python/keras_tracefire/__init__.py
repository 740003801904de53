# SPDX-License-Identifier: Apache-2.0
"""Keras on Tracefire.

`KERAS_BACKEND=tracefire`, or `"backend": "tracefire"` in keras.json, is all a program needs:
`tracefire_keras`, which a `.pth` file loads at Python's start, imports this package when Keras is
imported. Importing it by hand before Keras, or `tracefire`, works too.

Importing this package imports neither Keras nor NumPy nor the engine; it only prepares Keras's
import.
"""

import os

from keras_tracefire import _hook

os.environ.setdefault("KERAS_BACKEND", "tracefire")
_hook.install()
