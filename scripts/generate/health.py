#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes health_table.h (limits, grades, causes, alerts) from schema/health.json.

usage: health.py --root TREE (--list-inputs | --list-outputs | --out DIR)
"""
import json
import sys

import _generator

INPUT = "schema/health.json"
OUTPUT = "health_table.h"
SEVERITIES = ("info", "warning", "critical")


def camel(name):
    return "".join(part.capitalize() for part in name.split("_"))


def check(schema):
    for kind in ("limits", "grades", "causes", "alerts"):
        names = [row["name"] for row in schema[kind]]
        if len(set(names)) != len(names):
            sys.exit(f"{INPUT}: {kind} has a name twice")
    for row in schema["alerts"]:
        if row["severity"] not in SEVERITIES:
            sys.exit(f"{INPUT}: alert {row['name']} has the unknown severity {row['severity']}")


def enum(name, rows, doc):
    lines = [f"enum class {name} : uint8_t {{"]
    lines += [f"  k{camel(row['name'])},  ///< {row[doc]}" for row in rows]
    return lines + ["};", f"inline constexpr int k{name}Count = {len(rows)};"]


def render(schema):
    q = json.dumps
    lines = ["// Generated from schema/health.json; do not edit.", "#pragma once", "#include <cstdint>",
             "namespace tracefire::health {"]
    for row in schema["limits"]:
        lines += [f"/// {row['doc']} Unit: {row['unit']}.",
                  f"inline constexpr double k{camel(row['name'])} = {float(row['value'])!r};"]
    lines += enum("Grade", schema["grades"], "doc")
    lines += ["inline constexpr const char* kGradeNames[] = {" +
              ", ".join(q(row["name"]) for row in schema["grades"]) + "};"]
    lines += ["/// The grade of a busy share, 0 to 1.",
              "constexpr Grade grade_of(double busy_share) {",
              "  return busy_share >= kBusyHealthy ? Grade::kHealthy", "         : busy_share >= kBusyLow ? Grade::kFair",
              "         : busy_share >= kIdle    ? Grade::kLow", "                                  : Grade::kIdle;", "}"]
    lines += enum("Cause", schema["causes"], "text")
    lines += ["struct CauseRow { const char* name; const char* text; const char* cure; };",
              "/// In the order of Cause.", "inline constexpr CauseRow kCauses[] = {"]
    lines += [f"  {{{q(row['name'])}, {q(row['text'])}, {q(row['cure'])}}}," for row in schema["causes"]]
    lines += ["};"]
    lines += enum("Alert", schema["alerts"], "doc")
    lines += ["struct AlertRow { const char* name; const char* severity; const char* doc; };",
              "/// In the order of Alert.", "inline constexpr AlertRow kAlerts[] = {"]
    lines += [f"  {{{q(row['name'])}, {q(row['severity'])}, {q(row['doc'])}}}," for row in schema["alerts"]]
    return lines + ["};", "}  // namespace tracefire::health", ""]


def make(root):
    schema = _generator.load(root, INPUT)
    check(schema)
    return [render(schema)]


def main():
    _generator.run(__doc__, [INPUT], [OUTPUT], make)


if __name__ == "__main__":
    main()
