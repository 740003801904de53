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
from keras_tracefire.src import _data
from keras_tracefire.src import _epochs
from keras_tracefire.src import _interrupts
from keras_tracefire.src import _recovery
from keras_tracefire.src import _tensorboard
from keras_tracefire.src._messages import argument_error
from keras_tracefire.src._saving import write_manifest
from keras_tracefire.src._steps import Step
from keras_tracefire.src._steps import join
from keras_tracefire.src._steps import read
from keras_tracefire.src._steps import read_scalars
from keras_tracefire.src._steps import returns_metrics
from tracefire import GradientTape
from tracefire import errors
from tracefire import profiler

# Keras 3.16 renamed its base class.
_Base = getattr(base_trainer, "BaseTrainer", None) or base_trainer.Trainer


class _Mode:
    """The names by which training, testing and predicting go."""

    def __init__(self, name, stop, more_hooks=()):
        self.step, self.function = f"{name}_step", f"{name}_function"
        self.make = f"make_{name}_function"
        self.begin, self.end = f"on_{name}_batch_begin", f"on_{name}_batch_end"
        self.hooks = (self.begin, self.end) + more_hooks
        self.stop = stop


# What is said of a model after a step that failed.
_KEPT = "The model has the state of the step before it and can be trained on"

_TRAIN = _Mode("train", "stop_training", ("on_batch_begin", "on_batch_end"))
_TEST = _Mode("test", "stop_evaluating")
_PREDICT = _Mode("predict", "stop_predicting")


