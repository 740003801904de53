# SPDX-License-Identifier: Apache-2.0
"""What saved models tell of how they were made, and how they come to be files."""

import functools
import json
import os
import secrets
import shutil

from tracefire import manifest

NAME = "tracefire_manifest.json"


def write_manifest(folder):
    """Writes tracefire.manifest() into a folder of a model that is being saved."""
    with open(os.path.join(folder, NAME), "w", encoding="utf-8") as file:
        json.dump(manifest(), file, indent=1)
        file.write("\n")


def _place_of(path, endings):
    """The file that `path` names, if it can be written beside its place; else None."""
    try:
        path = os.path.realpath(os.fspath(path))
    except TypeError:  # an open file
        return None
    folder = os.path.dirname(path)
    whole = isinstance(path, str) and path.endswith(endings)
    is_file = os.path.isfile(path) or not os.path.lexists(path)
    return path if whole and is_file and os.access(folder, os.W_OK) else None


def written_whole(write, endings):
    """`write(model, filepath, ...)` of Keras, which leaves the file of before where it fails.

    It writes a file beside the one that was asked for, which then takes its place. Where there is no
    place beside it (an open file, a device, a folder that takes no files) it writes as ever.
    """

    @functools.wraps(write)
    def write_whole(model, filepath, *args, **kwargs):
        place = _place_of(filepath, endings)
        # A size given in place of a flag is that of parts: several files, named after one.
        in_parts = any(a and type(a) is not bool for a in (*args, kwargs.get("max_shard_size")))
        if place is None or in_parts:
            return write(model, filepath, *args, **kwargs)
        folder, name = os.path.split(place)
        beside = os.path.join(folder, f".{secrets.token_hex(4)}.{name}")
        try:
            result = write(model, beside, *args, **kwargs)
            if os.path.exists(place):
                shutil.copymode(place, beside)
            os.replace(beside, place)
        finally:
            if os.path.lexists(beside):
                os.unlink(beside)
        return result

    return write_whole
