# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the data that users give, said with the row where it lies.

One rule for features, targets and sample weights: NaN and infinities are named once, before the
first step, and training goes on, since a loss of one's own may leave such rows out. A label without
a class stops the run; the engine reports the label, and its row is looked up here.
"""

import contextlib
import re

import numpy as np

from keras.src import losses
from keras.src import tree
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
_INDEX = re.compile(r"index (-?\d+) is out of range")
_CURES = {
    "x": "Replace or drop such rows: keep = np.isfinite(x.reshape(len(x), -1)).all(axis=1); "
    "x, y = x[keep], y[keep]",
    "y": "Drop the rows without a target: keep = np.isfinite(y); x, y = x[keep], y[keep]",
    "sample_weight": "Give a weight of 0 to rows that shall not count",
}


class Origin:
    """What rows and batches of data are called in messages."""

    def __init__(self, prefix="", first=0, batches=""):
        """Args:
            prefix: what the names x, y and sample_weight begin with.
            first: number of the first row.
            batches: what batches are of.
        """
        self.prefix, self.first, self.batches = prefix, first, batches

    def place(self, index, array):
        """(row, ", element 3" or "") of an element, by its index in row-major order."""
        width = array.size // len(array)
        row, element = divmod(index, width)
        return row + self.first, f", element {element}" if width > 1 else ""

    def batch(self, number):
        return f"batch {number}{self.batches}"


_ARGUMENTS = Origin()


def validation_origin(rows=None):
    """The Origin of validation_data, or of what validation_split leaves behind so many rows."""
    return Origin("validation_data's " if rows is None else "", rows or 0, " of the validation")


def origin_of(iterator):
    return getattr(iterator, "_tracefire_origin", _ARGUMENTS)


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


class Watch:
    """Says of a model's data that it is not finite, of arrays once a place, of batches once."""

    def __init__(self, model):
        self._model, self._said = model, set()

    def look(self, data, batch=None, whole=False, origin=_ARGUMENTS):
        """Warns of the first element of each array that is NaN or infinite.

        Args:
            data: a batch, or (x, y, sample_weight).
            batch: number of the batch, for the message.
            whole: the data are all there is, not one batch of many.
            origin: what they are called.
        """
        for name, array in leaves(data):
            # A tensor's values are on the device; its loss shows what is wrong with it.
            key = (name, origin.prefix, origin.first)
            if isinstance(array, Tensor) or (key in self._said and not whole):
                continue
            array = _on_host(array)
            index = first_not_finite(array)
            key += (index,) if whole else ()
            if index is not None and key not in self._said:
                self._said.add(key)
                self._warn(name, array, index, batch, origin)

    def _warn(self, name, array, index, batch, origin):
        row, element = origin.place(index, array)
        where = "" if batch is None else f"{origin.batch(batch)}, "
        warn(
            errors.text_of(
                "NotFinite",
                f"{origin.prefix}{name}, {where}row {row}{element}: the value is "
                f"{array.ravel()[index]}, and the loss of {type(self._model).__name__!r} is likely to "
                "become NaN with it",
                "finite numbers",
                f"{_CURES[name.partition('[')[0]]}. This is said once; the run goes on",
            )
        )

    def look_once(self, iterator):
        """Looks at the arrays of an iterator; at those of generators as they come."""
        arrays = whole_arrays(iterator)
        if arrays is not None and not hasattr(iterator, "_tracefire_seen"):
            iterator._tracefire_seen = True
            self.look(arrays, whole=True, origin=origin_of(iterator))

    def watched(self, iterator, step, run):
        """`run` of a list of batches, which remembers and looks at what comes from a generator."""
        arrays = whole_arrays(iterator)
        if arrays is not None:
            return run, arrays
        origin = origin_of(iterator)
        seen = _Extremes(origin)

        def look_and_run(batches):
            for batch in batches:
                check_labels(self._model, step, batch, origin, seen.batches)
                self.look(batch, seen.batches, origin=origin)
                seen.add(batch)
            return run(batches)

        return look_and_run, seen


class _Extremes:
    """The largest and the smallest label of each batch, with their rows: the batches are gone when
    the device reports a label."""

    def __init__(self, origin):
        self.batches, self._ends, self._origin = 0, [], origin

    def add(self, batch):
        for name, array in leaves(batch):
            if not name.startswith("y") or isinstance(array, Tensor):
                continue
            array = _on_host(array)
            one_a_row = array.dtype.kind == "f" and array.size == len(array)
            if array.size and (array.dtype.kind in "iu" or one_a_row):  # they may be labels
                # NaN is taken for the largest and for the smallest.
                for index in (int(array.argmin()), int(array.argmax())):
                    row, element = self._origin.place(index, array)
                    where = f"{self._origin.batch(self.batches)}, row {row}{element}"
                    place = f"{self._origin.prefix}{name}, {where}"
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


