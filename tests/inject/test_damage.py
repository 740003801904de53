# SPDX-License-Identifier: Apache-2.0
"""Records that are cut, changed or lost: the evidence is incomplete, says why, and meets no --require on-gpu."""
import json
import pathlib
import random
import shutil
import subprocess

import pytest

from prove_tools import PROVE, Sandbox


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Records of a program with two children, both on a GPU; {file name: bytes}."""
    folder = tmp_path_factory.mktemp("whole")
    box = Sandbox(folder)
    box.prove("--quiet", "--out", folder / "out", "--", box.program, "children", "20")
    files = {p.name: p.read_bytes() for p in (folder / "out").iterdir()
             if p.suffix in (".sum", ".win", ".txt") and p.name != "report.txt" or p.name == "session.json"}
    assert len(files) == 6, sorted(files)
    return files


def look(tmp_path, files, *words):
    """The status and the report of --require on-gpu on these files."""
    folder = tmp_path / "records"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    done = subprocess.run([str(PROVE), "--json", "--quiet", *words, "--require", "on-gpu", "--from", str(folder)],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 3), done.stderr
    return done.returncode, json.loads(done.stdout)


def is_refused(tmp_path, files, case):
    status, report = look(tmp_path, files)
    assert status == 3, case
    assert report["complete"] is False and report["incomplete"], case
    return report


def one(whole, ending, which=0):
    return sorted(name for name in whole if name.endswith(ending))[which]


def test_whole_records_are_complete(tmp_path, whole):
    status, report = look(tmp_path, whole)
    assert status == 0 and report["verdict"] == "on-gpu"
    assert report["complete"] is True and report["incomplete"] == []


@pytest.mark.parametrize("ending", [".sum", ".win", ".txt"])
def test_cut_at_every_hundredth(tmp_path, whole, ending):
    name = one(whole, ending)
    data = whole[name]
    for part in range(100):
        is_refused(tmp_path, {**whole, name: data[:len(data) * part // 100]}, (name, part))


@pytest.mark.parametrize("ending", [".sum", ".win", ".txt"])
def test_changed_bytes(tmp_path, whole, ending):
    name = one(whole, ending)
    data = whole[name]
    # Every byte of the heads, where no check sum lies before, and others all over the file.
    places = sorted(set(range(min(40, len(data)))) | set(random.Random(1).sample(range(len(data)), min(60, len(data)))))
    for place in places:
        changed = bytearray(data)
        changed[place] ^= 1 << place % 8
        is_refused(tmp_path, {**whole, name: bytes(changed)}, (name, place))


def test_lost_files_of_one_child(tmp_path, whole):
    trace, windows = one(whole, ".sum"), one(whole, ".win")
    for lost in ([trace], [windows], [trace, windows]):
        report = is_refused(tmp_path, {n: d for n, d in whole.items() if n not in lost}, lost)
        assert report["verdict"] == "on-gpu"  # the other child was there for certain
    assert any(trace in reason and "missing" in reason for reason in report["incomplete"])


def test_all_records_lost(tmp_path, whole):
    kept = {n: d for n, d in whole.items() if not n.endswith((".sum", ".win"))}
    report = is_refused(tmp_path, kept, "all")
    assert report["verdict"] == "unknown"
    garbled = {n: b"nonsense" if n.endswith((".sum", ".win")) else d for n, d in whole.items()}
    assert is_refused(tmp_path, garbled, "garbled")["verdict"] == "unknown"


def test_windows_of_another_process(tmp_path, whole):
    first, second = one(whole, ".win", 0), one(whole, ".win", 1)
    assert whole[first] != whole[second]
    is_refused(tmp_path, {**whole, first: whole[second][:len(whole[second]) // 2]}, "mixed")


@pytest.mark.parametrize("command", [["children", "20"], ["training", "20"]])
def test_dropped_records(tmp_path, command):
    box = Sandbox(tmp_path)
    done = box.prove("--json", "--require", "on-gpu", "--", box.program, *command, TF_FAKE_CUPTI_DROPS="1")
    assert done.returncode == 3, done.stderr
    report = json.loads(done.stdout)
    assert report["verdict"] == "on-gpu" and report["complete"] is False
    assert any("dropped by CUPTI" in reason for reason in report["incomplete"])
    assert "the evidence is incomplete" in done.stderr


def test_a_killed_program_is_incomplete(tmp_path):
    box = Sandbox(tmp_path)
    report = json.loads(box.prove("--json", "--", box.program, "kill9", "20").stdout)
    assert report["complete"] is False
    assert any("ended without its last records" in reason for reason in report["incomplete"])
