# SPDX-License-Identifier: Apache-2.0
"""Streams, terminals and interrupts, for every command and for the separate programs: what cannot
be written is an error and says so, a reader that goes away is none, odd bytes steer no terminal."""

import json
import os
import signal
import subprocess
import time

import pytest

from conftest import BUILD, PROGRAM, tree_of
from test_commands import on_a_terminal

BIN = BUILD / "bin"
# What writes to stdout, by name: program and words; TREE is a machine's files, OUT a new folder.
WRITERS = {
    "check": (PROGRAM, ["check", "--no-tests", "--json", "--quiet", "true"]),
    "completion": (PROGRAM, ["completion", "bash"]),
    "devices": (PROGRAM, ["devices", "--json"]),
    "doctor": (PROGRAM, ["doctor", "--root", "TREE"]),
    "doctor-json": (PROGRAM, ["doctor", "--root", "TREE", "--json"]),
    "explain": (PROGRAM, ["explain"]),
    "help": (PROGRAM, ["help"]),
    "man": (PROGRAM, ["--man"]),
    "manifest": (PROGRAM, ["manifest"]),
    "monitor": (PROGRAM, ["monitor", "--once"]),
    "monitor-csv": (PROGRAM, ["monitor", "--query-gpu=name", "--format=csv"]),
    "prove": (PROGRAM, ["prove", "--json", "--quiet", "true"]),
    "prove-env": (PROGRAM, ["prove", "--print-env", "--out", "OUT"]),
    "settings": (PROGRAM, ["settings"]),
    "version": (PROGRAM, ["version"]),
    "alone-doctor": (BIN / "tracefire-doctor", ["--root", "TREE"]),
    "alone-monitor": (BIN / "tracefire-monitor", ["--once"]),
    "alone-prove": (BIN / "tracefire-prove", ["--json", "--quiet", "--", "true"]),
    "tools-manifest": (BIN / "tracefire-tools", ["manifest"]),
    "tools-check": (BIN / "tracefire-tools", ["check", "--no-tests", "--json", "--quiet", "true"]),
}


@pytest.fixture(params=WRITERS)
def writer(request, cli, tmp_path):
    """Starts one of them with the streams that are given; gives the process once it has ended."""
    program, words = WRITERS[request.param]
    if not program.exists():
        pytest.skip(f"{program} is not built")
    tree = tree_of("fx01-ok", tmp_path / "tree")
    words = [{"TREE": str(tree), "OUT": str(tmp_path / "out")}.get(word, word) for word in words]
    env = {**cli.env, **cli.nvml}

    def run(shell=None, **options):
        command = [program, *words]
        if shell:
            command = ["bash", "-c", shell, "bash", *map(str, command)]
        return subprocess.run(command, env=env, stderr=subprocess.PIPE, timeout=60, **options)

    return run


def test_it_writes_something(writer):
    assert writer(stdout=subprocess.PIPE).stdout


def test_a_full_disk_is_said(writer):
    with open("/dev/full", "wb") as full:
        done = writer(stdout=full)
    assert done.returncode == 1, done.stderr
    assert b"standard output cannot be written" in done.stderr or b"stdout cannot be written" in done.stderr


def test_a_closed_stdout_is_said(writer):
    done = writer(shell='"$@" >&-')
    assert done.returncode == 1, done.stderr
    assert b"cannot be written" in done.stderr


@pytest.mark.parametrize("ignored", [False, True])
def test_a_reader_that_went_away_is_no_news(writer, ignored):
    reader, pipe = os.pipe()
    os.close(reader)
    done = writer(stdout=pipe, restore_signals=not ignored)
    os.close(pipe)
    assert done.returncode in ((141, 1) if ignored else (-signal.SIGPIPE, 141))
    assert b"Traceback" not in done.stderr and b"terminate called" not in done.stderr


def test_a_closed_stderr_changes_nothing(writer):
    done = writer(shell='"$@" 2>&-', stdout=subprocess.PIPE)
    assert done.stdout and done.returncode == writer(stdout=subprocess.PIPE).returncode


ODD = [b"\xff\xfe", b"\x1b[31mred", b"a\nb", b"\xc2\x9b31m", b"--\xff", b"-\x1b"]


