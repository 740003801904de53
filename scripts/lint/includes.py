# SPDX-License-Identifier: Apache-2.0
"""Enforces the include table, scripts/lint/rooms.json: who may include whom."""
import json
import re
import sys

import _lint

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
TEST_ROOMS = ("tests/", "examples/", "bench/")


class Table:
    def __init__(self, data):
        self.rooms = data["rooms"]
        self.value_types = set(data["value_types"])
        self.external = data["external"]
        self.generated = data.get("generated", {})

    def room_of(self, path):
        """The room a file of the tree belongs to, or None."""
        for name, room in self.rooms.items():
            if path == room["dir"] or path.startswith(room["dir"] + "/"):
                return name
        return None

    def room_of_include(self, target):
        """The room that an include path such as core/graph/graph.h names, or None."""
        if target in self.generated:
            return self.generated[target]
        return self.room_of(target if target.startswith("python/") else "src/" + target)

    def external_of(self, target):
        for group, prefixes in self.external.items():
            if any(target == p or (p.endswith("/") and target.startswith(p)) for p in prefixes):
                return group
        return None

    def refusal(self, room, kind, target):
        """Why a file of this room may not include the target, or None."""
        rules = self.rooms[room]
        known = self.value_types | self.generated.keys()
        if kind == '"' and "/" not in target and target not in known:
            return (f'"{target}" names no folder; write the path from src/ ("core/graph/graph.h") or from '
                    'include/ ("tracefire/tensor.h")')
        if ".." in target.split("/"):
            return f'"{target}" goes up; write the path from src/ or include/'
        if target.startswith("tracefire/") or target in self.value_types:
            name = target[len("tracefire/"):] if target.startswith("tracefire/") else target
            if room == "include" or "include" in rules["uses"]:
                return None
            if "value_types" in rules["uses"] and name in self.value_types:
                return None
            return (f"{room} may include only the value types of include/tracefire "
                    f"({', '.join(sorted(self.value_types))})")
        other = self.room_of_include(target)
        if other is not None:
            if other == room or other in rules["uses"]:
                return None
            return f"{room} may not include {other}; it may include: {', '.join(rules['uses']) or 'itself'}"
        group = self.external_of(target)
        if group is not None:
            if group in rules.get("external", []):
                return None
            return f"{room} may not use {group} (<{target}>); rooms.json lists who may"
        if kind == '"':
            return f'"{target}" is in no room of rooms.json'
        return None


def check_table(table):
    """The table itself: known names, no cycle, backends never each other."""
    for name, room in table.rooms.items():
        for used in room["uses"]:
            if used != "value_types" and used not in table.rooms:
                yield f"room {name} uses {used}, which is no room"
        for group in room.get("external", []):
            if group not in table.external:
                yield f"room {name} uses the group {group}, which 'external' does not describe"
    done, path = set(), []

    def visit(name):
        if name in path:
            return " -> ".join(path[path.index(name):] + [name])
        if name in done or name not in table.rooms:
            return None
        path.append(name)
        for used in table.rooms[name]["uses"]:
            if found := visit(used):
                return found
        path.pop()
        done.add(name)
        return None

    for name in table.rooms:
        if cycle := visit(name):
            yield f"rooms include each other in a circle: {cycle}"
            return
    backends = {f"backends/{b}" for b in ("ref", "cpu", "cuda", "null")}
    for name in sorted(backends & table.rooms.keys()):
        for other in sorted((backends - {name}) & set(table.rooms[name]["uses"])):
            yield f"{name} uses {other}: a backend never includes another"


def main():
    root = _lint.root_from_arguments()
    table_path = "scripts/lint/rooms.json"
    table = Table(json.loads((root / table_path).read_text()))
    findings = [(table_path, 1, message) for message in check_table(table)]
    for path in _lint.project_files(root):
        if path.suffix not in _lint.CODE or str(path).startswith(TEST_ROOMS):
            continue
        beside = {f.name for f in (root / path).parent.glob("*.cuh")} if path.suffix in (".cu", ".cuh") else ()
        room = table.room_of(str(path))
        if room is None:
            if str(path).startswith(("src/", "include/")):
                findings.append((path, 1, "lies in no room of scripts/lint/rooms.json; add the room, or move it"))
            continue
        text = _lint.read_text(root, path) or ""
        for match in INCLUDE.finditer(text):
            if match[2] in beside:
                continue  # NVRTC compiles the ready kernels with their own folder as the only root
            if message := table.refusal(room, match[1], match[2]):
                findings.append((path, text.count("\n", 0, match.start()) + 1, message))
    return _lint.finish(findings)


if __name__ == "__main__":
    sys.exit(main())
