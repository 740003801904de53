# SPDX-License-Identifier: Apache-2.0
"""Every command and every program against every convention of the command line, by table."""

import json
import re
import subprocess

import pytest

from conftest import BUILD, SCHEMAS, tree_of
from json_schema import errors
from test_commands import COMMANDS, JSON_COMMANDS, on_a_terminal

BIN = BUILD / "bin"
ALONE = ["doctor", "monitor", "prove"]  # each is a program `tracefire-NAME` too
# A call of each command that prints text for people. TREE: a machine's files.
TEXT = {
    "check": ["--no-tests"],
    "demo": ["--help"],  # what it prints is plain by contract
    "devices": [],
    "doctor": ["--root", "TREE"],
    "explain": ["101"],
    "manifest": ["--help"],  # prints JSON alone
    "monitor": ["--once"],
    "profile": ["--help"],  # tables without styles
    "prove": ["true"],
    "settings": [],
    "version": [],
    "completion": ["--help"],  # prints a script
    "help": [],
}
# Outputs and modes of which one call can have one.
EXCLUSIVE = {
    "doctor": [["--json", "--html"], ["--html", "--json"], ["diff", "/", "/", "--html"], ["--log", "-", "--data", "-"], ["diff", "/", "/", "--log", "x"],
               ["diff", "/", "/", "--root", "/"]],
    "monitor": [
        ["--json", "--csv"],
        ["--json", "--metrics"],
        ["--csv", "--metrics"],
        ["--once", "--serve"],
        ["--once", "--log", "x"],
        ["--query-gpu=name", "--format=csv", "--json"],
        ["--query-gpu=name", "--format=csv", "--csv"],
        ["--query-gpu=name", "--format=csv", "--metrics"],
        ["--query-gpu=name", "--format=csv", "--serve"],
        ["--help-query-gpu", "--json"],
        ["--help-query-gpu", "--serve"],
        ["--metrics", "--serve"],
        ["--metrics", "--log", "x"],
        ["--json", "--log", "x"],
        ["--csv", "--serve"],
        ["--once", "--count", "1"],
        ["--once", "--duration", "1s"],
        ["--metrics", "--every", "2s"],
        ["--read-only", "--once"],
        ["--read-only", "--serve"],
    ],
    "prove": [
        ["--print-env", "--out", "x", "--json"],
        ["--from", "x", "--attach", "1"],
        ["--from", "x", "--", "true"],
        ["--attach", "1", "--", "true"],
        ["--print-env", "--out", "x", "--from", "y"],
        ["--seconds", "3", "--", "true"],
        ["--from", "x", "--beat", "100"],
        ["--from", "x", "--graphs", "node"],
        ["--attach", "1", "--limit", "0"],
        ["--print-env", "--out", "x", "--quiet"],
        ["--print-env", "--out", "x", "--require", "on-gpu"],
    ],
    "demo": [["--json", "x", "--html", "x"], ["--html", "x", "--seed", "1", "--", "true"]],
    "check": [["--require", "on-gpu"]],
    "": [["--version", "devices"], ["--write-manual", "x", "devices"], ["--version", "--write-manual", "x"]],
}
FLAGS_WITH_VALUES = [
    ["devices", "--json=1"],
    ["devices", "--json=false"],
    ["doctor", "--json=1"],
    ["doctor", "--no-tests=0"],
    ["monitor", "--once=1"],
    ["prove", "--quiet=yes", "--", "true"],
    ["check", "--help=1"],
    ["--version=1"],
]
# A document of each command that has JSON, where the exit status is not 0.
JSON_FAILURES = {
    "check": (["--no-tests", "--quiet", "--", "sh", "-c", "exit 7"], 7),
    "doctor": (["--root", "/nonexistent"], 2),
    "monitor": (["--once"], 1),  # no NVML
    "profile": (["--quiet", "--", "false"], 1),
    "prove": (["--quiet", "--", "sh", "-c", "exit 9"], 9),
}
EMPTY_NAMES = [
    ["prove", "--out", "", "--", "true"],
    ["prove", "--from", ""],
    ["profile", "--out", "", "--", "true"],
    ["doctor", "--root", ""],
    ["doctor", "--log="],
    ["doctor", "--output", ""],
    ["check", "--html", "", "--", "true"],
    ["demo", "--html", ""],
    ["demo", "--json", ""],
    ["monitor", "--log", ""],
]


def programs():
    """Each program that is built, with the words that its commands follow."""
    found = [(BIN / "tracefire", "tracefire"), (BIN / "tracefire-tools", "tracefire")]
    return found + [(BIN / f"tracefire-{name}", f"tracefire {name}") for name in ALONE]


