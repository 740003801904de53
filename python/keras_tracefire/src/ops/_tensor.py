# SPDX-License-Identifier: Apache-2.0
"""Tensors, variables and shape inference."""

import math

from keras.src import tree
from keras.src.backend import floatx
from keras.src.backend.common import KerasVariable
from keras.src.backend.common import standardize_dtype
from keras.src.backend.common.dtypes import result_type as _keras_result_type
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.backend.common.name_scope import name_scope as _keras_name_scope
from keras.src.backend.common.stateless_scope import StatelessScope
from keras.src.backend.common.symbolic_scope import SymbolicScope
from keras_tracefire.src import missing
from keras_tracefire.src._messages import argument_error
from tracefire import _core
from tracefire import _ops
from tracefire import _dtypes
from tracefire import errors

SUPPORTS_SPARSE_TENSORS = False
SUPPORTS_RAGGED_TENSORS = False
SUPPORTS_COMPLEX_DTYPES = False
SUPPORTS_GRADIENT = True
# True would make Keras hand every batch's callbacks to a pool of threads.
IS_THREAD_SAFE = False

Tensor = _core.Tensor


class name_scope(_keras_name_scope):
    """Keras's scope, which also prefixes the names of operations: records say which layer they are of."""

    _operations = None

    def __enter__(self):
        super().__enter__()
        if self._pop_on_exit:  # not the same layer once more
            self._operations = _core.NameScope(self.name)
            self._operations.__enter__()
        return self

    def __exit__(self, *args, **kwargs):
        if self._operations is not None:
            self._operations.__exit__(None, None, None)
            self._operations = None
        super().__exit__(*args, **kwargs)


class Variable(KerasVariable):
    """A Keras variable whose value lives in an engine slot.

    The slot outlives every value: functions traced over it read and assign the slot itself, so
    training never rebinds anything in Python and a callback always sees the current weights.
    """

    _slot = None

    def _initialize(self, value):
        self._shape = self._validate_shape(value.shape)
        self._direct_assign(value)

    def _initialize_with_initializer(self, initializer):
        # A layer may build itself inside a function that is being traced: its initial value is
        # computed now, not at each run of the function.
        with _core.init_scope():
            value = initializer(self._shape, dtype=self._dtype)
            self._initialize(convert_to_tensor(value, self._dtype))

    def _direct_assign(self, value):
        if self._slot is None:
            self._slot = _core.Variable(value, name=self._path, trainable=self._trainable)
        else:
            self._slot.assign(value)

    def _convert_to_tensor(self, value, dtype=None):
        return convert_to_tensor(value, dtype=dtype)

    @property
    def _value(self):
        return None if self._slot is None else self._slot.read()

    @_value.setter
    def _value(self, value):
        if value is None:
            self._slot = None
        else:
            self._direct_assign(convert_to_tensor(value, self._dtype))

    def __array__(self, dtype=None, copy=None):
        return self.value.__array__(dtype)

    def __getstate__(self):
        state = dict(self.__dict__)
        slot = state.pop("_slot", None)
        if slot is not None:
            state["_slot_value"] = slot.read().numpy()
        return state

    def __setstate__(self, state):
        state = dict(state)
        value = state.pop("_slot_value", None)
        self.__dict__.update(state)
        if value is not None:
            self._direct_assign(_core.tensor(value))


def result_type(*kinds):
    """Keras's promotion, but a tensor that was asked for in float64 is not rounded."""
    dtype = _keras_result_type(*kinds)
    return "float64" if dtype == "float32" and "float64" in kinds else dtype


def convert_to_tensor(x, dtype=None, sparse=None, ragged=None):
    if sparse or ragged:
        kind = "sparse" if sparse else "ragged"
        raise missing.unsupported(
            f"convert_to_tensor was called with {kind}=True",
            "dense data, because this backend has no sparse or ragged tensors",
            f"Leave out {kind}=True and convert the data to a dense array first",
            cls=ValueError,
        )
    if dtype is not None:
        dtype = standardize_dtype(dtype)
    if isinstance(x, KerasVariable):
        x = x.value
    elif isinstance(x, _core.Variable):
        x = x.read()
    if isinstance(x, Tensor):
        return x if dtype is None or dtype == x.dtype else _ops.cast(x, dtype=dtype)
    if isinstance(x, (bool, int, float)):
        x = _whole(x) if _dtypes.is_integer(dtype) else x
        return _core.tensor(x, dtype or _number_type([x]))
    if isinstance(x, (list, tuple)):
        _check_nesting(x, 1, {})
        if _holds_tensors(x):
            return _stack_nested(x, dtype)
    return _from_host(x, dtype)


