# SPDX-License-Identifier: Apache-2.0
"""Every operation and operator with operands of every dtype: a value or an error with a code."""

import itertools
import operator

import numpy as np
import pytest

core = pytest.importorskip("tracefire._core")
import tracefire  # noqa: E402, F401  (gives tensors their operators)

_NUMBERS = ["bool", "int8", "int32", "uint64", "float16", "bfloat16", "float32", "complex64"]
_ALONE = ["string", "int4", "float8_e4m3fn"]
_OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.matmul,
    operator.and_,
    operator.lshift,
    operator.eq,
    operator.ne,
    operator.lt,
    divmod,
]


def _tensor(dtype):
    return core.tensor(["a", "b"]) if dtype == "string" else core.tensor([1, 0], dtype)


def _code(call):
    """The code of what `call` raises; None if it works. An error without a code fails the test."""
    try:
        results = call()
        for result in results if isinstance(results, (list, tuple)) else [results]:
            if isinstance(result, core.Tensor):
                result.tolist()
    except core.Error as error:
        return error.code
    return None


@pytest.mark.parametrize("run", _OPERATORS, ids=lambda run: run.__name__)
def test_operators_of_operands_that_do_not_meet_are_type_errors(run):
    for a, b in itertools.product(_NUMBERS + _ALONE, repeat=2):
        code = _code(lambda: run(_tensor(a), _tensor(b)))
        if a != b and (a in _ALONE or b in _ALONE):
            assert code == "TF-E0102", (a, b)
    for dtype in _ALONE:
        for other in (1, 1.5, True, 1j):
            assert _code(lambda: run(_tensor(dtype), other)) == "TF-E0102", (dtype, other)
            assert _code(lambda: run(other, _tensor(dtype))) == "TF-E0102", (other, dtype)
    for dtype in _NUMBERS:
        for other in (["a", "b"], np.array(["a", "b"])):
            assert _code(lambda: run(_tensor(dtype), other)) == "TF-E0102", (dtype, other)
        if run not in (operator.eq, operator.ne):
            assert _code(lambda: run(_tensor(dtype), "a")) == "TF-E0102", dtype


def test_the_message_names_both_and_a_cure():
    with pytest.raises(core.Error, match="tensor of string was combined with one of int32.*Convert one"):
        _tensor("string") + _tensor("int32")
    with pytest.raises(core.Error, match="tensor of string was combined with the number 3"):
        _tensor("string") == 3


def test_a_text_is_never_silently_unequal_to_texts():
    with pytest.raises(core.Error, match="TF-E0102"):
        _tensor("string") == "a"
    # Code that asks whether an argument is "auto" gets an answer for numbers.
    assert (_tensor("int32") == "auto") is False
    assert (_tensor("int32") != "auto") is True


@pytest.mark.parametrize("name", [n for n in dir(core.ops) if not n.startswith("_")])
def test_rows_take_operands_or_say_why_not(name):
    row = getattr(core.ops, name)
    operands = {dtype: _tensor(dtype) for dtype in _NUMBERS + _ALONE}
    for count in (1, 2):
        for given in itertools.product(operands.values(), repeat=count):
            try:
                _code(lambda: row(*given))
            except TypeError as error:  # more or fewer operands, or an attribute that must be given
                assert "incompatible function arguments" in str(error) or "argument" in str(error)
