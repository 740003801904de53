# SPDX-License-Identifier: Apache-2.0
"""A model's train, test or predict step as an engine function.

A step method is an ordinary Python function over tensors and variables. It is traced once for each
structure of batch; the graph reads and assigns the variables' slots, so nothing has to be carried
in or out but the batch and the logs. A step that looks at tensor values in Python cannot be traced:
it runs eagerly, and one warning says why.
"""

import numpy as np

from keras.src import tree
from keras.src.backend.common import KerasVariable
from keras_tracefire.src._messages import warn
from keras_tracefire.src.ops._tensor import Tensor
from keras_tracefire.src.ops._tensor import convert_to_tensor
from tracefire import _core
from tracefire import errors

# What tracing cannot express but eager execution can: reading a value, a size that depends on data.
_EAGER_CODES = ("TF-E0113", "TF-E0114")


def map_leaves(fn, structure):
    """tree.map_structure that leaves None alone, in every version of Keras."""
    return tree.map_structure(lambda x: None if x is None else fn(x), structure)


class TracedStep:
    """A step recorded for one structure of batch."""

    def __init__(self, function, template, is_tensor):
        self.function = function
        self._template, self._is_tensor = template, is_tensor

    def pack(self, values):
        """The step's result from the function's outputs."""
        values = iter(values)
        flat = [
            next(values) if is_tensor else leaf
            for leaf, is_tensor in zip(tree.flatten(self._template), self._is_tensor)
        ]
        return tree.pack_sequence_as(self._template, flat)

    def gives_arrays(self):
        """True if every result is a tensor with an axis along which steps can be joined."""
        return all(self._is_tensor) and all(
            len(x.shape) > 0 for x in tree.flatten(self._template)
        )


class Step:
    """Calls a step method on batches, traced where possible."""

    def __init__(self, model, method, eager):
        self._model, self._method = model, method
        self._traced = {}
        self.eager_reason = "run_eagerly=True" if eager else None

    def __call__(self, batches):
        """Runs the step on each of several batches; returns the last result."""
        out = None
        for batch in batches:
            out = self.prepared(batch)[2]()
        return out

    def prepared(self, batch):
        """(the batch as tensors, the traced function of the step or None if it is eager, function
        without arguments that runs the step on the batch)."""
        batch = map_leaves(convert_to_tensor, batch)
        leaves = [x for x in tree.flatten(batch) if x is not None]
        traced = self.trace(batch, [(tuple(x.shape), x.dtype) for x in leaves])
        if traced is None:
            return batch, None, lambda: self._method(batch)
        return batch, traced.function, lambda: traced.pack(traced.function(*leaves))

    def trace(self, template, specs):
        """The traced step for batches like `template` with leaves of `specs`, or None if eager.

        Args:
            template: structure of a batch; only the places of its leaves and Nones count.
            specs: (shape, dtype) of each leaf that is not None.
        """
        if self.eager_reason is not None:
            return None
        key = (
            repr(map_leaves(lambda _: "*", template)),
            tuple(specs),
            tuple(id(v._slot) for v in self._model.trainable_variables),
        )
        if key not in self._traced:
            try:
                self._traced[key] = self._record(template, specs)
            except Exception as error:
                self._model._clear_losses()
                if errors.code_of(error) not in _EAGER_CODES:
                    raise
                self._go_eager(error)
                return None
        return self._traced[key]

    def any_function(self):
        """The function of one of the batches traced so far; None where there is none."""
        return next((traced.function for traced in self._traced.values() if traced), None)

    def _record(self, template, specs):
        with _core.TraceScope() as scope:
            parameters = iter([scope.parameter(shape, dtype) for shape, dtype in specs])
            result = self._method(map_leaves(lambda _: next(parameters), template))
            self._model._clear_losses()  # they hold tensors of this trace
            leaves = tree.flatten(result)
            is_tensor = [_is_value(x) for x in leaves]
            outputs = [convert_to_tensor(x) for x, known in zip(leaves, is_tensor) if known]
            function = scope.finish(outputs)
        return TracedStep(function, result, is_tensor)

    def _go_eager(self, error):
        self.eager_reason = str(error)
        name = getattr(self._method, "__name__", "step")
        warn(
            f"`{name}` of {type(self._model).__name__!r} cannot be traced into one graph, so it "
            f"runs operation by operation, which is slower. The reason: {error}"
        )


def _is_value(x):
    return isinstance(x, (Tensor, KerasVariable, bool, int, float)) or hasattr(x, "__array__")


def read(structure):
    """`structure` with its tensors as read-only NumPy arrays, read with one wait of the device."""
    flat = tree.flatten(structure)
    at = [i for i, x in enumerate(flat) if isinstance(x, Tensor)]
    for i, value in zip(at, _core.fetch([flat[i] for i in at])):
        flat[i] = value
    return tree.pack_sequence_as(structure, flat)


def join(parts):
    """NumPy arrays of several results of one structure, joined along their first axis."""
    return tree.map_structure(lambda *arrays: np.concatenate(arrays), *read(parts))


def read_scalars(logs):
    """`logs` with its scalar tensors as Python floats, read with one wait of the device."""
    flat = tree.flatten(logs)
    at = [i for i, x in enumerate(flat) if isinstance(x, Tensor) and x.shape == ()]
    for i, value in zip(at, _core.fetch([flat[i] for i in at])):
        flat[i] = float(value)
    return tree.pack_sequence_as(logs, flat)


def is_own(owner, *methods):
    """True if Keras or this package defines these methods of an object, nobody else.

    What others write may read Python state that changes between calls, which a trace would freeze.
    """
    return all(
        name not in vars(owner)
        and getattr(type(owner), name).__module__.partition(".")[0] in ("keras", "keras_tracefire")
        for name in methods
    )


def returns_metrics(model, method):
    """True if a step of `model` surely returns what its metrics hold after the step."""
    return is_own(model, method, "compute_metrics", "get_metrics_result") and all(
        is_own(metric, "result") for metric in _leaf_metrics(model.metrics)
    )


def _leaf_metrics(metrics):
    for metric in metrics:
        inner = getattr(metric, "metrics", None)
        yield from (metric,) if inner is None else _leaf_metrics(inner)