def _whole(number):
    """The number without its fraction: Keras's conversion to integers is a cast."""
    if isinstance(number, float) and math.isfinite(number):
        return math.trunc(number)
    return number


# Kinds of NumPy arrays that are no tensors.
_NO_NUMBERS = {"O": "Python objects", "U": "texts", "S": "bytes", "M": "dates", "m": "durations"}


def refuse_kind(dtype, what):
    """An error (TF-E0102) for a dtype of NumPy whose elements are no numbers."""
    kind = getattr(dtype, "kind", None)
    if kind in _NO_NUMBERS:
        raise errors.raised_here(
            "DTypeMismatch",
            f"{what} holds {_NO_NUMBERS[kind]} ({dtype})",
            "numbers or truth values",
            "Convert it first: array.astype('float32') where it holds numbers, numbers in place of "
            "texts (keras.utils.to_categorical, np.unique(labels, return_inverse=True))",
            errors.InvalidArgumentError,
        )


def _from_host(x, dtype):
    """Arrays, nested lists of numbers, data sets of h5py, tensors of other frameworks."""
    import numpy as np

    if isinstance(x, KerasTensor):
        raise argument_error(
            "A KerasTensor has a shape but no value, so it cannot become a tensor. "
            f"Received: {x}. Expected: an array, a number or a tensor. "
            "Use `keras.ops` functions on KerasTensors, or wrap the code in a layer."
        )
    if isinstance(x, (list, tuple)):
        items = tree.flatten(x)
        if {type(i) for i in items} <= {bool, int, float}:
            # Read by the engine, which says so where a number does not fit.
            x = tree.map_structure(_whole, x) if _dtypes.is_integer(dtype) else x
            return _core.tensor(x, dtype or _number_type(items))
    array = np.asarray(x)
    refuse_kind(array.dtype, "an array that was given as a tensor")
    if dtype is None:
        # Integers keep their width. NumPy computes in float64 by habit, Keras in float32.
        dtype = _keras_result_type(array.dtype.name)
        dtype = floatx() if array.dtype == np.float64 else dtype
    if array.dtype.name == dtype:
        return _core.tensor(array)
    if dtype == "bfloat16" or array.dtype.name == "bfloat16":
        return _ops.cast(_core.tensor(array.astype("float32")), dtype=dtype)
    return _core.tensor(array.astype(dtype))


def _number_type(numbers):
    """Keras's type of Python numbers; int64 where int32 does not hold one of them."""
    dtype = _keras_result_type(*{type(i) for i in numbers})
    if dtype == "int32" and not all(-(2**31) <= i < 2**31 for i in numbers):
        return "int64" if all(-(2**63) <= i < 2**63 for i in numbers) else "uint64"
    return dtype


def indices_of(x):
    """`x` as integers that say where: int32, or int64 where they came wider, so none is cut.

    Floating numbers become int64: Keras makes float32 of labels on their way to a loss.
    """
    x = convert_to_tensor(x)
    wide = x.dtype in ("int64", "uint32", "uint64") or is_float(x.dtype)
    return cast(x, "int64" if wide else "int32")


def _check_nesting(x, depth, counts):
    """Refuses lists that hold themselves, or so often one another that they have no end in sight.

    Returns the number of items; `counts` remembers it for each list, by its identity.
    """
    total = 0
    for item in x:
        if not isinstance(item, (list, tuple)):
            total += 1
            continue
        if id(item) not in counts:
            if depth >= _MOST_AXES:
                raise _endless(f"lists more than {_MOST_AXES} deep, or itself")
            counts[id(item)] = _check_nesting(item, depth + 1, counts)
        total += counts[id(item)]
    if total > _MOST_ITEMS:
        raise _endless(f"more than {_MOST_ITEMS} items")
    return total


_MOST_AXES, _MOST_ITEMS = 64, 2**31


def _endless(what):
    return errors.raised_here(
        "ShapeMismatch",
        f"a list was given as a tensor that holds {what}",
        f"at most {_MOST_AXES} axes and {_MOST_ITEMS} numbers",
        "Make an array of the numbers",
    )


