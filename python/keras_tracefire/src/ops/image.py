# SPDX-License-Identifier: Apache-2.0
"""What `keras.backend.image` holds."""

from keras.src import backend
from keras_tracefire.src import missing
from keras_tracefire.src._messages import argument_error
from keras_tracefire.src.ops import _elementwise as ew
from keras_tracefire.src.ops import _reduce
from keras_tracefire.src.ops._index import take
from keras_tracefire.src.ops._shape import expand_dims
from keras_tracefire.src.ops._shape import stack

__getattr__ = missing.attribute_of(__name__)


def _images(images, data_format):
    images = ew.floating(images)
    data_format = backend.standardize_data_format(data_format)
    axis = -1 if data_format == "channels_last" else -3
    if len(images.shape) not in (3, 4):
        raise argument_error(
            "Invalid images rank: expected rank 3 (single image) or rank 4 (batch of images). "
            f"Received input with shape: images.shape={images.shape}"
        )
    return images, axis


def _channels(images, axis):
    return [take(images, i, axis) for i in range(3)]


def rgb_to_grayscale(images, data_format=None):
    images, axis = _images(images, data_format)
    # ITU-R BT.601 luma.
    weights = [ew.constant_like(w, images) for w in (0.2989, 0.5870, 0.1140)]
    parts = [ew.multiply(c, w) for c, w in zip(_channels(images, axis), weights)]
    return expand_dims(ew.add(ew.add(parts[0], parts[1]), parts[2]), axis)


def rgb_to_hsv(images, data_format=None):
    images, axis = _images(images, data_format)
    red, green, blue = _channels(images, axis)
    value = _reduce.max(images, axis)
    span = ew.subtract(value, _reduce.min(images, axis))
    grey = ew.equal(span, 0.0)
    safe = ew.where(grey, 1.0, span)
    saturation = ew.where(ew.equal(value, 0.0), 0.0, ew.divide_no_nan(span, value))
    sixth = ew.divide(1.0, ew.multiply(safe, 6.0))
    from_red = ew.multiply(ew.subtract(green, blue), sixth)
    from_green = ew.add(ew.multiply(ew.subtract(blue, red), sixth), 2.0 / 6.0)
    from_blue = ew.add(ew.multiply(ew.subtract(red, green), sixth), 4.0 / 6.0)
    hue = ew.where(
        ew.equal(red, value), from_red, ew.where(ew.equal(green, value), from_green, from_blue)
    )
    hue = ew.where(grey, 0.0, ew.mod(hue, 1.0))
    return stack([hue, saturation, value], axis=axis)


def hsv_to_rgb(images, data_format=None):
    images, axis = _images(images, data_format)
    hue, saturation, value = _channels(images, axis)
    angle = ew.multiply(hue, 6.0)

    def part(offset, bend):
        return ew.clip(bend(ew.subtract(ew.absolute(ew.subtract(angle, offset)), 1.0)), 0.0, 1.0)

    def falling(x):
        return ew.subtract(1.0, x)

    red = part(3.0, lambda x: x)
    green = part(2.0, falling)
    blue = part(4.0, falling)
    grey = ew.subtract(1.0, saturation)
    rgb = [ew.multiply(ew.add(grey, ew.multiply(saturation, c)), value) for c in (red, green, blue)]
    return stack(rgb, axis=axis)
