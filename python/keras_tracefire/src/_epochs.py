# SPDX-License-Identifier: Apache-2.0
"""Whole epochs in the engine.

Where nothing has to happen in Python between two batches, the data is put on the device once and
the engine runs many steps a call: it gathers each batch's rows itself, in the order that Keras's
own data adapter gives. Anything else is left to the loop over batches, so the semantics stay
Keras's.
"""

import contextlib

import numpy as np

from keras.src import callbacks as callbacks_module
from keras.src import tree
from keras.src.backend import config
from keras.src.distribution import distribution_lib
from keras.src.trainers.data_adapters import array_slicing
from keras.src.trainers.data_adapters.array_data_adapter import ArrayDataAdapter
from keras.src.utils.python_utils import is_default
from keras_tracefire.src._messages import warn
from keras_tracefire.src._steps import map_leaves
from keras_tracefire.src.ops._tensor import convert_to_tensor
from tracefire import errors
from tracefire import profiler

# Updates of the progress bar an epoch, when somebody watches.
_UPDATES = 8
_OUT_OF_MEMORY = "TF-E0203"


class EpochData:
    """Arrays of a data adapter on the device."""

    def __init__(self, adapter):
        self.rows = adapter._num_samples
        self.batch = adapter._batch_size
        self.full, self.rest = divmod(self.rows, self.batch)
        self._adapter = adapter
        sliceables = array_slicing.convert_to_sliceable(adapter._inputs, target_backend="numpy")
        with profiler.Input("data to the device"):
            self.template = map_leaves(self._upload, sliceables)
        self.tensors = [x for x in tree.flatten(self.template) if x is not None]
        self._walker = None

    def _upload(self, sliceable):
        return convert_to_tensor(sliceable.convert_to_numpy(sliceable[0 : self.rows]))

    def batch_specs(self, rows):
        """(shape, dtype) of the arrays of a batch of `rows` rows."""
        return [((rows,) + tuple(x.shape[1:]), x.dtype) for x in self.tensors]

    def order(self, shuffle):
        """Row numbers of the next epoch in the order of training; None without a shuffle.

        Keras's adapter walks over 0, 1, 2, ... in our place, so that the order is Keras's,
        whatever its random stream is.
        """
        if not shuffle:
            return None
        with profiler.Input("shuffle"):
            return self._shuffled(shuffle)

    def _shuffled(self, shuffle):
        if self._walker is None:
            size = self.batch if shuffle == "batch" else self.rows
            self._walker = ArrayDataAdapter(np.arange(self.rows), batch_size=size, shuffle=shuffle)
            if hasattr(self._adapter, "_epoch"):
                self._walker._epoch = self._adapter._epoch
        self._walker.on_epoch_begin()
        parts = [p[0] if isinstance(p, tuple) else p for p in self._walker.get_numpy_iterator()]
        self._walker.on_epoch_end()
        return np.concatenate(parts).astype("int32")


class EpochRunner:
    """Runs a step over an epoch in a few engine calls."""

    def __init__(self, step, data):
        self._step, self._data = step, data

    def can_run(self):
        """Traces the step for the full and the partial batch; False if it must run eagerly."""
        return all(self._traced(rows) is not None for rows in self._batches())

    def _batches(self):
        """Sizes of the batches there are: full ones, the rest."""
        data = self._data
        return ([data.batch] if data.full else []) + ([data.rest] if data.rest else [])

    def _traced(self, rows):
        return self._step.trace(self._data.template, self._data.batch_specs(rows))

    def can_collect(self):
        """True if the results of all steps can be joined to arrays."""
        return all(self._traced(rows).gives_arrays() for rows in self._batches())

    def functions(self):
        """What runs the steps."""
        return [self._traced(rows).function for rows in self._batches()]

    def run(self, order, lo, hi):
        """Runs the steps from `lo` to before `hi`."""
        rows = None if order is None else convert_to_tensor(order)
        if lo < self._data.full:
            self._run(rows, lo, min(hi, self._data.full), False)
        if hi > self._data.full:
            self._run_rest(order, False)

    def rows(self, order, step):
        """Numbers of the rows of a step's batch."""
        rows = _rows_of_step(step, self._data.batch, self._data.rows)
        return rows if order is None else order[rows]

    def chunks(self, order, chunk, collect=False):
        """Yields (first step, last step, function that runs them and gives the result)."""
        data = self._data
        with profiler.Input("order of rows"):
            rows = None if order is None else convert_to_tensor(order)
        for lo in range(0, data.full, max(chunk, 1)):
            hi = min(lo + max(chunk, 1), data.full)
            yield lo, hi - 1, lambda lo=lo, hi=hi: self._run(rows, lo, hi, collect)
        if data.rest:
            yield data.full, data.full, lambda: self._run_rest(order, collect)

    def _run(self, rows, lo, hi, collect):
        traced = self._traced(self._data.batch)
        out = traced.function.run_epoch(
            self._data.tensors, rows, self._data.batch, lo, hi, collect=collect
        )
        return traced.pack(out)

    def _run_rest(self, order, collect):
        data = self._data
        traced = self._traced(data.rest)
        first = data.full * data.batch
        rows = np.arange(first, data.rows, dtype="int32") if order is None else order[first:]
        return traced.pack(
            traced.function.run_epoch(data.tensors, rows, data.rest, 0, 1, collect=collect)
        )


