# SPDX-License-Identifier: Apache-2.0
"""Fetches the Zig that requirements/dist.txt pins: the compiler of `make dist`, the stubs of `make wheel`."""
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def fetch_zig(work):
    """The folder of the pinned Zig below `work`, fetched where it is not there."""
    folder = work / "zig"
    wanted = (ROOT / "requirements" / "dist.txt").read_text()
    stamp = folder / "requirements.stamp"
    if not stamp.exists() or stamp.read_text() != wanted:
        print("fetching Zig (about 100 MB)", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        own = ROOT / ".venv" / "bin" / "python"
        python = own if own.exists() else sys.executable
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary",
                   ":all:", "--no-deps", "--target", str(folder), "-r", "requirements/dist.txt"]
        done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL)
        if done.returncode:
            sys.exit(f"fetch_zig: this failed ({done.returncode}): {' '.join(command)}")
        stamp.write_text(wanted)
    return folder / "ziglang"
