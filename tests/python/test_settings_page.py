# SPDX-License-Identifier: Apache-2.0
"""docs/settings.md is what schema/settings.json says."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import generate_settings_page  # noqa: E402


def test_the_page_is_current():
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert page == generate_settings_page.page(generate_settings_page.load()), \
        "run `scripts/generate_settings_page.py > docs/settings.md` and commit it"


def test_every_setting_has_name_variable_default_values_and_meaning():
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    for setting in generate_settings_page.load()["settings"]:
        (row,) = re.findall(rf"^\| `{setting['name']}` \| (.*) \|$", page, re.M)
        variable, default, values, meaning = row.split(" | ")
        assert variable == f"`TRACEFIRE_{setting['name'].upper()}`"
        assert default and values and meaning == setting["doc"]


def test_every_variable_that_the_sources_read_is_on_the_page():
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    told = re.findall(r"`(TRACEFIRE_[A-Z_]+\*?)`", page)
    for folder in ("src", "python", "include"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix not in (".cpp", ".h", ".py"):
                continue
            for name in re.findall(r"(?:getenv\(|environ\.get\(|environ\[)[\"'](TRACEFIRE_\w+)", path.read_text(encoding="utf-8")):
                known = [t for t in told if t == name or (t.endswith("*") and name.startswith(t[:-1]))]
                assert known, f"{path.relative_to(ROOT)} reads {name}, which schema/settings.json does not name"