def _holds_tensors(x):
    return any(isinstance(i, (Tensor, KerasVariable, _core.Variable)) for i in tree.flatten(x))


def _stack_nested(x, dtype):
    """np.array for a nested list with tensors in it, whose values may be unknown."""
    parts = [
        _stack_nested(i, dtype) if isinstance(i, (list, tuple)) else _scalar_or_tensor(i)
        for i in x
    ]
    if dtype is None:
        dtype = result_type(*[getattr(p, "dtype", type(p)) for p in parts])
    parts = [convert_to_tensor(p, dtype) for p in parts]
    rows = [_ops.reshape(p, shape=(1,) + tuple(p.shape)) for p in parts]
    return rows[0] if len(rows) == 1 else _ops.concat(*rows, axis=0)


def _scalar_or_tensor(x):
    return x if isinstance(x, (bool, int, float)) else convert_to_tensor(x)


def promote(*xs, at_least=None):
    """The operands as tensors of the dtype Keras's promotion gives; numbers adapt to tensors."""
    xs = [_scalar_or_tensor(x) for x in xs]
    kinds = [getattr(x, "dtype", type(x)) for x in xs]
    dtype = result_type(*kinds) if at_least is None else result_type(*kinds, at_least)
    return [convert_to_tensor(x, dtype) for x in xs]


def convert_to_numpy(x):
    import numpy as np

    if isinstance(x, (list, tuple)) and _holds_tensors(x):
        x = _stack_nested(x, None)
    return np.array(x)


def is_tensor(x):
    return isinstance(x, Tensor)


def shape(x):
    return tuple(x.shape)


def cast(x, dtype):
    return convert_to_tensor(x, dtype=dtype)


def stop_gradient(variable):
    return _core.stop_gradient(convert_to_tensor(variable))


def random_seed_dtype():
    return "uint32"


def is_float(dtype):
    return _dtypes.is_float(dtype)


def computes_now():
    """True if operations give values; False while tracing or inferring shapes."""
    return not _core.is_tracing() and not _core.is_abstract()


# What a None dimension stands for while shapes are inferred: the function runs twice, with sizes
# that are unlikely to appear in a model; a dimension that differs between the runs is None.
_STAND_INS = (83, 89)


def compute_output_spec(fn, *args, **kwargs):
    flat = tree.flatten((args, kwargs))
    open_dims = any(isinstance(x, KerasTensor) and None in x.shape for x in flat)
    first = _abstract_call(fn, args, kwargs, _STAND_INS[0])
    second = _abstract_call(fn, args, kwargs, _STAND_INS[1]) if open_dims else first

    def to_spec(a, b):
        if not isinstance(a, Tensor):
            return a
        dims = tuple(m if m == n else None for m, n in zip(a.shape, b.shape))
        return KerasTensor(dims, a.dtype)

    return tree.map_structure(to_spec, first, second)


def _abstract_call(fn, args, kwargs, size):
    # Updates of variables, such as a seed's, belong to one run: each has a scope of its own.
    with StatelessScope(), SymbolicScope(), _core.abstract() as scope:

        def stand_in(x):
            if not isinstance(x, KerasTensor):
                return x
            dims = tuple(size if d is None else d for d in x.shape)
            return scope.parameter(dims, standardize_dtype(x.dtype))

        args, kwargs = tree.map_structure(stand_in, (args, kwargs))
        return fn(*args, **kwargs)


def scatter(indices, values, shape):
    values = convert_to_tensor(values)
    zeros = _ops.broadcast_to(_core.tensor(0, values.dtype), shape=tuple(shape))
    return _scatter(zeros, indices, values, "add")


def scatter_update(inputs, indices, updates, reduction=None):
    if reduction not in (None, "add", "max", "min", "mul"):
        raise argument_error(
            f"Unsupported reduction: {reduction!r}. Expected: None, 'add', 'max', 'min' or 'mul'."
        )
    inputs = convert_to_tensor(inputs)
    updates = convert_to_tensor(updates, inputs.dtype)
    return _scatter(inputs, indices, updates, reduction or "update")


def _scatter(operand, indices, updates, reduction):
    indices = indices_of(indices)
    shape = tuple(indices.shape[:-1]) + tuple(operand.shape[indices.shape[-1] :])
    return _ops.scatter(operand, indices, _ops.reshape(updates, shape=shape), reduction=reduction)