@pytest.mark.parametrize("word", ODD)
@pytest.mark.parametrize(
    "program, words",
    [
        (PROGRAM, ["doctor"]),
        (PROGRAM, ["doctor", "--root"]),
        (PROGRAM, ["doctor", "--framework"]),
        (PROGRAM, ["monitor"]),
        (PROGRAM, ["monitor", "--once", "--gpus"]),
        (PROGRAM, ["prove", "--from"]),
        (PROGRAM, ["check", "--framework"]),
        (PROGRAM, ["manifest"]),
        (PROGRAM, ["demo", "--epochs"]),
        (PROGRAM, ["demo", "--json", "/nonexistent/x", "--seed"]),
        (BIN / "tracefire-doctor", []),
        (BIN / "tracefire-monitor", []),
        (BIN / "tracefire-prove", ["--from"]),
    ],
)
def test_odd_bytes_are_refused_and_steer_no_terminal(cli, program, words, word):
    if not program.exists():
        pytest.skip(f"{program} is not built")
    done = subprocess.run([program, *words, word], env=cli.env, capture_output=True, timeout=60)
    assert done.returncode in (1, 2), (done.returncode, done.stdout, done.stderr)
    said = done.stderr + done.stdout
    assert said and b"\x1b" not in said and b"\x9b" not in said and b"\xff" not in said


@pytest.mark.parametrize("program", ["tracefire-doctor", "tracefire-monitor", "tracefire-prove", "tracefire-tools"])
def test_the_separate_programs_help_and_refuse(cli, program):
    path = BIN / program
    if not path.exists():
        pytest.skip(f"{path} is not built")
    done = subprocess.run([path, "--help"], env=cli.env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == ""
    assert "usage:" in done.stdout
    assert "example" in done.stdout.lower() or program == "tracefire-doctor"  # `tracefire doctor --help` has them
    done = subprocess.run([path, "--bogus"], env=cli.env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stdout == "" and "--bogus" in done.stderr


def test_the_tools_alone_have_every_command_but_the_engines(cli):
    path = BIN / "tracefire-tools"
    if not path.exists():
        pytest.skip(f"{path} is not built")
    for command in ("check", "doctor", "manifest", "monitor", "prove", "settings", "version"):
        done = subprocess.run([path, command, "--help"], env=cli.env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and done.stdout.startswith(f"usage: tracefire {command}")
    done = subprocess.run([path, "manifest"], env=cli.env, capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout)["schema"] == "tracefire.manifest/1"


@pytest.mark.parametrize("columns", [20, 40])
@pytest.mark.parametrize("command", ["check", "demo", "doctor", "manifest", "monitor", "prove", "settings", "version"])
def test_help_on_narrow_terminals(cli, command, columns):
    out = on_a_terminal(cli, [command, "--help", "--color", "never"], columns)
    text = out.split("\nexamples:")[0]
    assert "usage:" in text and all(word in text for word in ("--help", "--color"))
    # Usage, headings and terms keep their line; prose is broken.
    prose = [line for line in text.splitlines()[1:] if not line.startswith("  ") and not line.endswith(":")]
    assert max(map(len, prose), default=0) <= columns


@pytest.mark.parametrize(
    "words",
    [["monitor", "--once", "--json"], ["doctor", "--json", "--root", "/"], ["check", "--no-tests", "--json", "--quiet", "true"]],
)
@pytest.mark.parametrize("env", [{"TERM": "dumb"}, {"NO_COLOR": "1"}, {"TERM": ""}, {"LC_ALL": "C"}, {"COLUMNS": "-3"}])
def test_json_is_the_same_whatever_the_terminal(cli, words, env):
    out = cli(*words, status=None, env={**cli.nvml, **env}).out
    assert "\x1b" not in out and json.loads(out)["schema"]


@pytest.mark.parametrize(
    "words", [["monitor"], ["monitor", "--log", "LOG", "--every", "1s"], ["check", "--no-tests", "--", "sleep", "300"], ["prove", "--quiet", "sleep", "300"]]
)  # fmt: skip
def test_ctrl_c_ends_what_runs_long(cli, words, tmp_path):
    """SIGINT to the group, as a terminal sends it."""
    words = [str(tmp_path / "log") if word == "LOG" else word for word in words]
    process = subprocess.Popen(
        [PROGRAM, *words], env={**cli.env, **cli.nvml}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    time.sleep(2.5 if words[0] == "check" else 1)
    if process.poll() is not None:  # a live view needs a terminal, and says so
        assert words == ["monitor"] and process.returncode in (0, 1, 2)
        return
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode in (0, 130, -signal.SIGINT), (process.returncode, err)
    assert b"terminate called" not in err
