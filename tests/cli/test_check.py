# SPDX-License-Identifier: Apache-2.0
"""`tracefire check`: three steps on one page, with and without a program, with and without a GPU."""

import html.parser
import json
import os
import re
import stat

import pytest

from conftest import ROOT, SCHEMAS
from json_schema import errors

FAST = "--no-tests"  # neither trials of the GPU nor the product


def test_without_a_program_the_page_is_the_data(cli):
    # Named, so that both answers are about one environment however long the disk takes.
    cli.env["VIRTUAL_ENV"] = str(ROOT / ".venv")
    done = cli("check", status=None)
    assert done.returncode in (0, 1, 3, 4)
    see, observe, monitor = re.findall(r"^(\d  .*)$", done.out, re.M)
    assert see.startswith("1  See: ") and observe.startswith("2  Observe: ") and monitor == "3  Monitor"
    assert re.search(r"Tracefire \d\S*: [\d.e+]+ TFLOP/s on /[GC]PU:0", done.out)
    assert "Executing op MatMul in device /job:localhost/replica:0/task:0/device:" in " ".join(done.out.split())
    assert [line[:6] for line in done.err.splitlines()] == ["1 of 3", "2 of 3"]
    assert cli("doctor", "--no-tests", status=None).returncode == done.returncode


def test_the_program_keeps_its_streams_and_its_status(cli, tmp_path):
    done = cli("check", FAST, "--", "sh", "-c", "cat; exit 7", status=7, input=b"in\n")
    assert done.out == "in\n"
    assert "3  Monitor: " in done.err and "It ended with status 7." in done.err
    assert cli("check", FAST, "--quiet", "--", "sh", "-c", "kill -9 $$", status=137).err == ""
    assert cli("check", FAST, "--", tmp_path / "missing" / "program", status=127).out == ""
    assert cli("check", FAST, "--", "/", status=126).out == ""


def test_the_document(cli):
    done = cli("check", FAST, "--json", "--quiet", "--", "true")
    document = json.loads(done.out)
    assert not list(errors(document, SCHEMAS["tracefire.check/1"]))
    assert not list(errors(document["doctor"], SCHEMAS["tracefire.doctor/1"]))
    assert not list(errors(document["proof"], SCHEMAS["tracefire.prove/1"]))
    assert not list(errors(document["manifest"], SCHEMAS["tracefire.manifest/1"]))
    assert document["command"] == ["true"] and document["products"] == []
    alone = cli("check", FAST, "--json", status=None)
    document = json.loads(alone.out)
    assert document["proof"] is None and document["exit_status"] == alone.returncode


def test_a_missed_verdict(cli):
    done = cli("check", FAST, "--require", "on-gpu", "--", "true", status=3)
    assert "It ended with status 0. The verdict that was required was missed." in " ".join(done.err.split())


def test_secrets_stay_where_they_are(cli, tmp_path):
    page = tmp_path / "page.html"
    done = cli("check", FAST, "--json", "--html", page, "--", "true", "--token", "hf_abcdefghijklmnop")
    assert "hf_abc" not in done.out + done.err + page.read_text()


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_data(self, data):
        self.text += data


def test_the_html_page_is_one_strict_file_of_its_owner(cli, tmp_path):
    path = tmp_path / "page.html"
    os.umask(0)
    evil = "<script>alert(1)</script>\x1b[31m\"'&"
    cli("check", FAST, "--quiet", "--html", path, "--", "sh", "-c", ":", evil)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    page = Page(path.read_text())
    assert "script" not in page.tags and "img" not in page.tags and "link" not in page.tags
    assert not [name for name, _ in page.attributes if name.startswith("on") or name in ("src", "href")]
    (policy,) = [value for name, value in page.attributes if name == "content" and "default-src" in value]
    assert "default-src 'none'" in policy
    assert "<script>alert(1)</script>\\x1b[31m\"'&" in page.text and "\x1b" not in page.text
    assert "Executing" not in page.text  # no product was made


def test_where_the_page_cannot_be_written_nothing_is_run(cli, tmp_path):
    mark, page = tmp_path / "ran", tmp_path / "missing" / "page.html"
    done = cli("check", FAST, "--html", page, "--", "touch", mark, status=2)
    assert f"--html: the file {page} cannot be written" in done.err
    assert not mark.exists()


def test_the_gpus_are_watched_while_the_program_runs(cli, tmp_path):
    path = tmp_path / "page.html"
    words = [FAST, "--json", "--quiet", "--html", path, "--", "sleep", "4"]
    document = json.loads(cli("check", *words, env=cli.nvml).out)
    assert not list(errors(document, SCHEMAS["tracefire.check/1"]))
    assert document["monitor_problem"] is None
    (gpu, *_) = document["gpus"]
    assert gpu["name"].startswith("NVIDIA") and gpu["looks"] >= 3
    assert 0 <= gpu["busy_share"] <= 1 and gpu["grade"] in ("healthy", "fair", "low", "idle")
    limits = {row["name"]: row["value"] for row in json.loads((ROOT / "schema/health.json").read_text())["limits"]}
    by_scale = (
        "healthy" if gpu["busy_share"] >= limits["busy_healthy"]
        else "fair" if gpu["busy_share"] >= limits["busy_low"]
        else "low" if gpu["busy_share"] >= limits["idle"] else "idle"
    )  # fmt: skip
    assert gpu["grade"] == by_scale
    assert 0 < gpu["memory_used_bytes"] <= gpu["memory_total_bytes"] and gpu["power_watts"] > 0
    assert "svg" in Page(path.read_text()).tags





@pytest.mark.parametrize("columns", ["20", "40"])
def test_narrow_terminals(cli, columns):
    from test_commands import on_a_terminal

    out = on_a_terminal(cli, ["check", FAST, "--color", "never"], int(columns))
    assert "1  See" in out
    # Messages are one line, and so is a fix, whose commands are copied; paths stay whole.
    page = [line for line in out.splitlines() if not line.startswith("1 of 3") and "Fix: " not in line]
    page = [line for line in page if " " in line.strip()]
    assert max(map(len, page)) <= max(int(columns), 24)
