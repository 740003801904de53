# SPDX-License-Identifier: Apache-2.0
"""The Tracefire backend in the layout that Keras 3.16 and newer look for."""

from keras_tracefire.src import distribution_lib  # noqa: F401
from keras_tracefire.src import ops  # noqa: F401
from keras_tracefire.src import random  # noqa: F401
from keras_tracefire.src import rnn  # noqa: F401
from keras_tracefire.src.ops.core import IS_THREAD_SAFE  # noqa: F401
from keras_tracefire.src.ops.core import SUPPORTS_COMPLEX_DTYPES  # noqa: F401
from keras_tracefire.src.ops.core import SUPPORTS_GRADIENT  # noqa: F401
from keras_tracefire.src.ops.core import SUPPORTS_RAGGED_TENSORS  # noqa: F401
from keras_tracefire.src.ops.core import SUPPORTS_SPARSE_TENSORS  # noqa: F401
from keras_tracefire.src.ops.core import Variable  # noqa: F401
from keras_tracefire.src.ops.core import compute_output_spec  # noqa: F401
from keras_tracefire.src.ops.core import device_scope  # noqa: F401
from keras_tracefire.src.ops.core import name_scope  # noqa: F401

tensorboard = None
