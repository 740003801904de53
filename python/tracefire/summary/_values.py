# SPDX-License-Identifier: Apache-2.0
"""What is written, as NumPy arrays in the form that event files want. NumPy is imported when the
first value is written."""

from tracefire import _core
from tracefire import errors


def unwrap(value):
    """The tensor of a variable of ours or of Keras, else the value."""
    value = getattr(value, "value", value)
    return value() if callable(value) else value


def is_symbolic(value):
    return isinstance(unwrap(value), _core.Tensor)


def as_tensor(value):
    return _core.tensor(unwrap(value))


def to_numpy(value):
    import numpy as np

    return np.asarray(unwrap(value))


def number(value):
    if value.size != 1:
        raise errors.coded("BadAttribute", f"a scalar is one number, got an array of shape {value.shape}")
    return float(value.reshape(()))


def doubles(value):
    return value.astype("float64").ravel()


def pixels(value):
    """uint8 as it is; floats of [0, 1] scaled as TensorFlow's convert_image_dtype does."""
    import numpy as np

    if value.ndim != 4:
        raise errors.coded("BadAttribute", f"images are [count, height, width, channels], got shape {value.shape}")
    if value.dtype == np.uint8:
        return value
    if not np.issubdtype(value.dtype, np.floating) and value.dtype.name != "bfloat16":
        raise errors.coded("BadAttribute", f"images are uint8 or floats, got {value.dtype}")
    scaled = np.nan_to_num(value.astype("float64") * 255.5)
    return np.clip(scaled, 0, 255).astype("uint8")


def strings(value):
    """(list of texts, shape)."""
    if isinstance(value, (str, bytes)):
        return [value], []
    array = to_numpy(value)
    if array.dtype.kind not in "OSU":
        raise errors.coded("BadAttribute", f"strings are expected, got {array.dtype}")
    return list(array.ravel().tolist()), list(array.shape)
