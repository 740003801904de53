# SPDX-License-Identifier: Apache-2.0
"""Python's operators and indexing on Tensor."""

from tracefire import _core
from tracefire import _ops
from tracefire import _dtypes
from tracefire import _indexing
from tracefire import errors



def _operands(a, b):
    """Both operands as tensors of one dtype, or None if `b` is nothing a tensor combines with."""
    if isinstance(b, _core.Variable):
        b = b.read()
    if isinstance(b, _core.Tensor):
        dtype = _dtypes.promote(a.dtype, b.dtype)
    elif isinstance(b, (bool, int, float, complex)):
        dtype = _dtypes.promote_scalar(a.dtype, b)
        b = _core.tensor(b, dtype)
    elif isinstance(b, (str, bytes)):
        b = _core.tensor(b)
        dtype = _dtypes.promote(a.dtype, b.dtype)
    elif hasattr(b, "__array__") or isinstance(b, (list, tuple)):
        if hasattr(b, "assign"):  # a Keras variable knows better which value it has now
            return None
        given, b = b, _core.tensor(b)
        # NumPy arrays are 64 bits wide by habit rather than by choice.
        same_kind = _dtypes.is_float(a.dtype) == _dtypes.is_float(b.dtype)
        dtype = a.dtype if same_kind and b.dtype != "bool" else _dtypes.promote(a.dtype, b.dtype)
        if "int" in dtype and dtype != b.dtype:
            _check_range(given, dtype)
    else:
        return None
    return cast(a, dtype), cast(b, dtype)


def _check_range(values, dtype):
    """Integers of an array beside a tensor fit the tensor's dtype, as Python's must."""
    import numpy as np

    values, info = np.asarray(values), np.iinfo(dtype)
    if values.dtype.kind not in "iu" or not values.size:
        return
    low, high = int(values.min()), int(values.max())
    if low < info.min or high > info.max:
        raise errors.raised_here(
            "BadAttribute",
            f"an array from {low} to {high} was combined with a tensor of {dtype}",
            f"numbers from {info.min} to {info.max}",
            "Cast the tensor to a wider dtype first",
        )


def cast(x, dtype):
    return x if x.dtype == dtype else _ops.cast(x, dtype=dtype)


def _binary(row, on_bool=None, division=False):
    def run(a, b, swap):
        pair = _operands(a, b)
        if pair is None:
            return NotImplemented
        x, y = pair[::-1] if swap else pair
        if x.dtype == "bool" and on_bool:
            return getattr(_ops, on_bool)(x, y)
        if x.dtype == "bool" and on_bool is not None:
            x, y = cast(x, "int32"), cast(y, "int32")
        if division and not _dtypes.is_float(x.dtype) and not _dtypes.is_complex(x.dtype):
            x, y = cast(x, "float32"), cast(y, "float32")
        return getattr(_ops, row)(x, y)

    return (lambda a, b: run(a, b, False)), (lambda a, b: run(a, b, True))


def _matmul(a, b):
    if len(a.shape) == 0 or len(b.shape) == 0:
        raise errors.coded("DTypeMismatch", f"@ needs tensors of rank 1 or more; got shapes {a.shape} and {b.shape}")
    x = _ops.reshape(a, shape=(1,) + tuple(a.shape)) if len(a.shape) == 1 else a
    y = _ops.reshape(b, shape=tuple(b.shape) + (1,)) if len(b.shape) == 1 else b
    out = _ops.matmul(x, y)
    shape = list(out.shape)
    if len(b.shape) == 1:
        del shape[-1]
    if len(a.shape) == 1:
        del shape[-1 if len(b.shape) == 1 else -2]
    return out if len(shape) == len(out.shape) else _ops.reshape(out, shape=tuple(shape))


def _matmul_operator(a, b):
    pair = _operands(a, b)
    return NotImplemented if pair is None else _matmul(*pair)


def _reflected_matmul(a, b):
    pair = _operands(a, b)
    return NotImplemented if pair is None else _matmul(pair[1], pair[0])


def _iterate(tensor):
    if not tensor.shape:
        raise errors.coded("DTypeMismatch", "iteration over a tensor of rank 0")
    return (tensor[i] for i in range(tensor.shape[0]))


def _format(tensor, spec):
    # Without a specification the value may be unknown: a tensor of a graph being traced.
    return format(tensor.item(), spec) if spec and not tensor.shape else str(tensor)


def _transposed(tensor):
    return _ops.transpose(tensor, perm=list(range(len(tensor.shape)))[::-1])


def _invert(tensor):
    return _ops.logical_not(tensor) if tensor.dtype == "bool" else _ops.bitwise_not(tensor)


_BINARY = {
    # name: (row, what bool tensors do: a row, or "" = as int32, or None = the row itself, divides)
    "add": ("add", "logical_or", False),
    "sub": ("sub", "", False),
    "mul": ("mul", "logical_and", False),
    "truediv": ("div", None, True),
    "floordiv": ("floor_div", "", False),
    "mod": ("floor_mod", "", False),
    "pow": ("pow", "", False),
    "and": ("bitwise_and", "logical_and", False),
    "or": ("bitwise_or", "logical_or", False),
    "xor": ("bitwise_xor", "logical_xor", False),
    "lshift": ("shift_left", "", False),
    "rshift": ("shift_right", "", False),
}
_COMPARE = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}


def _divmod(a, b):
    quotient = a // b
    return NotImplemented if quotient is NotImplemented else (quotient, a % b)


def _reflected_divmod(a, b):
    return (b // a, b % a)


def _compare(row):
    def run(a, b):
        if row in ("equal", "not_equal") and isinstance(b, (str, bytes)) and a.dtype != "string":
            return NotImplemented  # code that asks `x == "auto"` gets an answer: no number is a text
        pair = _operands(a, b)
        return NotImplemented if pair is None else getattr(_ops, row)(*pair)

    return run


def install(core):
    """Gives `core.Tensor` its operators."""
    tensor = core.Tensor
    for name, (row, on_bool, division) in _BINARY.items():
        forward, reflected = _binary(row, on_bool, division)
        setattr(tensor, f"__{name}__", forward)
        setattr(tensor, f"__r{name}__", reflected)
    for name, row in _COMPARE.items():
        setattr(tensor, f"__{name}__", _compare(row))
    methods = {
        # == compares elements; identity is what dictionaries and sets need.
        "__hash__": object.__hash__,
        "__matmul__": _matmul_operator,
        "__rmatmul__": _reflected_matmul,
        "__divmod__": _divmod,
        "__rdivmod__": _reflected_divmod,
        "__neg__": lambda x: _ops.neg(x),
        "__pos__": lambda x: x,
        "__abs__": lambda x: _ops.abs(x),
        "__invert__": _invert,
        "__getitem__": _indexing.getitem,
        "__iter__": _iterate,
        "__format__": _format,
        "T": property(_transposed),
    }
    for name, method in methods.items():
        setattr(tensor, name, method)
