# SPDX-License-Identifier: Apache-2.0
"""Coded errors for what this backend does not have."""

from tracefire import errors


def unsupported(happened, expected, advice, cls=None):
    return errors.raised_here("NotInBackend", happened, expected, advice, _combined(cls))


def _combined(cls):
    if cls is None:
        return None
    return type(f"Unsupported{cls.__name__}", (errors.UnimplementedError, cls), {})


def function(module, name):
    """The answer to an attribute that is a Keras backend function this backend lacks."""
    return errors.raised_here(
        "NotInBackend",
        f"keras.ops called `{module}.{name}`, which the tracefire backend does not have",
        "one of the functions listed in docs/keras.md",
        "Express it with other functions of keras.ops, or run this model with another backend",
        errors.MissingFunctionError,
    )


def attribute_of(module):
    """A module's `__getattr__` that names the missing function."""
    short = module.rsplit(".", 1)[-1]

    def __getattr__(name):
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        raise function(short, name)

    return __getattr__