def _find(data, label, origin):
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
            row, element = origin.place(index, array)
            return f"{origin.prefix}{name}, row {row}{element}", array.ravel()[index]
    return None


def check_arguments(x=None, batch_size=None, steps_per_epoch=None, **_):
    """Refuses what Keras would stumble over later, or take for something else."""
    if x is None:
        raise errors.raised_here(
            "BadUsage",
            "no data was given: x is None",
            "arrays, a data set or a generator",
            "Check what loaded the data",
        )
    _check_whole(batch_size, "batch_size", "None or 0 for Keras's 32")
    _check_whole(steps_per_epoch, "the number of steps", "None or 0 for as many as the data has")


def _check_whole(value, name, none):
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if value is not None and not (whole and value >= 0):  # 0 is Keras's default
        raise errors.raised_here(
            "BadUsage",
            f"{name} is {value!r}",
            f"a positive whole number, or {none}",
            "Give int(...) of what was computed",
        )


def whole_arrays(iterator):
    """(x, y, sample_weight) where the data are arrays, else None."""
    adapter = iterator.data_adapter
    return adapter._inputs if isinstance(adapter, ArrayDataAdapter) else None


def check_kinds(iterator):
    """Refuses arrays of texts, objects and dates, by the name of the argument."""
    arrays = whole_arrays(iterator)
    if arrays is not None:
        for name, array in leaves(arrays):
            refuse_kind(getattr(array, "dtype", None), origin_of(iterator).prefix + name)


def check_targets(model, method, iterator, step):
    """Refuses arrays without y where Keras's own step compares with it."""
    arrays = whole_arrays(iterator)
    if arrays is None or model._compile_loss is None:
        return
    _, y, _ = data_adapter_utils.unpack_x_y_sample_weight(arrays)
    if y is None and is_own(model, step.__name__, "compute_loss"):
        validates = origin_of(iterator).prefix
        what = "validation_data has no y" if validates else f"`{method}` was called without y"
        raise errors.raised_here(
            "BadUsage",
            f"{what}, which the loss of {type(model).__name__!r} needs",
            "targets, one for each row of x",
            "Pass y; a model that needs none is compiled without loss and calls add_loss",
        )


@contextlib.contextmanager
def naming_rows(data, recover=lambda: None, keeps="", always=True, origin=_ARGUMENTS):
    """After a failure has the last good state brought back, and says where in `data` it came up.

    Args:
        data: (x, y, sample_weight), or what Watch.watched() remembers of batches; None: nothing.
        recover: gives what failed, as _recovery.Failed, or None.
        always: recover after exceptions of any kind: it brings a state back.
        keeps: what to say of the state that was brought back.
        origin: what the data are called.
    """
    try:
        yield
    except errors.Error as error:
        failed = recover()
        kept = f". {keeps}" if failed and keeps else ""
        better = _named_label(error, data, kept, origin)
        better = better or _named_batch(error, data, failed, kept, origin)
        if better is None:
            raise
        raise better from error
    except BaseException:
        if always:
            recover()
        raise


def _named_label(error, data, kept, origin):
    """The engine's report of a label that is no class or no number, with its row; or None."""
    reported = _LABEL.search(str(error))
    if isinstance(error, errors.OutOfRangeError) and reported:
        found = _find(data, int(reported[1]), origin)
        return found and _label_error(*found, reported[2], kept)
    if isinstance(error, errors.InvalidArgumentError) and "check_finite" in str(error):
        found = _find(data, None, origin)
        return found and _label_error(*found, None, kept)
    return None


def _label_error(place, label, last, kept=""):
    if not np.isfinite(label):
        return errors.raised_here(
            "NotFinite",
            f"{place}: the label is {label}, which the loss cannot use as a class",
            "whole numbers",
            f"{_CURES['y']}{kept}",
        )
    return errors.raised_here(
        "IndexOutOfRange",
        f"{place}: the label is {label}, for which the loss has no class",
        f"labels from 0 to {last}" if last else "labels from 0 to the number of classes - 1",
        f"Correct the label, or give the last layer more units{kept}",
    )


