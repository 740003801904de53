# SPDX-License-Identifier: Apache-2.0
"""fit, evaluate and predict.

The trainer knows no layer, loss, metric or optimizer by name: it traces the model's own step
methods. `train_step(self, data)` may be overridden as in Keras on TensorFlow or PyTorch;
gradients then come from `tracefire.GradientTape`.
"""

import warnings

import numpy as np

from keras.src import backend
from keras.src import callbacks as callbacks_module
from keras.src import optimizers as optimizers_module
from keras.src import tree
from keras.src.backend import config
from keras.src.trainers import trainer as base_trainer
from keras.src.trainers.data_adapters import array_slicing
from keras.src.trainers.data_adapters import data_adapter_utils
from keras.src.trainers.epoch_iterator import EpochIterator
from keras.src.utils import traceback_utils
from keras.src.utils.python_utils import pythonify_logs
from keras_tracefire.src import _epochs
from keras_tracefire.src._steps import Step
from keras_tracefire.src._steps import join
from keras_tracefire.src._steps import read
from keras_tracefire.src._steps import read_scalars
from keras_tracefire.src._steps import returns_metrics
from tracefire import GradientTape

# Keras 3.16 renamed its base class.
_Base = getattr(base_trainer, "BaseTrainer", None) or base_trainer.Trainer

_TRAIN_HOOKS = ("on_batch_begin", "on_batch_end", "on_train_batch_begin", "on_train_batch_end")
_TEST_HOOKS = ("on_test_batch_begin", "on_test_batch_end")
_PREDICT_HOOKS = ("on_predict_batch_begin", "on_predict_batch_end")


