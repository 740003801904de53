#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Embeds data/digits.csv.gz into the library, so that one binary has the data of its demo.

usage: digits.py --root TREE (--list-inputs | --list-outputs | --out DIR)
"""
import os

import _generator

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


def make(root):
    with open(os.path.join(root, INPUT), "rb") as file:
        return [render(file.read())]


def main():
    _generator.run(__doc__, [INPUT], [OUTPUT], make)


if __name__ == "__main__":
    main()
