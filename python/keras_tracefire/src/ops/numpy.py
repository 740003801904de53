# SPDX-License-Identifier: Apache-2.0
"""Everything that `keras.backend.numpy` holds, by kind of function."""

from keras_tracefire.src import missing
from keras_tracefire.src.ops import _create
from keras_tracefire.src.ops import _elementwise
from keras_tracefire.src.ops import _index
from keras_tracefire.src.ops import _product
from keras_tracefire.src.ops import _reduce
from keras_tracefire.src.ops import _shape


def _public(module):
    return {
        name: value
        for name, value in vars(module).items()
        if callable(value)
        and not name.startswith("_")
        and getattr(value, "__module__", "") == module.__name__
    }


_HELPERS = {"constant_like", "floating", "iota", "slice_axis", "normalize_axes", "all_integers"}

for _module in (_elementwise, _reduce, _shape, _create, _index, _product):
    globals().update({k: v for k, v in _public(_module).items() if k not in _HELPERS})

__getattr__ = missing.attribute_of(__name__)