class TracefireTrainer(_Base):
    def __init__(self):
        super().__init__()
        self.train_function = None
        self.test_function = None
        self.predict_function = None
        self._say_why = _epochs.OnceAModel(self)

    # Steps. One batch each; traced as they are.

    def train_step(self, data):
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        with GradientTape() as tape:
            y_pred = self(x, training=True) if self._call_has_training_arg else self(x)
            loss = self._compute_loss(
                x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=True
            )
            scaled = loss if self.optimizer is None else self.optimizer.scale_loss(loss)
        weights = self.trainable_weights
        if weights:
            self.optimizer.apply(tape.gradient(scaled, weights), weights)
        else:
            warnings.warn("The model does not have any trainable weights.", stacklevel=2)
        self._loss_tracker.update_state(loss, sample_weight=_rows(x))
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def test_step(self, data):
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        y_pred = self(x, training=False) if self._call_has_training_arg else self(x)
        loss = self._compute_loss(
            x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=False
        )
        self._loss_tracker.update_state(loss, sample_weight=_rows(x))
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def predict_step(self, data):
        x, _, _ = data_adapter_utils.unpack_x_y_sample_weight(data)
        return self(x, training=False) if self._call_has_training_arg else self(x)

    def make_train_function(self, force=False):
        if self.train_function is None or force:
            self.train_function = Step(self, self.train_step, self.run_eagerly)

    def make_test_function(self, force=False):
        if self.test_function is None or force:
            self.test_function = Step(self, self.test_step, self.run_eagerly)

    def make_predict_function(self, force=False):
        if self.predict_function is None or force:
            self.predict_function = Step(self, self.predict_step, self.run_eagerly)

    # Epochs.

    def _plan(self, step, iterator, callbacks, hooks, steps):
        """An EpochRunner and its data, or None to go batch by batch."""
        reason, worth_saying = _epochs.why_not(self, iterator, callbacks, hooks, steps)
        if reason is not None:
            self._say_why(reason, worth_saying)
            return None
        if step.eager_reason is not None:
            return None  # the step has said why
        data = _epochs.device_data(iterator, self._say_why)
        if data is None:
            return None
        runner = _epochs.EpochRunner(step, data)
        return (runner, data) if runner.can_run() else None

    def _chunks(self, step, iterator, callbacks, hooks, steps, shuffle=False):
        """One epoch: an iterable of (first step, last step, function that runs them), and whether
        the engine runs whole chunks, with nothing in Python between two steps."""
        plan = self._plan(step, iterator, callbacks, hooks, steps)
        if plan is None:
            return self._batches(step, iterator), False
        runner, data = plan
        size = _epochs.chunk_size(self, data, _epochs.is_watched(callbacks))
        return runner.chunks(data.order(shuffle), size), True

    def _batches(self, step, iterator):
        with iterator.catch_stop_iteration():
            for begin, end, batches in iterator:
                yield begin, end, lambda batches=batches: step(batches)

    def _final_logs(self, logs, method, whole):
        """The logs of an epoch as numbers, for which the device is waited for once.

        After whole chunks the metrics hold what the last step of Keras's own returned.
        """
        if not whole or not returns_metrics(self, method):
            logs = self._get_metrics_result_or_logs(logs)
        return read_scalars(logs)

    def _logs_for(self, callbacks, logs, hooks):
        """Logs of a chunk as numbers if a callback looks; reading them waits for the device."""
        watched = _epochs.is_watched(callbacks)
        hooked = any(_epochs.needs_batches(c, hooks) for c in callbacks.callbacks)
        return read_scalars(logs) if watched or hooked else None

    @traceback_utils.filter_traceback
    def fit(
        self,
        x=None,
        y=None,
        batch_size=None,
        epochs=1,
        verbose="auto",
        callbacks=None,
        validation_split=0.0,
        validation_data=None,
        shuffle=True,
        class_weight=None,
        sample_weight=None,
        initial_epoch=0,
        steps_per_epoch=None,
        validation_steps=None,
        validation_batch_size=None,
        validation_freq=1,
    ):
        self._assert_compile_called("fit")
        max_epochs = config.max_epochs()
        if max_epochs and max_epochs < epochs:
            warnings.warn(f"Limiting epochs to {max_epochs}", stacklevel=2)
            epochs = max_epochs
        self._eval_epoch_iterator = None
        if validation_split and validation_data is None:
            (x, y, sample_weight), validation_data = array_slicing.train_validation_split(
                (x, y, sample_weight), validation_split=validation_split
            )
        iterator = EpochIterator(
            x=x,
            y=y,
            sample_weight=sample_weight,
            batch_size=batch_size,
            steps_per_epoch=steps_per_epoch,
            shuffle=shuffle,
            class_weight=class_weight,
            steps_per_execution=self.steps_per_execution,
        )
        self._build_from(iterator)
        callbacks = self._callback_list(
            callbacks, verbose, epochs, iterator.num_batches, add_history=True
        )
        self.make_train_function()
        self.stop_training = False
        training_logs, finished = {}, False
        callbacks.on_train_begin()
        try:
            for epoch in range(self._initial_epoch or initial_epoch, epochs):
                self.reset_metrics()
                callbacks.on_epoch_begin(epoch)
                epoch_logs = self._train_epoch(iterator, callbacks, steps_per_epoch, shuffle)
                if validation_data is not None and self._should_eval(epoch, validation_freq):
                    val_logs = self._validate(
                        validation_data,
                        validation_batch_size or batch_size,
                        validation_steps,
                        callbacks,
                    )
                    epoch_logs.update({f"val_{name}": value for name, value in val_logs.items()})
                callbacks.on_epoch_end(epoch, epoch_logs)
                training_logs = epoch_logs
                if self.stop_training:
                    break
            finished = True
        finally:
            # Also after Ctrl-C: the weights are those of the last finished step.
            if isinstance(self.optimizer, optimizers_module.Optimizer) and epochs > 0:
                self.optimizer.finalize_variable_values(self.trainable_weights)
            self._eval_epoch_iterator = None
            if finished:
                callbacks.on_train_end(logs=training_logs)
        return self.history

    def _train_epoch(self, iterator, callbacks, steps, shuffle):
        step, logs = self.train_function, {}
        chunks, whole = self._chunks(step, iterator, callbacks, _TRAIN_HOOKS, steps, shuffle)
        for begin, end, run in chunks:
            callbacks.on_train_batch_begin(begin)
            logs = run()
            callbacks.on_train_batch_end(end, self._logs_for(callbacks, logs, _TRAIN_HOOKS))
            if self.stop_training:
                break
        return dict(self._final_logs(logs, "train_step", whole))

    def _validate(self, validation_data, batch_size, steps, callbacks):
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(validation_data)
        if self._eval_epoch_iterator is None:
            self._eval_epoch_iterator = EpochIterator(
                x=x,
                y=y,
                sample_weight=sample_weight,
                batch_size=batch_size,
                steps_per_execution=self.steps_per_execution,
                steps_per_epoch=steps,
                shuffle=False,
            )
        return self.evaluate(
            x=x,
            y=y,
            sample_weight=sample_weight,
            batch_size=batch_size,
            steps=steps,
            callbacks=callbacks,
            return_dict=True,
            _use_cached_eval_dataset=True,
        )

    @traceback_utils.filter_traceback
    def evaluate(
        self,
        x=None,
        y=None,
        batch_size=None,
        verbose="auto",
        sample_weight=None,
        steps=None,
        callbacks=None,
        return_dict=False,
        **kwargs,
    ):
        self._assert_compile_called("evaluate")
        cached = kwargs.pop("_use_cached_eval_dataset", False)
        if kwargs:
            raise ValueError(f"Arguments not recognized: {kwargs}")
        iterator = self._eval_epoch_iterator if cached else None
        if iterator is None:
            iterator = EpochIterator(
                x=x,
                y=y,
                sample_weight=sample_weight,
                batch_size=batch_size,
                steps_per_epoch=steps,
                shuffle=False,
                steps_per_execution=self.steps_per_execution,
            )
        self._build_from(iterator)
        callbacks = self._callback_list(callbacks, verbose, 1, iterator.num_batches)
        self.make_test_function()
        self.stop_evaluating = False
        callbacks.on_test_begin()
        logs = {}
        self.reset_metrics()
        chunks, whole = self._chunks(
            self.test_function, iterator, callbacks, _TEST_HOOKS, steps
        )
        for begin, end, run in chunks:
            callbacks.on_test_batch_begin(begin)
            logs = run()
            callbacks.on_test_batch_end(end, self._logs_for(callbacks, logs, _TEST_HOOKS))
            if self.stop_evaluating:
                break
        logs = pythonify_logs(self._final_logs(logs, "test_step", whole))
        callbacks.on_test_end(logs)
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    @traceback_utils.filter_traceback
    def predict(self, x, batch_size=None, verbose="auto", steps=None, callbacks=None):
        iterator = EpochIterator(
            x=x,
            batch_size=batch_size,
            steps_per_epoch=steps,
            shuffle=False,
            steps_per_execution=self.steps_per_execution,
        )
        self._build_for_predict(iterator)
        callbacks = self._callback_list(callbacks, verbose, 1, iterator.num_batches)
        self.make_predict_function()
        self.stop_predicting = False
        callbacks.on_predict_begin()
        parts, watched = [], _epochs.is_watched(callbacks)
        chunks, whole = self._predict_chunks(iterator, callbacks, steps)
        for begin, end, run in chunks:
            callbacks.on_predict_batch_begin(begin)
            outputs = run()
            # What a progress bar counts has been computed; otherwise all is read at the end.
            parts.append(read(outputs) if watched else outputs)
            # Keras converts what it hands to callbacks: for whole chunks nobody listens.
            callbacks.on_predict_batch_end(end, None if whole else {"outputs": outputs})
            if self.stop_predicting:
                break
        callbacks.on_predict_end()
        return join(parts)

    def _predict_chunks(self, iterator, callbacks, steps):
        """_chunks(), with the results of all steps instead of the last one's."""
        step = self.predict_function
        plan = self._plan(step, iterator, callbacks, _PREDICT_HOOKS, steps)
        if plan is None or not plan[0].can_collect():
            return self._predict_batches(step, iterator), False
        runner, data = plan
        size = _epochs.chunk_size(self, data, _epochs.is_watched(callbacks))
        return runner.chunks(None, size, collect=True), True

    def _predict_batches(self, step, iterator):
        # One after the other to the host: nobody knows how many there will be.
        with iterator.catch_stop_iteration():
            for begin, end, batches in iterator:
                yield begin, end, lambda batches=batches: join([step([b]) for b in batches])

    # Single batches.

    def train_on_batch(
        self, x, y=None, sample_weight=None, class_weight=None, return_dict=False
    ):
        self._assert_compile_called("train_on_batch")
        if class_weight is not None:
            if sample_weight is not None:
                raise ValueError(
                    "Arguments `sample_weight` and `class_weight` cannot be specified at the same "
                    f"time. Received: sample_weight={sample_weight}, class_weight={class_weight}"
                )
            sample_weight = data_adapter_utils.class_weight_to_sample_weights(y, class_weight)
        batch = _as_arrays((x, y, sample_weight))
        self._symbolic_build(data_batch=batch)
        self.make_train_function()
        self.reset_metrics()
        return self._batch_logs(self.train_function([batch]), return_dict)

    def test_on_batch(self, x, y=None, sample_weight=None, return_dict=False):
        self._assert_compile_called("test_on_batch")
        batch = _as_arrays((x, y, sample_weight))
        self._symbolic_build(data_batch=batch)
        self.make_test_function()
        self.reset_metrics()
        return self._batch_logs(self.test_function([batch]), return_dict)

    def predict_on_batch(self, x):
        batch = _as_arrays((x,))
        self._build_on(batch[0])
        self.make_predict_function()
        return tree.map_structure(np.array, read(self.predict_function([batch])))

    def _batch_logs(self, logs, return_dict):
        logs = pythonify_logs(read_scalars(logs))
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    # Preparation.

    def _callback_list(self, callbacks, verbose, epochs, steps, add_history=False):
        if isinstance(callbacks, callbacks_module.CallbackList):
            return callbacks
        return callbacks_module.CallbackList(
            callbacks,
            add_history=add_history,
            add_progbar=verbose != 0,
            verbose=verbose,
            epochs=epochs,
            steps=steps,
            model=self,
        )

    def _build_from(self, iterator):
        """Creates the variables of model, loss, metrics and optimizer that do not exist yet."""
        _epochs.refuse_empty(iterator)
        self._symbolic_build(iterator=iterator)
        iterator.reset()

    def _build_for_predict(self, iterator):
        _epochs.refuse_empty(iterator)
        if all(layer.built for layer in self._flatten_layers()):
            return
        for _, _, batches in iterator:
            x, _, _ = data_adapter_utils.unpack_x_y_sample_weight(batches[0])
            self._build_on(x)
            break
        iterator.reset()

    def _build_on(self, x):
        if not all(layer.built for layer in self._flatten_layers()):
            with backend.StatelessScope():
                self(x)


Trainer = TracefireTrainer


def _rows(x):
    return next(i for i in tree.flatten(x) if i is not None).shape[0]


def _as_arrays(structure):
    """Lists of numbers become arrays; arrays and tensors stay."""
    return tree.map_structure(
        lambda v: v if v is None or hasattr(v, "shape") else np.asarray(v), structure
    )
