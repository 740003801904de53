# SPDX-License-Identifier: Apache-2.0
"""Commands that run a program: its exit status is not lost with what they cannot print."""

import pathlib
import subprocess

import pytest
from conftest import PROGRAM

RUNNERS = [["prove"], ["profile"], ["check", "--no-tests"]]
FULL = pathlib.Path("/dev/full")


def ended(command, stdout, json, program):
    words = [str(PROGRAM), *command, *(["--json"] if json else []), "--", *program]
    done = subprocess.run(words, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=300)
    return done.returncode, done.stderr


def ended_without_reader(command, program):
    """stdout is a pipe whose reader is gone before anything is printed."""
    words = [str(PROGRAM), *command, "--json", "--", *program]
    run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    run.stdout.close()
    return run.wait(timeout=300)


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full")
@pytest.mark.parametrize("command", RUNNERS, ids=" ".join)
def test_a_full_disk_costs_the_document_not_the_status(command):
    with FULL.open("w") as full:
        status, talk = ended(command, full, True, ["sh", "-c", "exit 7"])
        assert status == 7 and talk.count("standard output cannot be written") == 1
        status, talk = ended(command, full, True, ["true"])
        assert status == 1 and talk.count("standard output cannot be written") == 1
        assert ended(command, full, False, ["true"])[0] == 0  # nothing was to be printed there


@pytest.mark.parametrize("command", RUNNERS, ids=" ".join)
def test_a_reader_that_went_away_costs_the_document_not_the_status(command):
    assert ended_without_reader(command, ["sh", "-c", "exit 7"]) == 7
    assert ended_without_reader(command, ["true"]) == 141


def test_check_looks_the_program_up_first(tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("echo\n")
    for name, status, why in (
        (str(tmp_path / "none"), 127, "No such file or directory"),
        ("no-such-program-here", 127, "No such file or directory"),
        (str(plain), 126, "Permission denied"),
        (str(tmp_path), 126, "Permission denied"),
    ):
        got, talk = ended(["check"], subprocess.DEVNULL, False, [name])
        assert got == status and why in talk and "1 of 3" not in talk


@pytest.mark.parametrize("command", ["prove", "profile"])
def test_a_folder_in_use_is_wrong_usage(command, tmp_path):
    (tmp_path / "file").touch()
    got, talk = ended([command, "--out", str(tmp_path)], subprocess.DEVNULL, False, ["true"])
    assert got == 2 and "is not empty" in talk
