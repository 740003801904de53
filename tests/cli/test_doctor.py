# SPDX-License-Identifier: Apache-2.0
"""`tracefire doctor`: the doctor inside the one program answers as the separate program does."""

import json
import re
import subprocess

import pytest

from conftest import BUILD, PROGRAM, ROOT, SCHEMAS, tree_of
from json_schema import errors

ALONE = BUILD / "bin" / "tracefire-doctor"
STATUS = {"gpu-ok": 0, "gpu-broken": 1, "unknown": 2, "gpu-degraded": 3, "cpu-only": 4}


@pytest.fixture
def tree(tmp_path):
    return lambda name: tree_of(name, tmp_path / name)


@pytest.mark.parametrize("name", ["fx01-ok", "fx12-driver-too-old", "fx35-throttle", "fx04-tensorflow-cpu"])
def test_each_verdict_has_its_status_and_form(cli, tree, name):
    root = tree(name)
    done = cli("doctor", "--root", root, "--json", status=None)
    document = json.loads(done.out)
    assert not list(errors(document, SCHEMAS["tracefire.doctor/1"]))
    assert done.returncode == STATUS[document["verdict"]] and done.err == ""
    text = cli("doctor", f"--root={root}", status=done.returncode)
    assert text.out.startswith(document["verdict"] + "\n" + document["summary"] + "\n")
    html = cli("doctor", "--root", root, "--html", status=done.returncode).out
    assert html.startswith("<!DOCTYPE html>") and "<script" not in html
    if ALONE.exists():
        alone = subprocess.run([ALONE, "--root", root, "--json"], capture_output=True, text=True, env=cli.env)
        assert (alone.stdout, alone.returncode) == (done.out, done.returncode)


def test_arguments_reach_the_doctor_as_they_are(cli, tree, tmp_path):
    root = tree("fx01-ok")
    report = tmp_path / "report.json"
    done = cli("--color", "never", "doctor", "--root", root, "--set", "threads=2", "--env", "CUDA_VISIBLE_DEVICES=-1",
               "--output", report, "--json", status=4)  # fmt: skip
    assert json.loads(report.read_text()) == json.loads(done.out)
    assert "cuda-visible-devices" in done.out and report.stat().st_mode & 0o777 == 0o600
    log = b"x\n" * 3
    assert cli("doctor", "--root", root, "--log", "-", input=log).out.startswith("gpu-ok")


def test_plan(cli, tree):
    done = cli("doctor", "plan", "--framework", "tensorflow==2.20", "--root", tree("fx01-ok"), "--json", status=None)
    document = json.loads(done.out)
    assert document["schema"] == "tracefire.doctor/1" and "TensorFlow 2.20" in document["summary"]


@pytest.mark.parametrize(
    "words, said",
    [
        (["--bogus"], "--bogus"),
        (["plan"], "--framework"),
        (["--root", "missing"], "missing cannot be opened"),
        (["--framework", "caffe"], "no framework"),
        (["--log", "missing"], "cannot be read"),
        (["--color", "red"], "auto|always|never"),
        (["--set", "threads=lots"], "threads"),
    ],
)
def test_wrong_arguments_are_answered_in_the_form_that_was_asked_for(cli, tmp_path, words, said):
    done = cli("doctor", *words, "--json", status=2, cwd=tmp_path)
    document = json.loads(done.out)
    assert not list(errors(document, SCHEMAS["tracefire.doctor/1"]))
    assert document["verdict"] == "unknown" and said in document["summary"]
    done = cli("doctor", *words, status=2, cwd=tmp_path)
    assert done.out == "" and said in done.err


def test_a_wrong_settings_file_does_not_stop_it(cli, tree):
    cli.config("nonsense\n")
    done = cli("doctor", "--root", tree("fx01-ok"), "--json")
    assert json.loads(done.out)["verdict"] == "gpu-ok"
    assert done.err.startswith("tracefire: warning: [TF-E0503] ")


def test_the_pages_name_every_option_that_the_doctor_reads(cli):
    """The doctor reads its words itself; the pages are made from another list."""
    source = ROOT / "src/tools/doctor/options.cpp"
    if not source.exists():
        pytest.skip("the sources are not here")
    read = set(re.findall(r'name == "(--[a-z-]+)"', source.read_text()))
    told = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", cli("doctor", "--help").out.split("options of every command")[0]))
    assert len(read) > 8 and read == told


def test_it_needs_nothing_but_the_program(tree):
    """No PATH, no home, no Python; the machine itself, without trials."""
    done = subprocess.run(
        [PROGRAM, "doctor", "--json", "--root", tree("fx01-ok")], capture_output=True, timeout=60, env={}, cwd="/"
    )
    assert done.returncode == 0 and json.loads(done.stdout)["verdict"] == "gpu-ok"


def test_diff(cli, tree, tmp_path):
    here, there = tree("fx01-ok"), tree("fx12-driver-too-old")
    report = tmp_path / "there.json"
    report.write_text(cli("doctor", "--root", there, "--json", status=None).out)
    cases = (((here, here), 0), ((here, there), 1), ((here, report), 1), ((here,), 2), ((here, "/none"), 2))
    for words, status in cases:
        done = cli("doctor", "diff", *words, "--json", status=status)
        assert not list(errors(json.loads(done.out), SCHEMAS["tracefire.doctor.diff/1"]))
    told = json.loads(cli("doctor", "diff", here, report, "--json", status=1).out)
    names = {one["name"]: one["effect"] for one in told["differences"]}
    assert names["driver"] == "speed"
    assert "driver: " in cli("doctor", "diff", here, there, status=1).out
