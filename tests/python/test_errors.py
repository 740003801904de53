# SPDX-License-Identifier: Apache-2.0
"""The exception classes: one a kind of failure, each also the closest of Python's own."""

import pickle

import pytest

core = pytest.importorskip("tracefire._core")
from tracefire import errors  # noqa: E402

BUILTINS = {
    "InvalidArgument": ValueError,
    "Type": TypeError,
    "NotFound": FileNotFoundError,
    "Unimplemented": NotImplementedError,
    "OutOfRange": IndexError,
    "ResourceExhausted": MemoryError,
    "FailedPrecondition": RuntimeError,
    "DataLoss": RuntimeError,
    "Unavailable": RuntimeError,
    "Cancelled": RuntimeError,
    "Internal": RuntimeError,
}


@pytest.mark.parametrize("kind, builtin", BUILTINS.items())
def test_each_kind_has_a_class(kind, builtin):
    error = errors.make(kind, "[TF-E0114] train.py: no such thing")
    assert isinstance(error, errors.Error) and isinstance(error, builtin)
    assert error.kind == kind and error.code == "TF-E0114" and error.number == 114
    assert str(error) == "[TF-E0114] train.py: no such thing"
    name = type(error).__name__
    assert getattr(errors, name) is type(error) and type(error).__module__ == "tracefire.errors"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error)


def test_kinds_of_the_catalogue_are_known():
    assert {kind for _, kind in core.error_catalogue().values()} <= set(BUILTINS)
    assert type(errors.make("Unheard", "text")) is errors.InternalError
    assert errors.make("Internal", "no code").code == "TF-E0901"


def test_a_missing_function_is_no_attribute():
    error = errors.raised_here("NotInBackend", "a", "b", "c", errors.MissingFunctionError)
    assert isinstance(error, AttributeError) and error.kind == "Unimplemented"
    assert str(error).endswith("a. Expected: b. c.")
