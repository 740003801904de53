# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the data that users give, said with the row where it lies.

One rule for features, targets and sample weights: NaN and infinities are named once, before the
first step, and training goes on, since a loss of one's own may leave such rows out. A label without
a class stops the run; the engine reports the label, and its row is looked up here.
"""

import contextlib
import re

import numpy as np

from keras.src.trainers.data_adapters import array_slicing
from keras.src.trainers.data_adapters import data_adapter_utils
from keras.src.trainers.data_adapters.array_data_adapter import ArrayDataAdapter
from keras_tracefire.src._messages import warn
from keras_tracefire.src._steps import is_own
from keras_tracefire.src.ops._tensor import Tensor
from keras_tracefire.src.ops._tensor import refuse_kind
from tracefire import errors

_BLOCK = 1 << 20  # elements looked at together
_LABEL = re.compile(r"label (-?\d+) is out of range(?:; labels run from 0 to (\d+))?")
_CURES = {
    "x": "Replace or drop such rows: keep = np.isfinite(x.reshape(len(x), -1)).all(axis=1); "
    "x, y = x[keep], y[keep]",
    "y": "Drop the rows without a target: keep = np.isfinite(y); x, y = x[keep], y[keep]",
    "sample_weight": "Give a weight of 0 to rows that shall not count",
}


def leaves(data):
    """(name, array) of each array of a batch or of (x, y, sample_weight), as users would write it."""
    for name, part in zip(_CURES, data_adapter_utils.unpack_x_y_sample_weight(data)):
        yield from _named(name, part)


def _named(name, part):
    if isinstance(part, dict):
        for key, value in part.items():
            yield from _named(f"{name}[{key!r}]", value)
    elif isinstance(part, (list, tuple)):
        for i, value in enumerate(part):
            yield from _named(f"{name}[{i}]", value)
    elif part is not None and len(getattr(part, "shape", ())) > 0:
        if "sparse" not in type(part).__module__:
            yield name, part


def _on_host(array):
    """The array in NumPy, as Keras's data adapter converts it; no copy where it is one already."""
    if isinstance(array, np.ndarray):
        return array
    if isinstance(array, Tensor):
        return array.numpy()
    whole = next(iter(array_slicing.convert_to_sliceable((array,), target_backend="numpy")))
    return whole.convert_to_numpy(whole[0 : array.shape[0]])