class TracefireTrainer(_Base):
    def __init__(self):
        super().__init__()
        self.train_function = None
        self.test_function = None
        self.predict_function = None
        self._say_why = _epochs.OnceAModel(self)
        self._watch = _data.Watch(self)
        self._seen_outputs = None  # shapes of what the loss was last given

    def save_assets(self, dir_path):
        """What `model.save` keeps beside the weights: the manifest of this process, as
        assets/tracefire_manifest.json in the .keras file. Loading needs it not."""
        write_manifest(dir_path)

    def _compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        self._seen_outputs = _data.shapes_of(y_pred)
        return super()._compute_loss(x, y, y_pred, sample_weight, training)

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
        self._make(_TRAIN, force)

    def make_test_function(self, force=False):
        self._make(_TEST, force)

    def make_predict_function(self, force=False):
        self._make(_PREDICT, force)

    def _make(self, mode, force):
        if getattr(self, mode.function) is None or force:
            setattr(self, mode.function, Step(self, getattr(self, mode.step), self.run_eagerly))

    # Epochs.

    def _plan(self, mode, iterator, callbacks, steps):
        """An EpochRunner and its data, or None to go batch by batch."""
        reason, worth_saying = _epochs.why_not(self, iterator, callbacks, mode.hooks, steps)
        if reason is not None:
            self._say_why(reason, worth_saying)
            return None
        step = getattr(self, mode.function)
        if step.eager_reason is not None:
            return None  # the step has said why
        data = _epochs.device_data(iterator, self._say_why)
        if data is None:
            return None
        runner = _epochs.EpochRunner(step, data)
        return (runner, data) if runner.can_run() else None

    def _run_chunks(self, mode, chunks, callbacks, logs_of):
        """Runs (first step, last step, function) after one another, between their callbacks; yields
        what they give."""
        for begin, end, run in chunks:
            getattr(callbacks, mode.begin)(begin)
            self._refuse_compilation(mode, mode.begin)
            one = begin == end  # a chunk of several steps is no step itself
            with profiler.Step(mode.step, begin) if one else profiler.Annotation(mode.step + "s"):
                result = run()
            _interrupts.raise_if_swallowed()
            getattr(callbacks, mode.end)(end, logs_of(result))
            self._refuse_compilation(mode, mode.end)
            yield result
            if getattr(self, mode.stop):
                break

    def _refuse_compilation(self, mode, hook):
        if getattr(self, mode.function) is not None:
            return
        raise errors.raised_here(
            "BadUsage",
            f"a callback's `{hook}` called compile() in the middle of an epoch, whose step, "
            "metrics and optimizer are gone with it",
            "compile() before fit, or in a callback between two epochs",
            "Change a setting such as model.optimizer.learning_rate, or use on_epoch_end",
        )

    def _run_epoch(self, mode, iterator, callbacks, steps, shuffle=False):
        """Trains or tests for one epoch. Returns its logs as numbers, for which the device is
        waited for once."""
        if getattr(self, mode.function) is None:  # a callback has compiled the model anew
            self._build_from(iterator)
            getattr(self, mode.make)()
        watched = _epochs.is_watched(callbacks)
        hooked = any(_epochs.needs_batches(c, mode.hooks) for c in callbacks.callbacks)
        looks = watched or hooked  # numbers of a chunk are read if a callback looks
        self._watch.look_once(iterator)
        plan = self._plan(mode, iterator, callbacks, steps)
        if plan is None:
            function = getattr(self, mode.function)
            rows = _epochs.rows_of(iterator, shuffle)
            kept = _recovery.BatchSteps(
                function, self, self._say_what_is_not_kept, each=looks, rows=rows
            )
            run, source = self._watch.watched(iterator, getattr(self, mode.step), kept)
            chunks = _epochs.batches(iterator, run)
        else:
            runner, data = plan
            source, order = iterator.data_adapter._inputs, data.order(shuffle)
            kept = _recovery.EpochSteps(runner, order, self, self._say_what_is_not_kept)
            size = 1 if kept.one_by_one else _epochs.chunk_size(self, data, watched)
            chunks = kept.watched(runner.chunks(order, size))

        logs = {}
        keeps = _KEPT if mode is _TRAIN else ""
        origin = _data.origin_of(iterator)
        with _data.naming_rows(source, kept.recover, keeps, origin=origin):
            for logs in self._run_chunks(
                mode, chunks, callbacks, lambda logs: read_scalars(logs) if looks else None
            ):
                pass
            # After whole chunks, with nothing in Python between two steps, the metrics hold what
            # the last step of Keras's own returned.
            if plan is None or not returns_metrics(self, mode.step):
                logs = self._get_metrics_result_or_logs(logs)
            logs = read_scalars(logs)
            kept.settle()
        return logs

    def _say_what_is_not_kept(self, why):
        self._say_why.say(
            f"If a step of {type(self).__name__!r} fails on its data, the model is lost, because "
            f"{why}."
        )

    @traceback_utils.filter_traceback
    @_interrupts.kept()
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
        splits = validation_split and validation_data is None
        if splits:
            (x, y, sample_weight), validation_data = array_slicing.train_validation_split(
                (x, y, sample_weight), validation_split=validation_split
            )
        iterator = self._iterator(
            x=x,
            y=y,
            sample_weight=sample_weight,
            batch_size=batch_size,
            steps_per_epoch=steps_per_epoch,
            shuffle=shuffle,
            class_weight=class_weight,
        )
        _data.check_targets(self, "fit", iterator, self.train_step)
        callbacks = self._prepare(_TRAIN, iterator, callbacks, verbose, epochs, add_history=True)
        self._check_labels(_TRAIN, iterator)
        origin = _data.validation_origin(iterator.data_adapter._num_samples if splits else None)
        if isinstance(validation_data, (list, tuple)):
            _data.check_labels(self, self.test_step, tuple(validation_data), origin)
        training_logs, finished = {}, False
        callbacks.on_train_begin()
        try:
            for epoch in range(self._initial_epoch or initial_epoch, epochs):
                self.reset_metrics()
                callbacks.on_epoch_begin(epoch)
                logs = self._run_epoch(_TRAIN, iterator, callbacks, steps_per_epoch, shuffle)
                epoch_logs = dict(logs)
                if validation_data is not None and self._should_eval(epoch, validation_freq):
                    val_logs = self._validate(
                        validation_data,
                        validation_batch_size or batch_size,
                        validation_steps,
                        callbacks,
                        origin,
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

    def _validate(self, validation_data, batch_size, steps, callbacks, origin):
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(validation_data)
        if self._eval_epoch_iterator is None:
            self._eval_epoch_iterator = self._iterator(
                origin,
                x=x,
                y=y,
                sample_weight=sample_weight,
                batch_size=batch_size,
                steps_per_epoch=steps,
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
    @_interrupts.kept()
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
            raise argument_error(f"Arguments not recognized: {kwargs}")
        iterator = self._eval_epoch_iterator if cached else None
        if iterator is None:
            iterator = self._iterator(
                x=x, y=y, sample_weight=sample_weight, batch_size=batch_size, steps_per_epoch=steps
            )
        _data.check_targets(self, "evaluate", iterator, self.test_step)
        callbacks = self._prepare(_TEST, iterator, callbacks, verbose)
        self._check_labels(_TEST, iterator)
        callbacks.on_test_begin()
        self.reset_metrics()
        logs = pythonify_logs(self._run_epoch(_TEST, iterator, callbacks, steps))
        callbacks.on_test_end(logs)
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    @traceback_utils.filter_traceback
    @_interrupts.kept()
    def predict(self, x, batch_size=None, verbose="auto", steps=None, callbacks=None):
        iterator = self._iterator(x=x, batch_size=batch_size, steps_per_epoch=steps)
        callbacks = self._prepare(_PREDICT, iterator, callbacks, verbose)
        callbacks.on_predict_begin()
        watched = _epochs.is_watched(callbacks)
        plan = self._plan(_PREDICT, iterator, callbacks, steps)
        whole = plan is not None and plan[0].can_collect()
        if whole:
            runner, data = plan
            size = _epochs.chunk_size(self, data, watched)
            chunks = runner.chunks(None, size, collect=True)
        else:  # each to the host: nobody knows how many there will be
            step = self.predict_function
            chunks = _epochs.batches(iterator, lambda batches: join([step([b]) for b in batches]))
        if watched:  # what a progress bar counts has been computed; else all is read at the end
            chunks = ((b, e, lambda run=run: read(run())) for b, e, run in chunks)
        seen = _recovery.Predictions(_epochs.rows_of(iterator))
        with _data.naming_rows(_data.whole_arrays(iterator), seen.recover, always=False):
            # Keras converts what it hands to callbacks; between whole chunks nobody listens.
            parts = list(
                self._run_chunks(
                    _PREDICT,
                    seen.watched(chunks),
                    callbacks,
                    lambda out: None if whole else {"outputs": out},
                )
            )
            callbacks.on_predict_end()
            return join(parts)

    # Single batches.

    def train_on_batch(
        self, x, y=None, sample_weight=None, class_weight=None, return_dict=False
    ):
        self._assert_compile_called("train_on_batch")
        if class_weight is not None:
            if sample_weight is not None:
                raise argument_error(
                    "Arguments `sample_weight` and `class_weight` cannot be specified at the same "
                    f"time. Received: sample_weight={sample_weight}, class_weight={class_weight}"
                )
            sample_weight = data_adapter_utils.class_weight_to_sample_weights(y, class_weight)
        batch = _as_arrays((x, y, sample_weight))
        with _interrupts.held_back():
            self._symbolic_build(data_batch=batch)
        self.make_train_function()
        self.reset_metrics()
        return self._run_batch(_TRAIN, batch, return_dict)

    def test_on_batch(self, x, y=None, sample_weight=None, return_dict=False):
        self._assert_compile_called("test_on_batch")
        batch = _as_arrays((x, y, sample_weight))
        with _interrupts.held_back():
            self._symbolic_build(data_batch=batch)
        self.make_test_function()
        self.reset_metrics()
        return self._run_batch(_TEST, batch, return_dict)

    def predict_on_batch(self, x):
        batch = _as_arrays((x,))
        self._build_on(batch[0])
        self.make_predict_function()
        failed = _recovery.Failed(None, data=batch)
        with _data.naming_rows(batch, lambda: failed):
            return tree.map_structure(np.array, read(self.predict_function([batch])))

    def _run_batch(self, mode, batch, return_dict):
        _data.check_labels(self, getattr(self, mode.step), batch)
        self._watch.look(batch)
        function = getattr(self, mode.function)
        kept = _recovery.BatchSteps(
            function, self, self._say_what_is_not_kept, each=True, numbered=False
        )
        with _data.naming_rows(batch, kept.recover, _KEPT if mode is _TRAIN else ""):
            logs = pythonify_logs(read_scalars(kept([batch])))
            kept.settle()
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    # Preparation.

    def _iterator(self, origin=None, shuffle=False, **arguments):
        _data.check_arguments(**arguments)
        iterator = EpochIterator(
            shuffle=shuffle, steps_per_execution=self.steps_per_execution, **arguments
        )
        if origin is not None:
            iterator._tracefire_origin = origin
        _data.check_kinds(iterator)
        return iterator

    def _check_labels(self, mode, iterator):
        arrays = _data.whole_arrays(iterator)
        if arrays is not None:
            step = getattr(self, mode.step)
            _data.check_labels(self, step, arrays, _data.origin_of(iterator))

    def _prepare(self, mode, iterator, callbacks, verbose, epochs=1, add_history=False):
        """Builds what is missing, for a run that nobody has stopped. Returns its callbacks."""
        if mode is _PREDICT:
            self._build_for_predict(iterator)
        else:
            self._build_from(iterator)
        callbacks = self._callback_list(
            callbacks, verbose, epochs, iterator.num_batches, add_history
        )
        getattr(self, mode.make)()
        setattr(self, mode.stop, False)
        return callbacks

    def _callback_list(self, callbacks, verbose, epochs, steps, add_history):
        if isinstance(callbacks, callbacks_module.CallbackList):
            return callbacks
        _tensorboard.adopt(callbacks)
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
        with _epochs.one_batch(iterator), _interrupts.held_back():
            self._symbolic_build(iterator=iterator)

    def _build_for_predict(self, iterator):
        _epochs.refuse_empty(iterator)
        if all(layer.built for layer in self._flatten_layers()):
            return
        with _epochs.one_batch(iterator):
            for _, _, batches in iterator:
                x, _, _ = data_adapter_utils.unpack_x_y_sample_weight(batches[0])
                self._build_on(x)
                break

    def _build_on(self, x):
        if not all(layer.built for layer in self._flatten_layers()):
            with backend.StatelessScope(), _interrupts.held_back():
                self(x)


Trainer = TracefireTrainer


def _rows(x):
    return next(i for i in tree.flatten(x) if i is not None).shape[0]


def _as_arrays(structure):
    """Nested lists of numbers become arrays; arrays and tensors stay."""

    def convert(part):
        if isinstance(part, (list, tuple)):
            leaves = tree.flatten(part)
            if leaves and all(isinstance(v, (bool, int, float)) for v in leaves):
                return _array_of(part)
        return tree.map_structure(
            lambda v: v if v is None or hasattr(v, "shape") else np.asarray(v), part
        )

    return tuple(convert(part) for part in structure)


def _array_of(numbers):
    try:
        return np.asarray(numbers)
    except ValueError as error:
        raise argument_error(
            f"The rows of a nested list differ in length: {error}. Expected: rows of one length."
        ) from error
