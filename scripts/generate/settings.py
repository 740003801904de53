#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes settings_table.h (enums, rows and typed readers) from schema/settings.json.

usage: settings.py --root TREE (--list-inputs | --list-outputs | --out DIR)
"""
import json
import sys

import _generator

INPUT = "schema/settings.json"
OUTPUT = "settings_table.h"
TYPES = {"flag": "bool", "integer": "int64_t", "real": "double", "text": "std::string"}


def camel(name):
    return "".join(part.capitalize() for part in name.split("_"))


def fail(name, why):
    sys.exit(f"{INPUT}: setting {name}: {why}")


def text_of(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def check(settings):
    names = [s["name"] for s in settings]
    for s in settings:
        if names.count(s["name"]) != 1:
            fail(s["name"], "appears twice")
        if s["type"] not in (*TYPES, "choice"):
            fail(s["name"], f"has the unknown type {s['type']}")
        if s["type"] == "choice" and s["default"] not in s["values"]:
            fail(s["name"], "has a default that is none of its values")
        if not s.get("doc"):
            fail(s["name"], "has no doc")


def render(settings, others):
    q = json.dumps
    lines = ["// Generated from schema/settings.json; do not edit.", "#pragma once",
             "#include <cstdint>", "#include <string>", "namespace tracefire {"]
    for s in settings:
        if s["type"] == "choice":
            values = ", ".join("k" + camel(v) for v in s["values"])
            lines.append(f"enum class {s['enum']} : uint8_t {{ {values} }};")
    lines += ["enum class SettingType : uint8_t { kFlag, kInteger, kReal, kText, kChoice };",
              "struct SettingRow {",
              "  const char* name; SettingType type; const char* fallback;",
              "  const char* values;  // of a choice, separated by '|'",
              "  double min, max; const char* unit; const char* doc;", "};",
              "inline constexpr SettingRow kSettingTable[] = {"]
    for s in settings:
        values = "|".join(s.get("values", []))
        lines.append(f"  {{{q(s['name'])}, SettingType::k{camel(s['type'])}, {q(text_of(s['default']))}, "
                     f"{q(values)}, {float(s.get('min', -1e300))}, {float(s.get('max', 1e300))}, "
                     f"{q(s.get('unit', ''))}, {q(s['doc'])}}},")
    lines += ["};", f"inline constexpr int kSettingCount = {len(settings)};",
              "/// Variables that begin like settings and are none; * stands for any end.",
              "inline constexpr const char* kOtherVariables[] = {", *(f"  {q(o['name'])}," for o in others), "};",
              "namespace settings {",
              "namespace detail {", "int64_t integer(int index);", "double real(int index);",
              "std::string text(int index);", "}  // namespace detail"]
    for i, s in enumerate(settings):
        unit = f" Unit: {s['unit']}." if "unit" in s else ""
        lines.append(f"/// {s['doc']}{unit}")
        reader = {"real": "real", "text": "text"}.get(s["type"], "integer")
        call = f"detail::{reader}({i})"
        if s["type"] == "flag":
            call += " != 0"
        if s["type"] == "choice":
            call = f"static_cast<{s['enum']}>({call})"
        result = s.get("enum") or TYPES[s["type"]]
        lines.append(f"inline {result} {s['name']}() {{ return {call}; }}")
    return lines + ["}  // namespace settings", "}  // namespace tracefire", ""]


def make(root):
    schema = _generator.load(root, INPUT)
    check(schema["settings"])
    return [render(schema["settings"], schema["other_variables"])]


def main():
    _generator.run(__doc__, [INPUT], [OUTPUT], make)


if __name__ == "__main__":
    main()
