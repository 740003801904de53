# SPDX-License-Identifier: Apache-2.0
"""The manifest: what a result was made with, so that it can be made again or compared."""

import json
import platform
import sys

from tracefire import _core


def _commit():
    try:
        from tracefire import _build
    except ImportError:  # a module put together by hand
        return ""
    return _build.commit


def _keras_seed():
    """The seed of keras.utils.set_random_seed, where Keras is in use and one was set."""
    rng = sys.modules.get("keras.src.utils.rng_utils")
    get = getattr(rng, "get_random_seed", None)
    return get() if get else None


def _version(package):
    module = sys.modules.get(package)
    return getattr(module, "__version__", None)


def manifest(seed=None, all_libraries=False):
    """A dictionary (schema tracefire.manifest/1) of what results are made with in this process.

    Versions of Tracefire, Python and the packages in use, platform, driver, GPUs, libraries with
    their files, precision, and the settings that differ from their defaults. `seed` is that of the
    run; without it the one that was given to keras.utils.set_random_seed. With `all_libraries`,
    CUDA libraries that are here and not in use are loaded and listed, too.
    """
    if seed is None:
        seed = _keras_seed()
    text = _core.manifest(commit=_commit(), seed=seed, all_libraries=all_libraries)
    result = json.loads(text)
    result["python"] = {
        "version": platform.python_version(),
        "keras": _version("keras"),
        "numpy": _version("numpy"),
    }
    return result
