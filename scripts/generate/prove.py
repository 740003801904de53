#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tools/inject/prove_table.h (thresholds, classes of kernels, causes) from schema/prove.json.

usage: prove.py --root TREE (--list-inputs | --list-outputs | --out DIR)
"""
import json
import sys

import _generator

INPUT = "schema/prove.json"
OUTPUT = "tools/inject/prove_table.h"


def camel(name):
    return "".join(part.capitalize() for part in name.split("_"))


def check(schema):
    for kind in ("thresholds", "classes", "causes"):
        names = [row["name"] for row in schema[kind]]
        if len(set(names)) != len(names):
            sys.exit(f"{INPUT}: {kind} has a name twice")
    words = [w for row in schema["classes"] for w in row["words"]] + schema["tensor_cores"]["yes"] + schema["tensor_cores"]["no"]
    for word in words:
        if word != word.lower() or not word:
            sys.exit(f"{INPUT}: '{word}' would never be found: names are compared in lower case")
    if schema["classes"][-1]["words"]:
        sys.exit(f"{INPUT}: the last class takes what no other does, so it has no words")


def words(name, rows):
    return f"inline constexpr const char* {name}[] = {{{', '.join(json.dumps(w) for w in rows)}, nullptr}};"


def render(schema):
    q = json.dumps
    lines = ["// Generated from schema/prove.json; do not edit.", "#pragma once", "#include <cstdint>",
             "namespace tracefire::inject::table {"]
    for row in schema["thresholds"]:
        lines += [f"/// {row['doc']} Unit: {row['unit']}.", f"inline constexpr double k{camel(row['name'])} = {float(row['value'])!r};"]
    lines += ["enum class KernelClass : uint8_t {", *[f"  k{camel(r['name'])},  ///< {r['text']}" for r in schema["classes"]], "};",
              f"inline constexpr int kClassCount = {len(schema['classes'])};"]
    for row in schema["classes"]:
        lines.append(words(f"kWords{camel(row['name'])}", row["words"]) if row["words"] else
                     f"inline constexpr const char* kWords{camel(row['name'])}[] = {{nullptr}};")
    lines += ["struct ClassRow { const char* name; const char* text; const char* const* words; };",
              "/// In the order of KernelClass.", "inline constexpr ClassRow kClasses[] = {"]
    lines += [f"  {{{q(r['name'])}, {q(r['text'])}, kWords{camel(r['name'])}}}," for r in schema["classes"]]
    lines += ["};", words("kTensorCoreWords", schema["tensor_cores"]["yes"]), words("kNoTensorCoreWords", schema["tensor_cores"]["no"]),
              "enum class Cause : uint8_t {", *[f"  k{camel(r['name'])},  ///< {r['text']}" for r in schema["causes"]], "};",
              f"inline constexpr int kCauseCount = {len(schema['causes'])};"]
    for row in schema["causes"]:
        lines.append(words(f"kAdvice{camel(row['name'])}", row["advice"]) if row["advice"] else
                     f"inline constexpr const char* kAdvice{camel(row['name'])}[] = {{nullptr}};")
    lines += ["struct CauseRow { const char* name; const char* health; const char* text; const char* explain; const char* const* advice; };",
              "/// In the order of Cause.", "inline constexpr CauseRow kCauses[] = {"]
    lines += [f"  {{{q(r['name'])}, {q(r['health'])}, {q(r['text'])}, {q(r['explain'])}, kAdvice{camel(r['name'])}}}," for r in schema["causes"]]
    return lines + ["};", "}  // namespace tracefire::inject::table", ""]


def make(root):
    schema = _generator.load(root, INPUT)
    check(schema)
    return [render(schema)]


def main():
    _generator.run(__doc__, [INPUT], [OUTPUT], make)


if __name__ == "__main__":
    main()