def rows_of(iterator, shuffle=False):
    """A function that gives the rows of a step's batch by its number; None where the data are no
    arrays, their order is drawn or an epoch need not begin with their first row."""
    adapter = iterator.data_adapter
    if shuffle or iterator.steps_per_epoch or not isinstance(adapter, ArrayDataAdapter):
        return lambda step: None
    size, rows = adapter._batch_size, adapter._num_samples
    return lambda step: _rows_of_step(step, size, rows)


def _rows_of_step(step, batch, rows):
    """Which of so many rows lie in a step's batch, as they lie."""
    return np.arange(step * batch, min((step + 1) * batch, rows))


def batches(iterator, run):
    """Yields (first step, last step, function that runs them) of an epoch batch by batch."""
    with iterator.catch_stop_iteration():
        steps = iter(iterator)
        while True:
            with profiler.Input("next batch"):
                step = next(steps, None)
            if step is None:
                return
            begin, end, these = step
            yield begin, end, lambda these=these: run(these)


@contextlib.contextmanager
def one_batch(iterator):
    """Within it, an iterator gives a batch at a time, to build a model on the first. Keras gives a
    generator's first batches again, but not as many as there may be steps an execution."""
    steps, iterator.steps_per_execution = iterator.steps_per_execution, 1
    try:
        yield
    finally:
        iterator.steps_per_execution = steps
        iterator.reset()


def why_not(model, iterator, callbacks, hooks, steps):
    """Why an epoch cannot run in the engine: (reason or None, whether the user should hear it)."""
    if model.run_eagerly:
        return "run_eagerly=True", False
    if not isinstance(iterator.data_adapter, ArrayDataAdapter):
        return "the data is not given as arrays", False
    if steps is not None or config.max_steps_per_epoch():
        return "the number of steps is limited", False
    if distribution_lib.distribution() is not None:
        return "a keras.distribution is set", True
    inputs = tree.flatten(iterator.data_adapter._inputs)
    if any("sparse" in type(x).__module__ for x in inputs):
        return "an input is a sparse matrix", True
    hooked = [c for c in callbacks.callbacks if needs_batches(c, hooks)]
    if hooked:
        names = ", ".join(sorted({type(c).__name__ for c in hooked}))
        return f"a callback ({names}) runs at every batch", True
    return None, False


def needs_batches(callback, hooks):
    """True if `callback` must run between batches rather than between chunks."""
    if isinstance(callback, callbacks_module.CallbackList):
        return any(needs_batches(c, hooks) for c in callback.callbacks)
    if isinstance(callback, (callbacks_module.ProgbarLogger, callbacks_module.History)):
        return False
    if isinstance(callback, callbacks_module.TensorBoard):
        # What it does at a batch is write figures of batches and profile some of them.
        quiet = callback.update_freq == "epoch" and not callback.write_steps_per_second
        return not quiet or callback._should_trace
    saves = (callbacks_module.ModelCheckpoint, callbacks_module.BackupAndRestore)
    if isinstance(callback, saves):
        frequency = getattr(callback, "save_freq", getattr(callback, "_save_freq", None))
        return frequency != "epoch"
    return not all(is_default(getattr(callback, hook)) for hook in hooks)


def refuse_empty(iterator):
    """Raises if the data are arrays without a row."""
    adapter = iterator.data_adapter
    if isinstance(adapter, ArrayDataAdapter) and adapter._num_samples == 0:
        raise errors.raised_here(
            "EmptyInput",
            "the data has no rows",
            "at least one row",
            "Check the file or the split that produced it",
        )


def device_data(iterator, say):
    """The iterator's arrays on the device, uploaded once; None if they do not fit."""
    data = getattr(iterator, "_tracefire_data", None)
    if data is None:
        try:
            data = EpochData(iterator.data_adapter)
        except MemoryError as error:
            if errors.code_of(error) != _OUT_OF_MEMORY:
                raise
            say("the data does not fit into the memory of the device", True)
            return None
        iterator._tracefire_data = data
    return data


def is_watched(callbacks):
    """True if a progress bar wants figures during the epoch."""
    progbar = getattr(callbacks, "_progbar", None)
    return progbar is not None and progbar.verbose == 1


def chunk_size(model, data, watched):
    """Steps an engine call."""
    if model.steps_per_execution > 1:
        return model.steps_per_execution
    return -(-data.full // _UPDATES) if watched else data.full


class OnceAModel:
    """Says of a model, once each, why it leaves the fast path and what else is worth saying."""

    def __init__(self, model):
        self._model, self._said = model, set()

    def __call__(self, reason, worth_saying):
        if worth_saying:
            self.say(
                f"{type(self._model).__name__!r} runs batch by batch instead of by whole epochs, "
                f"which is slower, because {reason}."
            )

    def say(self, text):
        if text not in self._said:
            self._said.add(text)
            warn(text)
