# SPDX-License-Identifier: Apache-2.0
"""What Variable has besides its storage: Tensor's operators on its value, as in TensorFlow.

A variable is read when an operator is applied to it, so that a traced function sees the value of
each of its calls. `==` compares elements; whether two names are one variable is asked with `is`.
"""

import operator

from tracefire import _core
from tracefire import errors

_BINARY = (
    "add sub mul truediv floordiv mod divmod pow matmul and or xor lshift rshift".split()
)
_COMPARE = "eq ne lt le gt ge".split()
_UNARY = {
    "__neg__": operator.neg,
    "__pos__": operator.pos,
    "__abs__": operator.abs,
    "__invert__": operator.invert,
    "__bool__": bool,
    "__int__": int,
    "__float__": float,
    "__complex__": complex,
    "__index__": operator.index,
    "__len__": len,
    "__iter__": iter,
}
_IN_PLACE = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()


def _forwarded(name):
    method = getattr(_core.Tensor, name)

    def run(self, other):
        return method(self.read(), other)

    return run


def _unary(function):
    return lambda self: function(self.read())


def _refused(name):
    sign = {"add": "+", "sub": "-", "mul": "*", "truediv": "/"}.get(name, name)

    def run(self, other):
        raise errors.raised_here(
            "BadUsage",
            f"`variable {sign}= value` was used on {self!r}, which would replace the variable by a "
            "tensor",
            "assign, assign_add or assign_sub to change the variable, or `tensor = variable "
            f"{sign} value` for a new tensor",
            "Write variable.assign_add(value)",
            errors.FailedPreconditionError,
        )

    return run


def _changed(self, name, change, delta):
    """change(value, delta), where the two go together."""
    value = change(self.read(), delta)
    if value is NotImplemented:
        raise errors.raised_here(
            "BadUsage",
            f"Variable.{name} was given {type(delta).__name__} {delta!r:.60}",
            "a tensor, an array or a number",
            "Pass numbers",
            errors.DTypeError,
        )
    return value


def _assign_add(self, delta):
    """Adds to the variable at this point of the program; returns the variable."""
    return self.assign(_changed(self, "assign_add", _core.Tensor.__add__, delta))


def _assign_sub(self, delta):
    """Subtracts from the variable at this point of the program; returns the variable."""
    return self.assign(_changed(self, "assign_sub", _core.Tensor.__sub__, delta))


def _read_value(self):
    """The value at this point of the program, as read()."""
    return self.read()


def _format(self, spec):
    return format(self.read(), spec) if spec else str(self)


def _reduce(self):
    """For pickle and copy: a new variable of the same value."""
    return _core.Variable, (self.read(), self.name, self.trainable)


def install(core):
    """Gives `core.Variable` its operators; those of `core.Tensor` must be there."""
    variable = core.Variable
    names = [f"__{n}__" for n in _BINARY + _COMPARE] + [f"__r{n}__" for n in _BINARY]
    for name in names + ["__getitem__"]:
        setattr(variable, name, _forwarded(name))
    for name, function in _UNARY.items():
        setattr(variable, name, _unary(function))
    for name in _IN_PLACE:
        setattr(variable, f"__i{name}__", _refused(name))
    storage_hash = variable.__hash__
    methods = {
        "__hash__": lambda self: storage_hash(self),
        "__array_priority__": 100.0,  # as Tensor's: NumPy arrays leave operators to it
        "__format__": _format,
        "__reduce__": _reduce,
        "assign_add": _assign_add,
        "assign_sub": _assign_sub,
        "read_value": _read_value,
        "value": _read_value,
        "item": lambda self: self.read().item(),
        "tolist": lambda self: self.read().tolist(),
        "T": property(lambda self: self.read().T),
        # What Keras's optimizers ask a variable for.
        "constraint": property(lambda self: None),
        "path": property(lambda self: self.name),
    }
    for name, method in methods.items():
        setattr(variable, name, method)
