# SPDX-License-Identifier: Apache-2.0
"""Keras's TensorBoard callback without TensorFlow: event files are written by tracefire.summary."""

import importlib.util
import types

from keras.src import callbacks as callbacks_module
from keras.src import tree
from tracefire import summary


def adopt(callbacks):
    """Gives the TensorBoard callbacks among `callbacks` our writer, where TensorFlow is not
    installed, which is what they would import."""
    if isinstance(callbacks, callbacks_module.CallbackList):
        callbacks = callbacks.callbacks
    for callback in tree.flatten(callbacks):
        if not isinstance(callback, callbacks_module.TensorBoard):
            continue
        if callback._summary_module is None and importlib.util.find_spec("tensorflow") is None:
            callback._summary_module = summary
            callback._write_keras_model_summary = types.MethodType(_write_model, callback)
            callback._write_keras_model_train_graph = types.MethodType(_write_step, callback)


def _write_model(callback):
    """The model's configuration for the graph view, as Keras writes it."""
    if type(callback.model).__name__ not in ("Functional", "Sequential"):
        return
    metadata = types.SimpleNamespace(
        plugin_data=types.SimpleNamespace(plugin_name="graph_keras_model", content=b"1")
    )
    with callback._train_writer.as_default():
        summary.write("keras", callback.model.to_json(), step=0, metadata=metadata)


def _write_step(callback):
    """The graph of the training step, once it has been traced."""
    function = callback.model.train_function.any_function()
    if function is not None:
        with callback._train_writer.as_default():
            summary.graph(function)
