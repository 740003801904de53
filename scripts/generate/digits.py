#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Embeds data/digits.csv.gz into the library, so that one binary has the data of its demo.

usage: digits.py --root TREE (--list-inputs | --list-outputs | --out DIR)
"""
import argparse
import os

INPUT = "data/digits.csv.gz"
OUTPUT = "lib/data/digits_bytes.cpp"


def render(content):
    lines = [f"// Generated from {INPUT}; do not edit.", '#include "lib/data/digits_bytes.h"',
             "namespace tracefire::data {", "namespace {", "constexpr unsigned char kBytes[] = {"]
    lines += [",".join(map(str, content[i:i + 30])) + "," for i in range(0, len(content), 30)]
    lines += ["};", "}  // namespace", "std::string_view digits_bytes() {",
              "  return {reinterpret_cast<const char*>(kBytes), sizeof kBytes};", "}",
              "}  // namespace tracefire::data", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", required=True)
    parser.add_argument("--list-inputs", action="store_true")
    parser.add_argument("--list-outputs", action="store_true")
    parser.add_argument("--out")
    args = parser.parse_args()
    if args.list_inputs:
        print(INPUT)
    elif args.list_outputs:
        print(OUTPUT)
    else:
        with open(os.path.join(args.root, INPUT), "rb") as file:
            content = file.read()
        path = os.path.join(args.out, OUTPUT)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(render(content))


if __name__ == "__main__":
    main()
