# SPDX-License-Identifier: Apache-2.0
"""docs/layout.md names every folder of src/ that holds files, and every path that it names exists."""
import re
import sys

import _lint

LAYOUT = "docs/layout.md"
TOKEN = re.compile(r"`([^`\s]+)`")


def expand(path):
    """src/{a,b}/c -> src/a/c, src/b/c."""
    if match := re.search(r"\{([^{}]*)\}", path):
        for choice in match[1].split(","):
            yield from expand(path[:match.start()] + choice.strip() + path[match.end():])
    else:
        yield path


def named_paths(text, top):
    """(line number, path) of each path in backquotes: it starts with an entry of the tree's root."""
    for number, line in enumerate(text.splitlines(), 1):
        for match in TOKEN.finditer(line):
            token = match[1]
            if "/" in token and re.fullmatch(r"[\w./{},*-]+", token):
                for path in expand(token):
                    if path.split("/")[0] in top:
                        yield number, path.rstrip("/")


def check(root):
    layout = root / LAYOUT
    if not layout.exists():
        return [(LAYOUT, 1, "is missing; it is the map of the tree, in the order in which data flows")]
    files = _lint.project_files(root)
    existing = {str(f) for f in files} | {str(p) for f in files for p in f.parents}
    # What is made by the build or by set-up is no part of the tree, but may be named.
    named = list(named_paths(layout.read_text(), {f.parts[0] for f in files}))
    findings = []
    for number, path in named:
        if "*" in path:
            pattern = re.compile(re.escape(path).replace(r"\*\*", ".*").replace(r"\*", "[^/]*"))
            found = any(pattern.fullmatch(e) for e in existing)
        else:
            found = path in existing
        if not found:
            findings.append((LAYOUT, number, f"names {path}, which does not exist; correct it"))
    names = {path for _, path in named}
    for folder in sorted({str(f.parent) for f in files if len(f.parts) > 2 and f.parts[0] == "src"}):
        if folder not in names:
            findings.append((LAYOUT, 1, f"does not name {folder}; add a line that says what it is for"))
    return findings


def main():
    return _lint.finish(check(_lint.root_from_arguments()))


if __name__ == "__main__":
    sys.exit(main())
