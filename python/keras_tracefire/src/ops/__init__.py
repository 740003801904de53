# SPDX-License-Identifier: Apache-2.0
from keras_tracefire.src.ops import core  # noqa: F401
from keras_tracefire.src.ops import image  # noqa: F401
from keras_tracefire.src.ops import linalg  # noqa: F401
from keras_tracefire.src.ops import math  # noqa: F401
from keras_tracefire.src.ops import nn  # noqa: F401
from keras_tracefire.src.ops import numpy  # noqa: F401
from keras_tracefire.src.ops.core import *  # noqa: F401, F403
