#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes event_schema.h (names of enum values and the fields of events) from schema/events.json.

usage: events.py --root TREE (--list-inputs | --list-outputs | --out DIR)
"""
import json
import sys

import _generator

INPUT = "schema/events.json"
OUTPUT = "event_schema.h"


def render(schema):
    q = json.dumps
    lines = ["// Generated from schema/events.json; do not edit.", "#pragma once",
             "namespace tracefire {"]
    for enum in schema["enums"]:
        names = [v["name"] for v in enum["values"]]
        if len(set(names)) != len(names):
            sys.exit(f"{INPUT}: enum {enum['name']} has a value twice")
        lines += [f"/// Names of {enum['name']}, in the order of the enum.",
                  f"inline constexpr const char* k{enum['name']}Names[] = {{" +
                  ", ".join(map(q, names)) + "};"]
    lines += ["/// One field of an event, for exporters and documentation.",
              "struct EventField { const char* event; const char* name; const char* type; "
              "const char* unit; const char* doc; };", "inline constexpr EventField kEventFields[] = {"]
    for event in schema["events"]:
        for field in event["fields"]:
            lines.append("  {" + ", ".join(map(q, (event["name"], field["name"], field["type"],
                                                   field.get("unit", ""), field["doc"]))) + "},")
    return lines + ["};", "}  // namespace tracefire", ""]


def main():
    _generator.run(
        __doc__, [INPUT], [OUTPUT], lambda root: [render(_generator.load(root, INPUT))]
    )


if __name__ == "__main__":
    main()
