#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tools/monitor/web/page_files.cpp, the monitor's web page as data, from its files.

usage: monitor_page.py --root TREE (--list-inputs | --list-outputs | --out DIR)
"""
import os

import _generator

FOLDER = "src/tools/monitor/web/page"
FILES = {"index.html": "text/html; charset=utf-8",
         "monitor.css": "text/css; charset=utf-8",
         "monitor.js": "text/javascript; charset=utf-8",
         "charts.js": "text/javascript; charset=utf-8"}
OUTPUT = "tools/monitor/web/page_files.cpp"


def literal(data):
    """The bytes as C++ strings of one line each; octal escapes, which end by themselves."""
    lines = []
    for line in data.splitlines(keepends=True):
        text = ""
        for byte in line:
            char = chr(byte)
            if char in "\"\\?":
                text += "\\" + char
            elif 32 <= byte < 127:
                text += char
            else:
                text += f"\\{byte:03o}"
        lines.append(f'    "{text}"')
    return "\n".join(lines)


def render(root):
    out = [f"// Generated from {FOLDER}; do not edit.", '#include "tools/monitor/web/pages.h"',
           "namespace tracefire::monitor {", "const PageFile kPageFiles[] = {"]
    for name, kind in FILES.items():
        with open(os.path.join(root, FOLDER, name), "rb") as f:
            data = f.read()
        out += [f'  {{"/{name}", "{kind}",', literal(data) + ",", f"    {len(data)}}},"]
    return out + ["  {nullptr, nullptr, nullptr, 0}};", "}  // namespace tracefire::monitor", ""]


def main():
    inputs = [f"{FOLDER}/{name}" for name in FILES]
    _generator.run(__doc__, inputs, [OUTPUT], lambda root: [render(root)])


if __name__ == "__main__":
    main()
