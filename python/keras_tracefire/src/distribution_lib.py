# SPDX-License-Identifier: Apache-2.0
"""What keras.distribution asks the backend for: nothing is there, and each name says so."""

from keras_tracefire.src import missing

__getattr__ = missing.attribute_of(__name__)