def _named_batch(error, data, failed, kept, origin):
    """The error with the batch in which it came up, and the row where that can be seen."""
    if failed is None:
        return None
    places = [] if failed.step is None else [origin.batch(failed.step)]
    reported = _INDEX.search(str(error))
    found = reported and _find_index(failed.data or data, int(reported[1]), failed, origin)
    if found:
        place, row = found
        if failed.first is not None:
            first, size = failed.first
            places.append(origin.batch(first + row // size))
        places.append(f"where {place}" if places else place)
    elif failed.rows is not None:
        in_order = (np.diff(failed.rows) == 1).all()
        first, last = failed.rows[0] + origin.first, failed.rows[-1] + origin.first
        count = len(failed.rows)
        places.append(f"rows {first} to {last}" if in_order else f"{count} shuffled rows")
    where = f". It came up in {', '.join(places)}" if places else ""
    return type(error)(f"{str(error).rstrip('.')}{where}{kept}")


def _find_index(data, index, failed, origin):
    """("x, row 7 is 77", 7) of the first row of the failing steps that holds an index, and which of
    their rows it is; or None, also where the number lies among others, so that it need not be the
    one that was reported. A row is counted in the arrays that the user gave, and "of the batch"
    where only that is known."""
    if data is None:
        return None
    of_batch = " of the batch" if failed.data is not None and failed.step is not None else ""
    for name, array in leaves(data):
        if not name.startswith("x"):
            continue
        array = _on_host(array)
        if array.dtype.kind not in "iuf" or not array.size:
            continue
        rows = np.arange(len(array)) if failed.rows is None else failed.rows
        batch = array[rows].reshape(len(rows), -1)
        ends = (batch.min(), batch.max()) if failed.data is not None else (array.min(), array.max())
        if index in ends:
            at = int((batch == index).ravel().argmax())
            row, element = _ARGUMENTS.place(at, batch)
            if batch[row].ravel()[at % batch[0].size] == index:
                number = rows[row] + (0 if of_batch else origin.first)
                return f"{origin.prefix}{name}, row {number}{of_batch}{element} is {index}", row
    return None


# Labels of Keras's own loss, before the first step.


def check_labels(model, step, data, origin=_ARGUMENTS, batch=None):
    """Refuses labels for which the loss has no class.

    Args:
        model: its losses tell which arrays hold labels.
        step: its step method; one of the user's may do anything with labels.
        data: a batch, or (x, y, sample_weight).
        origin: what the data are called.
        batch: number of the batch, for the message.
    """
    outputs = model._seen_outputs
    loss = model._compile_loss
    if outputs is None or loss is None or not loss.built:
        return
    if not is_own(model, step.__name__, "compute_loss"):
        return
    _, y, _ = data_adapter_utils.unpack_x_y_sample_weight(data)
    names = {id(array): name for name, array in _named("y", y)}
    for part in loss._flat_losses:
        settings = _label_settings(part.loss)
        labels, shape = _at(y, part.path), _at(outputs, part.path)
        if settings is None or id(labels) not in names or not isinstance(shape, _Shape):
            continue
        if isinstance(labels, Tensor) and batch is not None:
            continue  # on the device; the loss tells
        axis, ignored = settings
        found = _first_bad_label(_on_host(labels), shape.sizes[axis], ignored)
        if found is not None:
            index, label = found
            row, element = origin.place(index, _on_host(labels))
            where = "" if batch is None else f"{origin.batch(batch)}, "
            place = f"{origin.prefix}{names[id(labels)]}, {where}row {row}{element}"
            raise _label_error(place, label, shape.sizes[axis] - 1)


class _Shape:
    """A leaf of the structure of outputs, which a tuple is not."""

    def __init__(self, sizes):
        self.sizes = sizes


def shapes_of(y_pred):
    """The shapes of a structure of outputs, for check_labels()."""
    return tree.map_structure(lambda x: _Shape(tuple(x.shape)), y_pred)


def _at(structure, path):
    for key in path:
        try:
            structure = structure[key]
        except (KeyError, IndexError, TypeError):
            return None
    while isinstance(structure, (list, tuple)) and len(structure) == 1:
        structure = structure[0]
    return structure


def _label_settings(loss):
    """(axis of the classes, label without a loss) of a loss of labels; None of any other."""
    if getattr(loss, "fn", None) is not losses.sparse_categorical_crossentropy:
        return None
    if not is_own(loss, "call", "__call__"):
        return None
    options = loss._fn_kwargs
    return options.get("axis", -1), options.get("ignore_class")


def _first_bad_label(array, classes, ignored):
    """(index, label) of the first label that is no class, in row-major order, or None."""
    if array.dtype.kind not in "iuf" or not array.size or classes is None:
        return None
    with np.errstate(invalid="ignore"):
        # The ends alone tell where all is well; a fraction is cut off as a cast does it.
        if array.min() > -1 and array.max() < classes:
            return None
        good = (array > -1) & (array < classes)
    if ignored is not None:
        good |= array == ignored
    if good.all():
        return None
    index = int(good.ravel().argmin())
    return index, array.ravel()[index]
