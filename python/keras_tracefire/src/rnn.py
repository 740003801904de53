# SPDX-License-Identifier: Apache-2.0
"""Recurrent networks: a generic loop over time; no fused kernels yet."""

from keras_tracefire.src import missing

__getattr__ = missing.attribute_of(__name__)


def rnn(*args, **kwargs):
    raise missing.function("rnn", "rnn")


def lstm(*args, **kwargs):
    raise NotImplementedError  # Keras then uses `rnn`


def gru(*args, **kwargs):
    raise NotImplementedError  # Keras then uses `rnn`


def bidirectional_lstm(*args, **kwargs):
    raise NotImplementedError


def bidirectional_gru(*args, **kwargs):
    raise NotImplementedError


def cudnn_ok(*args, **kwargs):
    return False
