#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/settings.md from schema/settings.json.

usage: generate_settings_page.py > docs/settings.md
"""
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIRST = """# Settings

Made from `schema/settings.json` by `scripts/generate_settings_page.py`; do not edit. `tracefire settings` prints the same table
with the values that are in use and who gave them.

A setting gets its value from the first of these that gives one:

1. the running program: `tracefire::set_...` (`tracefire/config.h`), `tracefire.config` in Python;
2. the flag of a command: `tracefire demo --set threads=4`;
3. the environment variable: `TRACEFIRE_THREADS=4`;
4. the user's settings file, `$XDG_CONFIG_HOME/tracefire/config` (`~/.config/tracefire/config` where that variable is not set);
5. the file for every user, `/etc/tracefire/config`;
6. the default.

A settings file has one `name = value` a line; lines that begin with `#` are comments. A flag is `true` or `false` (`1`, `0`, `on`, `off`,
`yes` and `no` mean the same). A wrong name or value is an error that names the file and line or the variable, raised where work
begins (TF-E0503).

| name in files and `--set` | environment variable | default | values | meaning |
| --- | --- | --- | --- | --- |
"""
OTHERS = """
## Other variables

They begin with `TRACEFIRE_` too but are not settings. All but `TRACEFIRE_PROVE_*` and `TRACEFIRE_INJECT_LIBRARY` are for building
and testing.

| environment variable | meaning |
| --- | --- |
"""


def number(value):
    return f"{value:g}" if isinstance(value, float) else str(value)


def values(setting):
    if setting["type"] == "flag":
        return "`true`, `false`"
    if setting["type"] == "choice":
        return ", ".join(f"`{value}`" for value in setting["values"])
    if setting["type"] == "text":
        return "text"
    kind = "a whole number" if setting["type"] == "integer" else "a number"
    if "max" in setting:
        kind += f" from {number(setting.get('min', 0))} to {number(setting['max'])}"
    elif "min" in setting:
        kind += f" of at least {number(setting['min'])}"
    return kind + (f", in {setting['unit']}" if "unit" in setting else "")


def default(setting):
    value = setting["default"]
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{number(value)}`" if value != "" else "empty"


def page(schema):
    rows = [f"| `{s['name']}` | `TRACEFIRE_{s['name'].upper()}` | {default(s)} | {values(s)} | {s['doc']} |"
            for s in schema["settings"]]
    others = [f"| `{o['name']}` | {o['doc']} |" for o in schema["other_variables"]]
    return FIRST + "\n".join(rows) + "\n" + OTHERS + "\n".join(others) + "\n"


def load():
    return json.loads((ROOT / "schema" / "settings.json").read_text(encoding="utf-8"))


if __name__ == "__main__":
    print(page(load()), end="")
