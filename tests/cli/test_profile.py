# SPDX-License-Identifier: Apache-2.0
"""`tracefire profile`: runs a program, keeps its streams and status, and reports what it recorded."""

import json
import re
import signal
import stat

import pytest

from conftest import PROGRAM, SCHEMAS
from json_schema import errors

DEMO = [str(PROGRAM), "demo", "--epochs", "2"]


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder of reports about a short demo, and what the command printed."""
    import pathlib

    from conftest import Cli

    home = tmp_path_factory.mktemp("home")
    folder = tmp_path_factory.mktemp("out") / "profile"
    cli = Cli(pathlib.Path(home))
    done = cli("profile", "--out", str(folder), "--", *DEMO, status=1)  # two epochs are too few
    return folder, done


def test_the_program_keeps_its_output_and_the_report_goes_to_stderr(kept):
    _, done = kept
    assert re.search(r"^accuracy 0\.\d{4}\nverdict \S+\n\Z", done.out, re.M)
    assert "operations" not in done.out
    for word in ("operations", "kernels", "programs", "memory", "shuffle", "matmul", "train_step/epoch"):
        assert word in done.err
    assert re.search(r"^kernels were not compared with CUPTI \(not applicable\)|^confirmed by CUPTI", done.err, re.M)


def test_out_keeps_text_json_html_and_trace(kept):
    folder, _ = kept
    for name in ("profile.txt", "profile.json", "profile.html", "trace.json"):
        assert (folder / name).stat().st_size > 500
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    page = (folder / "profile.html").read_text()
    assert page.count("<svg") >= 2 and "<script" not in page and "http" not in page.replace("http-equiv", "")
    names = {event["name"] for event in json.loads((folder / "trace.json").read_text())["traceEvents"]}
    assert "matmul" in names and any(name.startswith("train_step/epoch") for name in names)
    profile = json.loads((folder / "profile.json").read_text())
    shares = [row["share"] for row in profile["operations"] if row["device"] == "/CPU:0"]
    assert sum(shares) == pytest.approx(1) or not shares
    assert {row["runs"] for row in profile["operations"] if row["op"] == "adam_update"} == {2 * 23 * 6}


def test_json_is_one_document(cli):
    quiet = ["sh", "-c", f"{PROGRAM} demo --epochs 1 > demo.out 2>&1; exit 7"]
    done = cli("profile", "--quiet", "--json", "--", *quiet, status=7, cwd=cli.home)
    document = json.loads(done.out)
    assert not list(errors(document, SCHEMAS["tracefire.profile/1"]))
    assert document["exit_status"] == 7 and done.err == ""
    (process,) = document["processes"]
    assert process["programs"] and process["kernels"]


def test_each_process_has_a_profile(cli, tmp_path):
    both = ["sh", "-c", f"{PROGRAM} demo --epochs 1 > /dev/null 2>&1 & {PROGRAM} devices > /dev/null; wait"]
    done = cli("profile", "--out", str(tmp_path / "out"), "--json", "--quiet", "--", *both)
    pids = [process["pid"] for process in json.loads(done.out)["processes"]]
    assert len(pids) == 2
    assert {path.name for path in (tmp_path / "out" / "processes").iterdir()} == set(map(str, pids))
    # The one that worked is the report.
    assert json.loads((tmp_path / "out" / "profile.json").read_text())["pid"] == pids[0]


@pytest.mark.parametrize(
    "words, status",
    [(["sh", "-c", "exit 3"], 3), (["sh", "-c", "kill -TERM $$"], 128 + signal.SIGTERM), (["true"], 0)],
)
def test_programs_without_records_are_told_of_prove(cli, words, status):
    done = cli("profile", "--", *words, status=status)
    assert "no process left a profile" in done.err and "tracefire prove -- PROGRAM" in done.err
    assert done.out == ""


def test_what_cannot_be_run(cli, tmp_path):
    assert "No such file" in cli("profile", "--", "/no/such/program", status=127).err
    (tmp_path / "text").write_text("no program")
    assert "Permission denied" in cli("profile", "--", str(tmp_path / "text"), status=126).err
    assert "no program was given" in cli("profile", status=2).err
    full = cli("profile", "--out", str(tmp_path), "--", "true", status=None)
    assert full.returncode != 0 and "not empty" in full.err


def test_secrets_of_the_command_are_not_kept(cli, tmp_path):
    words = ["sh", "-c", f"{PROGRAM} devices > /dev/null", "--token=abcdef0123456789"]
    done = cli("profile", "--out", str(tmp_path / "out"), "--json", "--", *words)
    assert "abcdef0123456789" not in done.out + done.err
    for path in (tmp_path / "out").rglob("*"):
        assert path.is_dir() or b"abcdef0123456789" not in path.read_bytes(), path


def test_the_demos_report(cli, tmp_path):
    page = tmp_path / "demo.html"
    done = cli("demo", "--epochs", "40", "--json", str(tmp_path / "demo.json"), "--html", str(page))
    assert re.search(r"^accuracy 0\.\d{4}\nverdict \S+\n\Z", done.out, re.M)
    result = json.loads((tmp_path / "demo.json").read_text())
    assert not list(errors(result, SCHEMAS["tracefire.demo/1"]))
    assert len(result["history"]) == 40 and result["history"][0]["loss"] > result["history"][-1]["loss"]
    html = page.read_text()
    assert "<script" not in html and "default-src 'none'" in html
    for text in (result["verdict"], f"{result['accuracy']:.4f}", "Where every step ran", "Manifest", "onednn_matmul"
                 if result["verdict"] == "on-cpu" else "cublaslt_matmul", "CUPTI", "Memory of"):
        assert text in html, text
    if result["why_no_gpu"]:
        assert "not applicable" in html and "why no GPU is used" in html


def test_a_report_needs_a_result(cli, tmp_path):
    page = tmp_path / "demo.html"
    done = cli("demo", "--html", str(page), "--", "sh", "-c", "exit 5", status=5)
    assert "left no result" in done.err and not page.exists()
    bad = ["sh", "-c", 'echo "{}" > "$2"', "sh"]
    assert "tracefire.demo/1" in cli("demo", "--html", str(page), "--", *bad, status=1).err
    assert "without --html" in cli("demo", "--", "true", status=2).err
