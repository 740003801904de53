# SPDX-License-Identifier: Apache-2.0
"""Exceptions. Each carries a catalogue code; `tracefire explain CODE` says more about it.

The extension module raises them too: it calls `make` with the kind and the text of an
error of the engine.
"""

import re


class Error(Exception):
    """Base of every exception of Tracefire.

    `code` is the catalogue code ("TF-E0114"), `number` its number (114), `kind` the kind of
    failure ("FailedPrecondition"). The code stands in the message, so that it survives libraries
    that raise an exception again with more text.
    """

    kind = "Internal"

    @property
    def code(self):
        return code_of(self) or "TF-E0901"

    @property
    def number(self):
        return int(self.code[4:])


def _error(name, kind, builtin):
    """The exception of one kind of failure, which is also an exception of Python's own."""
    doc = f"A failure of kind {kind}; also {builtin.__name__}."
    return type(name, (Error, builtin), {"kind": kind, "__module__": __name__, "__doc__": doc})


InvalidArgumentError = _error("InvalidArgumentError", "InvalidArgument", ValueError)
DTypeError = _error("DTypeError", "Type", TypeError)
NotFoundError = _error("NotFoundError", "NotFound", FileNotFoundError)
UnimplementedError = _error("UnimplementedError", "Unimplemented", NotImplementedError)
OutOfRangeError = _error("OutOfRangeError", "OutOfRange", IndexError)
ResourceExhaustedError = _error("ResourceExhaustedError", "ResourceExhausted", MemoryError)
FailedPreconditionError = _error("FailedPreconditionError", "FailedPrecondition", RuntimeError)
DataLossError = _error("DataLossError", "DataLoss", RuntimeError)
UnavailableError = _error("UnavailableError", "Unavailable", RuntimeError)
CancelledError = _error("CancelledError", "Cancelled", RuntimeError)
InternalError = _error("InternalError", "Internal", RuntimeError)

_CLASSES = {cls.kind: cls for cls in Error.__subclasses__()}


def make(kind, text):
    """The exception object for one failure; `text` starts with the code in brackets."""
    return _CLASSES.get(kind, InternalError)(text)


def code_of(error):
    """The catalogue code in an exception's text, or None."""
    match = re.search(r"\[(TF-E\d{4})\]", str(error))
    return match.group(1) if match else None


def raised_here(name, happened, expected, advice, cls=None):
    """An exception that Python code raises.

    Args:
        name: name in the error catalogue, such as "ValueInTrace".
        happened: what happened, with the values received.
        expected: what was expected.
        advice: what to do.
        cls: exception class, if the one of the error's kind does not fit.
    """
    from tracefire import _core

    text = text_of(name, happened, expected, advice)
    return make(_core.error_catalogue()[name][1], text) if cls is None else cls(text)


def coded(name, text):
    """An exception that Python code raises with a text of a form of its own."""
    from tracefire import _core

    number, kind = _core.error_catalogue()[name]
    return make(kind, f"[TF-E{number:04d}] {text}")


def text_of(name, happened, expected, advice):
    """The text of such an exception, for what is said without raising one."""
    from tracefire import _core

    number, _ = _core.error_catalogue()[name]
    return f"[TF-E{number:04d}] {happened}. Expected: {expected}. {advice}."


# A backend function that does not exist; an AttributeError, so that `hasattr` answers False.
MissingFunctionError = _error("MissingFunctionError", "Unimplemented", AttributeError)
# Keras was imported before its backend; an ImportError, as an import raises it.
ImportedTooLateError = _error("ImportedTooLateError", "FailedPrecondition", ImportError)
