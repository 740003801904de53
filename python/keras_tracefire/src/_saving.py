# SPDX-License-Identifier: Apache-2.0
"""What saved models tell of how they were made."""

import json
import os

from tracefire import manifest

NAME = "tracefire_manifest.json"


def write_manifest(folder):
    """Writes tracefire.manifest() into a folder of a model that is being saved."""
    with open(os.path.join(folder, NAME), "w", encoding="utf-8") as file:
        json.dump(manifest(), file, indent=1)
        file.write("\n")