def started(cli, program, *words, **more):
    if not program.exists():
        pytest.skip(f"{program} is not built")
    return subprocess.run([program, *words], env=cli.env, capture_output=True, text=True, timeout=60, **more)


def with_tree(words, tmp_path):
    return [str(tree_of("fx12-driver-too-old", tmp_path / "tree")) if word == "TREE" else word for word in words]


def test_the_tables_name_every_command():
    assert set(TEXT) == set(COMMANDS)
    assert set(EXCLUSIVE) - {""} <= set(COMMANDS) and set(JSON_FAILURES) <= set(JSON_COMMANDS)


# ---- programs ----


@pytest.mark.parametrize("program, called", programs(), ids=lambda p: getattr(p, "name", None))
def test_a_program_has_help_with_examples_a_manual_page_and_a_version(cli, program, called):
    done = started(cli, program, "--help")
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.startswith(f"usage: {called} ") and f"\nexamples:\n  {called.split()[0]}" in done.stdout
    done = started(cli, program, "--man")
    assert done.returncode == 0 and done.stderr == ""
    assert f'.TH "{called.upper().replace(" ", "-")}" "1"' in done.stdout and ".SH EXAMPLES" in done.stdout
    done = started(cli, program, "--version")
    assert done.returncode == 0 and re.fullmatch(r"tracefire \d+\.\d+\.\d+\n", done.stdout)


@pytest.mark.parametrize("program, called", programs(), ids=lambda p: getattr(p, "name", None))
def test_a_program_refuses_an_unknown_option(cli, program, called):
    done = started(cli, program, "--no-such-option")
    assert done.returncode == 2 and done.stdout == ""
    message, hint = done.stderr.splitlines()
    assert message.startswith("tracefire: error: [TF-E0502] ") and "--no-such-option" in message
    assert hint == f"tracefire: hint: `{called} --help` shows how it is used."


@pytest.mark.parametrize("name", ALONE)
def test_a_program_called_by_a_commands_name_is_that_command(cli, name, tmp_path):
    alone = BIN / f"tracefire-{name}"
    for words in (["--help"], ["--man"]):
        assert started(cli, alone, *words).stdout == started(cli, BIN / "tracefire-tools", name, *words).stdout
    link = tmp_path / f"tracefire-{name}"
    link.symlink_to(BIN / "tracefire-tools")
    assert started(cli, link, "--help").stdout.startswith(f"usage: tracefire {name}")
    other = tmp_path / "tracefire-nothing"
    other.symlink_to(BIN / "tracefire-tools")
    assert started(cli, other, "--help").stdout.startswith("usage: tracefire COMMAND")


# ---- commands ----


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_refuses_an_unknown_option(cli, command):
    done = cli(command, "--no-such-option", status=2)
    assert done.out == "" and len(done.err.splitlines()) == 2
    assert done.err.startswith("tracefire: error: [TF-E0502] ") and "--no-such-option" in done.err


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_a_manual_page(cli, command):
    page = cli(command, "--man").out
    assert f'.TH "TRACEFIRE-{command.upper()}" "1"' in page
    for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES"):
        assert f".SH {section}\n" in page, section


@pytest.mark.parametrize("command", TEXT)
def test_colours_are_for_who_asks(cli, command, tmp_path):
    words = [command, *with_tree(TEXT[command], tmp_path)]
    env = cli.nvml if command == "monitor" else {}

    def printed(*color, **variables):
        done = cli(command, *color, *words[1:], status=None, env={**env, **variables})
        return done.out + done.err

    assert "\x1b[" in printed("--color", "always", NO_COLOR="1", TERM="dumb")
    assert "\x1b" not in printed()
    assert "\x1b" not in printed("--color", "never")


@pytest.mark.parametrize("command", TEXT)
def test_a_terminal_gets_colours_unless_it_or_the_user_says_no(cli, command, tmp_path):
    words = [command, *with_tree(TEXT[command], tmp_path)]
    env = cli.nvml if command == "monitor" else {}
    assert "\x1b[" in on_a_terminal(cli, words, **env)
    assert "\x1b" not in on_a_terminal(cli, words, **env, NO_COLOR="1")
    assert "\x1b" not in on_a_terminal(cli, words, **env, TERM="dumb")


