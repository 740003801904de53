#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Embeds src/tools/doctor/data/*.json into the doctor (build/gen/tools/doctor/embedded_data.cpp).

usage: doctor_data.py --root TREE (--list-inputs | --list-outputs | --out DIR)
"""
import argparse
import json
import os
import sys

FOLDER = "src/tools/doctor/data"
OUTPUT = "tools/doctor/embedded_data.cpp"
CHUNK = 8000  # compilers limit the length of one literal


def inputs(root):
    folder = os.path.join(root, FOLDER)
    if not os.path.isdir(folder):
        return []
    return [f"{FOLDER}/{name}" for name in sorted(os.listdir(folder)) if name.endswith(".json")]


def literal(text):
    pieces = [text[i:i + CHUNK] for i in range(0, len(text), CHUNK)]
    return "\n".join(f'      R"data({piece})data"' for piece in pieces)


def render(root):
    lines = [f"// Generated from {FOLDER}/*.json; do not edit.", '#include "tools/doctor/data.h"',
             "namespace tracefire::doctor {", "const std::vector<EmbeddedFile>& embedded_files() {",
             "  static const std::vector<EmbeddedFile> kFiles = {"]
    for path in inputs(root):
        with open(os.path.join(root, path), encoding="utf-8") as f:
            parsed = json.load(f)
        text = json.dumps(parsed, ensure_ascii=True, separators=(",", ":"))
        if ')data"' in text:
            sys.exit(f'{path} holds )data", which ends the literal')
        name = os.path.basename(path)[:-len(".json")]
        lines.append(f'    {{"{name}",\n{literal(text)}}},')
    return lines + ["  };", "  return kFiles;", "}", "}  // namespace tracefire::doctor", ""]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", required=True)
    parser.add_argument("--list-inputs", action="store_true")
    parser.add_argument("--list-outputs", action="store_true")
    parser.add_argument("--out")
    args = parser.parse_args()
    if args.list_inputs:
        print("\n".join(inputs(args.root)))
    elif args.list_outputs:
        print(OUTPUT)
    else:
        with open(os.path.join(args.out, OUTPUT), "w", encoding="utf-8") as f:
            f.write("\n".join(render(args.root)))


if __name__ == "__main__":
    main()
