# SPDX-License-Identifier: Apache-2.0
"""Makes build/python mirror python/: one symbolic link for each file, real folders.

Usage: link_packages.py SOURCE TARGET. Files that the build put into TARGET itself (the compiled
module) stay; links to files that no longer exist are removed.
"""
import os
import pathlib
import sys


def main(source, target):
    source, target = pathlib.Path(source).resolve(), pathlib.Path(target).resolve()
    for link in target.rglob("*"):
        if link.is_symlink() and not link.exists():
            link.unlink()
    for folder, folders, files in os.walk(source):
        folders[:] = [f for f in folders if f not in ("bindings", "__pycache__")]
        here = target / pathlib.Path(folder).relative_to(source)
        here.mkdir(parents=True, exist_ok=True)
        for name in files:
            link, file = here / name, pathlib.Path(folder) / name
            if link.is_symlink() and os.readlink(link) == str(file):
                continue
            link.unlink(missing_ok=True)
            link.symlink_to(file)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
