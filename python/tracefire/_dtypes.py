# SPDX-License-Identifier: Apache-2.0
"""Which dtype the operators of Tensor compute in.

The lattice is that of "Type promotion semantics" in JAX's documentation: a Python number takes the
tensor's dtype if its kind allows, integers meet floats in the float, and bfloat16 meets float16 in
float32. Strings, 4-bit integers and 8-bit floats meet nothing but themselves.
"""

from tracefire import errors

_FLOATS = ("float16", "float32", "float64")
_SIGNED = ("int8", "int16", "int32", "int64")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_INTEGERS = frozenset(_SIGNED + _UNSIGNED + ("int4", "uint4"))


def is_float(dtype):
    return dtype in _FLOATS or dtype == "bfloat16"


def is_integer(dtype):
    return dtype in _INTEGERS


def is_complex(dtype):
    return dtype.startswith("complex")


def _bits(dtype):
    return int(dtype.lstrip("abcdefghijklmnopqrstuvwxyz"))


def _check_meets(dtype, other):
    """Refuses an operand of `dtype`, which meets no other one."""
    if dtype == "bool" or is_float(dtype) or is_complex(dtype) or dtype in _SIGNED + _UNSIGNED:
        return
    raise errors.raised_here(
        "DTypeMismatch",
        f"a tensor of {dtype} was combined with {other}",
        f"operands of one dtype, because {dtype} is converted to no other by itself",
        "Convert one of them first" if dtype == "string" else "Convert one of them with cast first",
    )


def promote(a, b):
    """The dtype two tensors of dtypes `a` and `b` meet in."""
    if a == b:
        return a
    _check_meets(a, f"one of {b}")
    _check_meets(b, f"one of {a}")
    if is_complex(a) or is_complex(b):
        wide = "complex128" in (a, b) or "float64" in (a, b)
        return "complex128" if wide else "complex64"
    if is_float(a) and is_float(b):
        return "float32" if {a, b} == {"bfloat16", "float16"} else max(a, b, key=_bits)
    if is_float(a) or is_float(b):
        return a if is_float(a) else b
    if "bool" in (a, b):
        return b if a == "bool" else a
    if (a in _SIGNED) == (b in _SIGNED):
        return max(a, b, key=_bits)
    signed, unsigned = (a, b) if a in _SIGNED else (b, a)
    if unsigned == "uint64":
        return "float32"
    return f"int{max(_bits(signed), 2 * _bits(unsigned))}"


def promote_scalar(dtype, value):
    """The dtype a tensor of `dtype` and a Python number meet in."""
    _check_meets(dtype, f"the number {value}")
    if isinstance(value, bool):
        return dtype
    if isinstance(value, int):
        return "int32" if dtype == "bool" else dtype
    if isinstance(value, float):
        return dtype if is_float(dtype) or is_complex(dtype) else "float32"
    return dtype if is_complex(dtype) else "complex64"
