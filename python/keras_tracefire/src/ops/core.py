# SPDX-License-Identifier: Apache-2.0
"""Everything that `keras.backend.core` holds."""

from keras_tracefire.src.ops._control_flow import associative_scan
from keras_tracefire.src.ops._control_flow import cond
from keras_tracefire.src.ops._control_flow import fori_loop
from keras_tracefire.src.ops._control_flow import map
from keras_tracefire.src.ops._control_flow import scan
from keras_tracefire.src.ops._control_flow import switch
from keras_tracefire.src.ops._control_flow import vectorized_map
from keras_tracefire.src.ops._control_flow import while_loop
from keras_tracefire.src.ops._tensor import IS_THREAD_SAFE
from keras_tracefire.src.ops._tensor import SUPPORTS_COMPLEX_DTYPES
from keras_tracefire.src.ops._tensor import SUPPORTS_GRADIENT
from keras_tracefire.src.ops._tensor import SUPPORTS_RAGGED_TENSORS
from keras_tracefire.src.ops._tensor import SUPPORTS_SPARSE_TENSORS
from keras_tracefire.src.ops._tensor import Variable
from keras_tracefire.src.ops._tensor import cast
from keras_tracefire.src.ops._tensor import compute_output_spec
from keras_tracefire.src.ops._tensor import convert_to_numpy
from keras_tracefire.src.ops._tensor import convert_to_tensor
from keras_tracefire.src.ops._tensor import device_scope
from keras_tracefire.src.ops._tensor import is_tensor
from keras_tracefire.src.ops._tensor import name_scope
from keras_tracefire.src.ops._tensor import random_seed_dtype
from keras_tracefire.src.ops._tensor import remat
from keras_tracefire.src.ops._tensor import scatter
from keras_tracefire.src.ops._tensor import scatter_update
from keras_tracefire.src.ops._tensor import shape
from keras_tracefire.src.ops._tensor import slice
from keras_tracefire.src.ops._tensor import slice_update
from keras_tracefire.src.ops._tensor import stop_gradient
from keras_tracefire.src.ops._tensor import unstack
from tracefire import GradientTape
from tracefire import custom_gradient

__all__ = [
    "IS_THREAD_SAFE",
    "SUPPORTS_COMPLEX_DTYPES",
    "SUPPORTS_GRADIENT",
    "SUPPORTS_RAGGED_TENSORS",
    "SUPPORTS_SPARSE_TENSORS",
    "Variable",
    "associative_scan",
    "cast",
    "compute_output_spec",
    "cond",
    "convert_to_numpy",
    "convert_to_tensor",
    "custom_gradient",
    "device_scope",
    "fori_loop",
    "grad",
    "is_tensor",
    "map",
    "name_scope",
    "random_seed_dtype",
    "remat",
    "scan",
    "scatter",
    "scatter_update",
    "shape",
    "slice",
    "slice_update",
    "stop_gradient",
    "switch",
    "unstack",
    "vectorized_map",
    "while_loop",
]


def grad(f, argnums=0):
    """The gradient function of a function with a scalar result (Keras 3.16's `ops.grad`)."""
    single = isinstance(argnums, int)
    positions = (argnums,) if single else tuple(argnums)

    def gradient(*args, **kwargs):
        args = [convert_to_tensor(a) if i in positions else a for i, a in enumerate(args)]
        sources = [args[i] for i in positions]
        with GradientTape() as tape:
            value = convert_to_tensor(f(*args, **kwargs))
        grads = tape.gradient(value, sources, unconnected_gradients="zero")
        return grads[0] if single else tuple(grads)

    return gradient
