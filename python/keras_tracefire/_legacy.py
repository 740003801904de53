# SPDX-License-Identifier: Apache-2.0
"""The backend in the layout of Keras 3.15 and older: these names become `keras.src.backend`'s."""

from keras_tracefire.src import distribution_lib  # noqa: F401
from keras_tracefire.src import random  # noqa: F401
from keras_tracefire.src.ops import core  # noqa: F401
from keras_tracefire.src.ops import image  # noqa: F401
from keras_tracefire.src.ops import linalg  # noqa: F401
from keras_tracefire.src.ops import math  # noqa: F401
from keras_tracefire.src.ops import nn  # noqa: F401
from keras_tracefire.src.ops import numpy  # noqa: F401
from keras_tracefire.src.ops.core import IS_THREAD_SAFE  # noqa: F401
from keras_tracefire.src.ops.core import SUPPORTS_COMPLEX_DTYPES  # noqa: F401
from keras_tracefire.src.ops.core import SUPPORTS_RAGGED_TENSORS  # noqa: F401
from keras_tracefire.src.ops.core import SUPPORTS_SPARSE_TENSORS  # noqa: F401
from keras_tracefire.src.ops.core import Variable  # noqa: F401
from keras_tracefire.src.ops.core import cast  # noqa: F401
from keras_tracefire.src.ops.core import compute_output_spec  # noqa: F401
from keras_tracefire.src.ops.core import cond  # noqa: F401
from keras_tracefire.src.ops.core import convert_to_numpy  # noqa: F401
from keras_tracefire.src.ops.core import convert_to_tensor  # noqa: F401
from keras_tracefire.src.ops.core import device_scope  # noqa: F401
from keras_tracefire.src.ops.core import is_tensor  # noqa: F401
from keras_tracefire.src.ops.core import name_scope  # noqa: F401
from keras_tracefire.src.ops.core import random_seed_dtype  # noqa: F401
from keras_tracefire.src.ops.core import scatter  # noqa: F401
from keras_tracefire.src.ops.core import shape  # noqa: F401
from keras_tracefire.src.ops.core import stop_gradient  # noqa: F401
from keras_tracefire.src.ops.core import vectorized_map  # noqa: F401
from keras_tracefire.src.rnn import bidirectional_gru  # noqa: F401
from keras_tracefire.src.rnn import bidirectional_lstm  # noqa: F401
from keras_tracefire.src.rnn import cudnn_ok  # noqa: F401
from keras_tracefire.src.rnn import gru  # noqa: F401
from keras_tracefire.src.rnn import lstm  # noqa: F401
from keras_tracefire.src.rnn import rnn  # noqa: F401

tensorboard = None