def slice(inputs, start_indices, shape):
    inputs = convert_to_tensor(inputs)
    starts = _static_indices(start_indices)
    sizes = [n if s == -1 else s for n, s in zip(inputs.shape, shape)]
    if starts is not None:
        sizes = [n - a if s == -1 else s for n, a, s in zip(inputs.shape, starts, shape)]
        # Like XLA's dynamic slice: a start is moved so that the slice lies inside.
        starts = [min(max(a, 0), n - s) for a, n, s in zip(starts, inputs.shape, sizes)]
        limits = [a + s for a, s in zip(starts, sizes)]
        return _ops.slice(inputs, starts=starts, limits=limits, strides=[1] * len(starts))
    for axis, (start, size) in enumerate(zip(_dynamic_indices(start_indices), sizes)):
        start = _inside(start, inputs.shape[axis] - size)
        inputs = _ops.dynamic_slice(inputs, start, axis=axis, size=(size,))
    return inputs


def _inside(start, last):
    return _ops.minimum(_ops.maximum(start, _core.tensor(0, "int32")), _core.tensor(last, "int32"))


def slice_update(inputs, start_indices, updates):
    inputs = convert_to_tensor(inputs)
    updates = convert_to_tensor(updates, inputs.dtype)
    static = _static_indices(start_indices)
    starts = static if static is not None else _dynamic_indices(start_indices)
    flat = None
    for axis, size in enumerate(updates.shape):
        limit = inputs.shape[axis] - size
        start = starts[axis]
        if static is not None:
            start = _core.tensor(min(max(start, 0), limit), "int32")
        else:
            start = _inside(start, limit)
        at = _ops.add(start, _ops.iota(shape=tuple(updates.shape), axis=axis, dtype="int32"))
        width = _core.tensor(inputs.shape[axis], "int32")
        flat = at if flat is None else _ops.add(_ops.mul(flat, width), at)
    if flat is None:
        return updates
    total = 1
    for size in inputs.shape:
        total *= size
    rows = 1
    for size in updates.shape:
        rows *= size
    out = _ops.scatter(
        _ops.reshape(inputs, shape=(total,)),
        _ops.reshape(flat, shape=(rows, 1)),
        _ops.reshape(updates, shape=(rows,)),
        reduction="update",
    )
    return _ops.reshape(out, shape=tuple(inputs.shape))


def _static_indices(indices):
    """Start indices as Python integers, or None if one is only known when the graph runs."""
    if isinstance(indices, Tensor):
        return [int(i) for i in indices.numpy()] if computes_now() else None
    out = []
    for index in indices:
        if isinstance(index, (Tensor, KerasVariable, _core.Variable)):
            if not computes_now():
                return None
            index = convert_to_tensor(index).item()
        out.append(int(index))
    return out


def _dynamic_indices(indices):
    if isinstance(indices, Tensor):
        indices = unstack(convert_to_tensor(indices, "int32"))
    return [convert_to_tensor(i, "int32") for i in indices]


def unstack(x, num=None, axis=0):
    x = convert_to_tensor(x)
    if not x.shape:
        raise argument_error("A tensor of shape () has no axis to take it apart along.")
    axis = axis % len(x.shape)
    rest = tuple(x.shape[:axis]) + tuple(x.shape[axis + 1 :])
    out = []
    for i in range(x.shape[axis]):
        starts = [i if a == axis else 0 for a in range(len(x.shape))]
        limits = [i + 1 if a == axis else n for a, n in enumerate(x.shape)]
        part = _ops.slice(x, starts=starts, limits=limits, strides=[1] * len(starts))
        out.append(_ops.reshape(part, shape=rest))
    return out


def device_scope(device_name):
    """Accepts Keras's "cpu:0" and "gpu:0", and the engine's own names."""
    if not isinstance(device_name, str):
        raise errors.raised_here(
            "UnknownDevice",
            f"keras.device was given {device_name!r}",
            "a string such as 'cpu:0' or 'gpu:0'",
            "Run `tracefire devices` for the list",
        )
    kind, _, index = device_name.lower().removeprefix("/").removeprefix("device:").partition(":")
    kind = "gpu" if kind == "cuda" else kind
    return _core.device_scope(f"/{kind.upper()}:{index or 0}")


def remat(f):
    """The engine decides what to keep for the gradient and what to compute again."""
    return f
