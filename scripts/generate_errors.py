#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes error_codes.h (enum and catalogue) from schema/errors.json.

usage: generate_errors.py schema/errors.json OUT.h
"""
import json
import sys


def main(source, out):
    errors = json.load(open(source, encoding="utf-8"))["errors"]
    numbers = [e["number"] for e in errors]
    names = [e["name"] for e in errors]
    if len(set(numbers)) != len(numbers) or len(set(names)) != len(names) or numbers != sorted(numbers):
        sys.exit(f"{source}: numbers and names must be unique and in ascending order")
    q = json.dumps
    lines = ["// Generated from schema/errors.json; do not edit.", "#pragma once", "#include <cstdint>",
             "namespace tracefire {", "enum class ErrorCode : uint16_t {"]
    lines += [f"  k{e['name']} = {e['number']}," for e in errors]
    lines += ["};", "struct CatalogueEntry { uint16_t number; const char* name; const char* kind; "
              "const char* summary; const char* help; };",
              "inline constexpr CatalogueEntry kErrorCatalogue[] = {"]
    lines += [f"  {{{e['number']}, {q(e['name'])}, {q(e['kind'])}, {q(e['summary'])}, {q(e['help'])}}}," for e in errors]
    lines += ["};", "}  // namespace tracefire", ""]
    text = "\n".join(lines)
    try:  # the same text keeps its time: everything is compiled after this header
        with open(out, encoding="utf-8") as f:
            if f.read() == text:
                return
    except FileNotFoundError:
        pass
    with open(out, "w", encoding="utf-8") as f:
        f.write(text)


if __name__ == "__main__":
    main(*sys.argv[1:3])