@pytest.mark.parametrize("words", [[c, *w] if c else w for c, all_ in EXCLUSIVE.items() for w in all_], ids=" ".join)
def test_outputs_that_exclude_each_other_are_refused(cli, words, tmp_path):
    done = cli(*words, status=2, cwd=tmp_path)
    assert "[TF-E0502]" in done.err or json.loads(done.out)["verdict"] == "unknown"
    assert not list(tmp_path.glob("x*")), "nothing is written"


@pytest.mark.parametrize("words", FLAGS_WITH_VALUES, ids=" ".join)
def test_a_flag_takes_no_value(cli, words):
    done = cli(*words, status=2)
    assert "takes no value" in done.err + done.out or "is no argument" in done.err


@pytest.mark.parametrize(
    "words, text",
    [
        (["prove", "--json", "report.json", "--", "true"], "'report.json' stands before --"),
        (["prove", "--html", "page.html", "--", "true"], "there is no option '--html'"),
        (["check", "page.html", "--", "true"], "'page.html' stands before --"),
        (["prove", "--quiet", "--", "true", "--", "x"], None),
        (["devices", "--", "x"], "the argument 'x' is one too many"),
        (["version", "--json", "--", "x"], "the argument 'x' is one too many"),
        (["devices", "--", "--json"], "the option '--json' must stand after devices and before --"),
        (["--json", "devices"], "the option '--json' must stand after devices and before --"),
        (["--jsn", "devices"], "there is no option '--jsn'. Did you mean '--json'?"),
    ],
)
def test_what_stands_before_the_dashes_is_an_option(cli, words, text):
    done = cli(*words, status=2 if text else 0)
    assert text is None or text in done.err


@pytest.mark.parametrize("words", EMPTY_NAMES, ids=" ".join)
def test_an_empty_name_is_refused(cli, words):
    """As a script's variable gives it that is not set: nothing runs with another meaning."""
    done = cli(*words, status=2)
    assert done.out == "" and "[TF-E0502]" in done.err


@pytest.mark.parametrize("command", JSON_FAILURES)
def test_json_is_one_document_whatever_the_exit_status(cli, command):
    words, status = JSON_FAILURES[command]
    done = cli(command, "--json", *words, status=None)
    document = json.loads(done.out)
    here = command == "monitor" and document["gpus"]  # a machine with a GPU: nothing fails
    assert done.returncode == (0 if here else status)
    assert not list(errors(document, SCHEMAS[document["schema"]]))


@pytest.mark.parametrize("status, tree", [(0, "fx01-ok"), (1, "fx12-driver-too-old"), (3, "fx35-throttle"), (4, "fx04-tensorflow-cpu")])
def test_the_doctors_json_at_each_status(cli, tmp_path, status, tree):
    done = cli("doctor", "--root", tree_of(tree, tmp_path / "tree"), "--json", status=status)
    assert json.loads(done.out)["schema"] == "tracefire.doctor/1" and done.err == ""


@pytest.mark.parametrize(
    "words, text",
    [
        (["explain", "-"], "TF-E0101"),
        (["doctor", "--root", "TREE", "--log", "-"], "x\n"),
        (["doctor", "--root", "TREE", "--data", "-"], "{}"),
        (["doctor", "diff", "-", "TREE"], "REPORT"),
    ],
)
def test_a_dash_is_standard_input(cli, words, text, tmp_path):
    words = with_tree(words, tmp_path)
    if text == "REPORT":
        text = cli("doctor", "--root", tmp_path / "tree", "--json", status=1).out
    done = cli(*words, "--json", status=None, input=text.encode())
    document = json.loads(done.out)
    assert done.returncode != 2 and not list(errors(document, SCHEMAS[document["schema"]])), done.out


def test_completions_offer_every_option_of_every_command(cli):
    scripts = {shell: cli("completion", shell).out for shell in ("bash", "zsh", "fish")}
    for command in COMMANDS:
        text = cli(command, "--help").out.split("\nexamples:")[0]
        headings = re.findall(r"^  (-.*?)(?:  |$)", text, re.M)
        for name in {n for heading in headings for n in re.findall(r"(?<![\w-])--[a-z-]+", heading)}:
            assert name in scripts["bash"] and name in scripts["zsh"], (command, name)
            assert re.search(rf"-l {name[2:]}\b", scripts["fish"]), (command, name)


def test_every_published_schema_is_named_by_a_page(cli):
    pages = " ".join(" ".join(cli(command, "--help").out.split()) for command in COMMANDS)
    alone = {"tracefire.doctor.diff/1", "tracefire.monitor.alert/1", "tracefire.demo/1"}  # of diff, --webhook, --json FILE
    for schema in SCHEMAS:
        assert schema in pages or schema in alone, schema
