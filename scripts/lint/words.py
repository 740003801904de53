# SPDX-License-Identifier: Apache-2.0
"""What must not stand in the repository: paths of one machine, package mirrors, unfinished work; and
what must: the licence line first in each source file."""
import re
import sys

import _lint

# Written in pieces where this file would otherwise find itself.
BANNED = [
    (re.compile(r"(?<![\w./~-])/(?:home|root|work|mnt|Users)/[\w.]+"),
     "a path of one machine; derive it from the tree, the build folder or the environment"),
    (re.compile(r"(?<![\w.])\.\./shared\b"), "a path outside the repository"),
    (re.compile(r"(?i)--(?:extra-)?index" r"-url|\bartifact" r"ory\b|\bdevpi\b"),
     "a package mirror; the machine's own settings choose it"),
    (re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b"), "a mark of unfinished work; do it, or say what is not there"),
    (re.compile(r"^\s*//\s*-{5,}\s*$"), "a rule that a formatter broke off its heading; write `// ---- Heading`"),
]
SKIPPED = {"LICENSE"}
LICENCE = "SPDX-License-Identifier: Apache-2.0"
LICENSED = _lint.CODE | {".py", ".cmake", ".sh"}


def check(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, message in BANNED:
            if match := pattern.search(line):
                yield path, number, f"'{match[0]}' is {message}"
    if path.suffix in LICENSED or text.startswith("#!"):
        if text.strip() and LICENCE not in "\n".join(text.splitlines()[:2]):
            yield path, 1, f"the first line is not '{LICENCE}' in a comment"


def main():
    root = _lint.root_from_arguments()
    findings = []
    for path in _lint.project_files(root):
        if path.name in SKIPPED:
            continue
        text = _lint.read_text(root, path)
        if text is not None:
            findings += check(path, text)
    return _lint.finish(findings)


if __name__ == "__main__":
    sys.exit(main())
