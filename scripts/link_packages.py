# SPDX-License-Identifier: Apache-2.0
"""Makes build/python mirror python/: one symbolic link for each file, real folders.

Usage: link_packages.py SOURCE TARGET. Files that the build put into TARGET itself (the compiled
module) stay; links to files that no longer exist are removed. Where this Python's site-packages has
been told of TARGET, it is told again, in the words of today.

link_packages.py --enter TARGET tells this Python's site-packages of TARGET: one line makes each start
of Python read the packages there and their tracefire.pth, which thus is never a copy of another day.
"""
import os
import pathlib
import sys
import sysconfig


def enter(target, site, only_again=False):
    """Has Python read `target` as it reads its site-packages, `site`."""
    entry, copy = site / "tracefire-development.pth", site / "tracefire.pth"
    known = entry.read_text() if entry.exists() else ""
    line = f"import site; site.addsitedir({str(target)!r})\n"
    if only_again and known not in (line, f"{target}\n"):
        return
    if known != line:
        entry.write_text(line)
    # Earlier set-ups copied it here. One of an installed wheel belongs to that.
    if copy.exists() and not list(site.glob("tracefire-*.dist-info")):
        copy.unlink()


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
    return target


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    here = pathlib.Path(sysconfig.get_path("purelib"))
    if sys.argv[1] == "--enter":
        enter(pathlib.Path(sys.argv[2]).resolve(), here)
    else:
        enter(main(*sys.argv[1:]), here, only_again=True)
