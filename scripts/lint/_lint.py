# SPDX-License-Identifier: Apache-2.0
"""What the lints share: which files there are, and how a finding is printed.

Each lint is `python3 scripts/lint/NAME.py [ROOT]`: prints `FILE:LINE: what; what to do` for each
finding and exits with 1 where there is one. ROOT is another tree, used by the lints' own tests.
"""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CODE = {".h", ".cpp", ".cc", ".cu", ".cuh"}


def root_from_arguments():
    return pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT


def project_files(root):
    """Paths relative to root: what git has or would add; in a tree without git, every file."""
    if (root / ".git").exists():
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=root,
                                check=True, capture_output=True).stdout.decode().split("\0")
        names = [n for n in listed if n]
    else:
        names = [str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()]
    return [pathlib.PurePosixPath(n) for n in sorted(names) if (root / n).is_file()]


def read_text(root, path):
    """The file's text, or None where it is not text."""
    data = (root / path).read_bytes()
    if b"\0" in data[:4096]:
        return None
    return data.decode("utf-8", errors="replace")


def finish(findings):
    """findings: (path, line number, message). Prints them and returns the exit status."""
    for path, line, message in findings:
        print(f"{path}:{line}: {message}")
    return 1 if findings else 0
