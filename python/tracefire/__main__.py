# SPDX-License-Identifier: Apache-2.0
"""`python -m tracefire ...` is the command `tracefire ...`, also where pip's folder is not on PATH."""

import os
import pathlib
import shutil
import sys

from tracefire import errors


def _program():
    """The command of a wheel lies in the package; that of a build is on PATH."""
    inside = pathlib.Path(__file__).resolve().parent / "bin" / "tracefire"
    return str(inside) if inside.is_file() else shutil.which("tracefire")


def _refusal(arguments):
    first = arguments[0] if arguments else ""
    if first.endswith((".py", ".ipy", ".ipynb")):
        return errors.raised_here(
            "BadUsage",
            f"`python -m tracefire` was given the program {first!r}",
            "a command of `tracefire help`; programs written for tensorflow are not run",
            f"Keras programs run with KERAS_BACKEND=tracefire python {first}; to see where another "
            f"framework works, use `tracefire prove python {first}`",
        )
    if _program() is None:
        return errors.raised_here(
            "FileNotFound",
            "the program `tracefire` lies neither in the package nor on PATH",
            "the one of the same build",
            "Put build/bin on PATH, or install a wheel, which holds it",
        )
    return None


def main(arguments):
    refusal = _refusal(arguments)
    if refusal is not None:
        print(f"tracefire: {refusal}", file=sys.stderr)
        return 2
    os.execv(_program(), ["tracefire", *arguments])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