def first_not_finite(array):
    """Index of the first element that is NaN or infinite, in row-major order, or None."""
    array = np.asarray(array)
    if array.dtype.kind not in "fcV" or not array.size:  # V: bfloat16
        return None
    with np.errstate(all="ignore"):
        # One pass without memory of its own; wrong at most where finite numbers overflow.
        if array.dtype.kind != "V" and np.isfinite(array.sum()):
            return None
    rows = max(_BLOCK * len(array) // array.size, 1)
    for start in range(0, len(array), rows):
        block = np.isfinite(array[start : start + rows])
        if not block.all():
            return start * (array.size // len(array)) + int(block.ravel().argmin())
    return None


def _place(index, array):
    width = array.size // len(array)
    row, element = divmod(index, width)
    return row, f", element {element}" if width > 1 else ""


class Watch:
    """Says of a model's data that it is not finite, of arrays once a place, of batches once."""

    def __init__(self, model):
        self._model, self._said = model, set()

    def look(self, data, batch=None, whole=False):
        """Warns of the first element of each array that is NaN or infinite.

        Args:
            data: a batch, or (x, y, sample_weight).
            batch: number of the batch, for the message.
            whole: the data are all there is, not one batch of many.
        """
        for name, array in leaves(data):
            # A tensor's values are on the device; its loss shows what is wrong with it.
            if isinstance(array, Tensor) or (name in self._said and not whole):
                continue
            array = _on_host(array)
            index = first_not_finite(array)
            key = (name, index) if whole else name
            if index is not None and key not in self._said:
                self._said.add(key)
                self._warn(name, array, index, batch)

    def _warn(self, name, array, index, batch):
        row, element = _place(index, array)
        where = "" if batch is None else f"batch {batch}, "
        warn(
            errors.text_of(
                "NotFinite",
                f"{name}, {where}row {row}{element}: the value is {array.ravel()[index]}, and the "
                f"loss of {type(self._model).__name__!r} is likely to become NaN with it",
                "finite numbers",
                f"{_CURES[name.partition('[')[0]]}. This is said once; the run goes on",
            )
        )

    def look_once(self, iterator):
        """Looks at the arrays of an iterator; at those of generators as they come."""
        adapter = iterator.data_adapter
        if isinstance(adapter, ArrayDataAdapter) and not hasattr(iterator, "_tracefire_seen"):
            iterator._tracefire_seen = True
            self.look(adapter._inputs, whole=True)

    def watched(self, iterator, run):
        """`run` of a list of batches, which remembers and looks at what comes from a generator."""
        adapter = iterator.data_adapter
        if isinstance(adapter, ArrayDataAdapter):
            return run, adapter._inputs
        seen = _Extremes()

        def look_and_run(batches):
            for batch in batches:
                self.look(batch, seen.batches)
                seen.add(batch)
            return run(batches)

        return look_and_run, seen


class _Extremes:
    """The largest and the smallest label of each batch, with their rows: the batches are gone when
    the device reports a label."""

    def __init__(self):
        self.batches, self._ends = 0, []

    def add(self, batch):
        for name, array in leaves(batch):
            if not name.startswith("y") or isinstance(array, Tensor):
                continue
            array = _on_host(array)
            one_a_row = array.dtype.kind == "f" and array.size == len(array)
            if array.size and (array.dtype.kind in "iu" or one_a_row):  # they may be labels
                # NaN is taken for the largest and for the smallest.
                for index in (int(array.argmin()), int(array.argmax())):
                    place = "{}, batch {}, row {}{}".format(
                        name, self.batches, *_place(index, array)
                    )
                    self._ends.append((place, array.ravel()[index]))
        self.batches += 1

    def find(self, label):
        for place, value in self._ends:
            if not np.isfinite(value) if label is None else _is_beyond(value, label):
                return place, value
        return None


def _is_beyond(values, label):
    """Where a label is as far outside of the classes as the one reported, which was a float32."""
    values = np.asarray(values).astype("float32")
    return values >= np.float32(label) if label >= 0 else values <= np.float32(label)


def _find(data, label):
    """(place, value) of the first such label; of the first that is NaN or infinite for None."""
    if isinstance(data, _Extremes):
        return data.find(label)
    for name, array in leaves(data):
        if not name.startswith("y"):
            continue
        array = _on_host(array)
        index = None
        if label is None:
            index = first_not_finite(array)
        elif array.dtype.kind in "iuf":
            beyond = _is_beyond(array, label).ravel()
            index = int(beyond.argmax()) if beyond.any() else None
        if index is not None:
            row, element = _place(index, array)
            return f"{name}, row {row}{element}", array.ravel()[index]
    return None


def check_arguments(x=None, batch_size=None, **_):
    """Refuses what Keras would stumble over later, or take for something else."""
    if x is None:
        raise errors.raised_here(
            "BadUsage",
            "no data was given: x is None",
            "arrays, a data set or a generator",
            "Check what loaded the data",
        )
    whole = isinstance(batch_size, (int, np.integer)) and not isinstance(batch_size, bool)
    if batch_size is not None and not (whole and batch_size >= 0):  # 0 is Keras's default
        raise errors.raised_here(
            "BadUsage",
            f"batch_size is {batch_size!r}",
            "a positive whole number, or None for Keras's 32",
            "Give int(...) of what was computed",
        )


def check_kinds(iterator):
    """Refuses arrays of texts, objects and dates, by the name of the argument."""
    if isinstance(iterator.data_adapter, ArrayDataAdapter):
        for name, array in leaves(iterator.data_adapter._inputs):
            refuse_kind(getattr(array, "dtype", None), name)


def check_targets(model, method, iterator, step):
    """Refuses arrays without y where Keras's own step compares with it."""
    adapter = iterator.data_adapter
    if not isinstance(adapter, ArrayDataAdapter) or model._compile_loss is None:
        return
    _, y, _ = data_adapter_utils.unpack_x_y_sample_weight(adapter._inputs)
    if y is None and is_own(model, step.__name__, "compute_loss"):
        raise errors.raised_here(
            "BadUsage",
            f"`{method}` was called without y, which the loss of {type(model).__name__!r} needs",
            "targets, one for each row of x",
            "Pass y; a model that needs none is compiled without loss and calls add_loss",
        )


@contextlib.contextmanager
def naming_rows(data):
    """Adds the row of `data` to the engine's report of a label that is no class or no number."""
    try:
        yield
    except errors.OutOfRangeError as error:
        reported = _LABEL.search(str(error))
        found = reported and _find(data, int(reported[1]))
        if not found:
            raise
        last = reported[2]
        raise errors.raised_here(
            "IndexOutOfRange",
            f"{found[0]}: the label is {found[1]}, for which the loss has no class",
            f"labels from 0 to {last}" if last else "labels from 0 to the number of classes - 1",
            "Correct the label, or give the last layer more units",
        ) from error
    except errors.InvalidArgumentError as error:
        found = "check_finite" in str(error) and _find(data, None)
        if not found:
            raise
        raise errors.raised_here(
            "NotFinite",
            f"{found[0]}: the label is {found[1]}, which the loss cannot use as a class",
            "whole numbers",
            _CURES["y"],
        ) from error
