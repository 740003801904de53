# SPDX-License-Identifier: Apache-2.0
"""Prepares Keras's import, at the moment of that import, if Keras is told to use tracefire.

tracefire.pth, which each start of Python reads, puts a finder into sys.meta_path that waits for
`import keras` and only then imports this module, which looks where Keras looks, at KERAS_BACKEND and
at keras.json. So a program may set the variable itself before it imports Keras.
"""

import os
import sys

NAME = "tracefire"


def is_wanted():
    """True if Keras would choose this backend now, by the rules of keras.src.backend.config."""
    return (os.environ.get("KERAS_BACKEND") or _configured()) == NAME


def _configured():
    home = os.environ.get("KERAS_HOME")
    if home is None:
        base = os.path.expanduser("~")
        home = os.path.join(base if os.access(base, os.W_OK) else "/tmp", ".keras")
    try:
        with open(os.path.expanduser(os.path.join(home, "keras.json")), encoding="utf-8") as file:
            text = file.read()
    except (OSError, ValueError):  # Keras says what is wrong with it
        return None
    if NAME not in text:
        return None
    import json

    try:
        return json.loads(text).get("backend")
    except (ValueError, AttributeError):
        return None


def find_spec(name, path=None, target=None):
    """As of a finder in sys.meta_path; finds nothing itself."""
    if name == "keras" and is_wanted():
        import keras_tracefire  # noqa: F401 - teaches Keras our name

    return None


def install():
    """For processes that do not read tracefire.pth: packages on PYTHONPATH."""
    this = sys.modules[__name__]
    if this not in sys.meta_path:
        sys.meta_path.insert(0, this)
