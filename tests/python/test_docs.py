# SPDX-License-Identifier: Apache-2.0
"""Every page can be found, every link leads somewhere, decisions have their date."""
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
LINKING = [ROOT / "README.md", ROOT / "bench" / "README.md", *PAGES]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_readme_and_map_name_every_page(page):
    assert f"(docs/{page.name})" in (ROOT / "README.md").read_text(encoding="utf-8")
    # The map names itself as "this map".
    assert page.name == "layout.md" or f"`docs/{page.name}`" in (ROOT / "docs/layout.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", LINKING, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    text = re.sub(r"^\s*```.*?^\s*```$|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if not re.match(r"[a-z]+://", target):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "adr").glob("*.md")), ids=lambda p: p.name)
def test_a_decision_has_number_status_and_date(page):
    title, _, status, *_ = page.read_text(encoding="utf-8").splitlines()
    assert title.startswith(f"# {int(page.name[:4])}. ")
    assert re.fullmatch(r"Status: (accepted|replaced by [1-9]\d*), \d{4}-\d\d-\d\d\.", status)


def test_every_measurement_is_named():
    text = (ROOT / "bench" / "README.md").read_text(encoding="utf-8")
    for path in (ROOT / "bench").iterdir():
        if path.name not in ("README.md", "results", "__pycache__"):
            assert f"`{path.name}" in text, path.name
