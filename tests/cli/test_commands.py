# SPDX-License-Identifier: Apache-2.0
"""What each command answers, and the conventions that all of them keep."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from random import Random

import pytest

from conftest import BUILD, PROGRAM, ROOT, SCHEMAS, Cli, tree_of
from json_schema import errors


def listed_commands():
    if not PROGRAM.exists():
        return []
    with tempfile.TemporaryDirectory() as home:
        return Cli(pathlib.Path(home)).commands()


COMMANDS = listed_commands()
HARMLESS = ["devices", "explain", "settings", "version", "completion", "help"]  # run nothing for long
JSON_COMMANDS = {
    "check": [["--no-tests", "--quiet", "true"]],
    "devices": [[], ["--libraries"]],
    "doctor": [["--root", "TREE"]],
    "explain": [[], ["TF-E0101"], ["103", "kShapeMismatch"]],
    "manifest": [[], ["--set", "threads=2"]],
    "profile": [["--quiet", "true"]],
    "prove": [["--quiet", "true"]],
    "settings": [[], ["threads"]],
    "version": [[]],
    "monitor": [["--once"]],
}


# ---- every command ----


def test_every_command_is_tested():
    assert {"demo", *HARMLESS} <= set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_usage_options_and_examples(cli, command):
    done = cli(command, "--help")
    assert done.out.startswith(f"usage: tracefire {command}")
    assert "\nexamples:\n  " in done.out and f"tracefire {command}" in done.out.split("examples:")[1]
    assert "--help" in done.out and "--color" in done.out
    assert done.err == ""
    prose = done.out.split("\nexamples:\n")[0]  # a command in an example keeps its line
    assert max(map(len, prose.splitlines())) <= 80
    assert cli("help", command).out == done.out
    assert cli(command, "-h").out == done.out


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_with_json_names_its_schema_and_is_tested(cli, command):
    ids = re.findall(r"schema (tracefire\.\S+/\d+)", " ".join(cli(command, "--help").out.split()))
    assert bool(ids) == (command in JSON_COMMANDS), "add the command to JSON_COMMANDS"
    assert all(i in SCHEMAS for i in ids)


@pytest.mark.parametrize("command, words", [(c, w) for c, all_ in JSON_COMMANDS.items() for w in all_])
def test_json_fits_the_published_schema(cli, command, words, tmp_path):
    env = cli.nvml if command == "monitor" else None
    words = [tree_of("fx01-ok", tmp_path / "tree") if word == "TREE" else word for word in words]
    done = cli(command, *words, "--json", env=env)
    document = cli.json(command, *words, env=env)
    assert document["schema"].startswith("tracefire.")
    assert list(document)[0] == "schema"
    assert done.err == ""


def test_the_schema_checker_finds_what_is_wrong(cli):
    document, schema = cli.json("devices"), SCHEMAS["tracefire.devices/1"]
    for change in (
        lambda d: d.pop("devices"),
        lambda d: d.update(more=1),
        lambda d: d.update(schema="tracefire.devices/2"),
        lambda d: d.update(devices=[]),
        lambda d: d.update(why_no_gpu=3),
        lambda d: d.update(time="yesterday"),
        lambda d: d["devices"][0].update(index=-1),
        lambda d: d["devices"][0].update(index=True),
        lambda d: d["devices"][0].update(default="yes"),
        lambda d: d["devices"][0].update(memory_bytes=1.5),
    ):
        broken = json.loads(json.dumps(document))
        change(broken)
        assert list(errors(broken, schema))
    assert not list(errors(document, schema))


# ---- wrong usage ----


@pytest.mark.parametrize(
    "words, said",
    [
        ([], "no command was given"),
        (["devcies"], "Did you mean 'devices'?"),
        (["nothing-like-it"], "no command 'nothing-like-it'"),
        (["--bogus"], "no option '--bogus'"),
        (["--bogus", "devices"], "no option '--bogus'"),
        (["devices", "--jsn"], "Did you mean '--json'?"),
        (["devices", "--jsn=3"], "Did you mean '--json'?"),
        (["devices", "-x"], "no option '-x'"),
        (["devices", "++", "explain"], "the command 'explain' stands where none can"),
        (["devices", "extra"], "'extra' is one too many"),
        (["devices", "--color"], "--color needs a value: auto|always|never"),
        (["devices", "--color", "red"], "One of auto|always|never"),
        (["devices", "--set", "threads"], "NAME=VALUE"),
        (["devices", "--set", "threads=many"], "the setting threads cannot be 'many'"),
        (["devices", "--set", "thread=1"], "Did you mean 'threads'?"),
        (["devices", "--set", "disabled_passes=nosuch"], "expected, separated by commas: raise_softmax, simplify, fuse"),
        (["devices", "--set", "disabled_passes=fuse,place"], "'place', without which no program can be made"),
        (["demo", "--json", ""], "--json was given ''. The name of a file"),
        (["demo", "--json", "-"], "--json was given '-'. The name of a file"),
        (["check", "--html", ""], "--html was given ''. The name of a file"),
        (["check", "--framework", "caffe"], "One of tensorflow|torch|jax|keras|tracefire was expected"),
        (["settings", "thread"], "Did you mean 'threads'?"),
        (["explain", "9999"], "The nearest is TF-E0901 (Internal)"),
        (["explain", "kShapeMismtch"], "The nearest is TF-E0101 (ShapeMismatch)"),
        (["explain", "what on earth"], "`tracefire explain` lists them all"),
        (["explain", ""], "there is no error ''"),
        (["completion"], "One of bash|zsh|fish"),
        (["completion", "ksh"], "One of bash|zsh|fish"),
        (["help", "devcies"], "Did you mean 'devices'?"),
    ],
)
def test_wrong_usage(cli, words, said):
    done = cli(*words, status=2)
    assert done.out == ""
    message, hint = done.err.splitlines()
    assert message.startswith("tracefire: error: [TF-E0502] ")
    assert said in message
    assert re.fullmatch(r"tracefire: hint: `tracefire( \w+)? --help` shows how it is used\.", hint)


@pytest.mark.parametrize(
    "word", [b"\xff\xfe", b"\x1b[31mred", b"caf\xc3\xa9", b"a\nb", b"\xed\xa0\x80", b"\xc2\x9b31m"]
)
@pytest.mark.parametrize("words", [[], ["devices"], ["explain"], ["settings"], ["help"], ["devices", "--color"]])
def test_odd_bytes_are_shown_and_steer_no_terminal(cli, words, word):
    done = cli(*words, word, status=2)
    message = done.err.splitlines()[0]
    assert len(done.err.splitlines()) == 2
    assert "\x1b" not in message and "\x9b" not in message
    if word == b"\xff\xfe":
        assert "\ufffd\ufffd" in message
    if word == "café".encode():
        assert "café" in message


@pytest.mark.parametrize("words", [[], ["devices"], ["explain"], ["settings"], ["devices", "--set"]])
def test_a_very_long_argument_gives_a_short_message(cli, words):
    done = cli(*words, "x" * 100_000, status=2)
    assert len(done.err) < 1000 and "…" in done.err


def test_many_arguments(cli):
    assert cli("explain", *["101"] * 2000).out.count("TF-E0101 ShapeMismatch") == 2000


def test_whatever_the_words_are_the_program_answers(cli):
    """Words in any order: never a signal, and never silence about what was wrong."""
    words = [*HARMLESS, "", "-", "--", "++", "-h", "--json", "--json=", "--color", "auto", "--set", "a=b",
             "threads=2", "--man", "-hx", "-x=1", "TF-E0101", "101", "kInternal", "--libraries", "bash",
             "a b", "\t", "--=", "-=", "=", "/", "@", "%s%n", "{}", "[]", "\udcff", "é", "0" * 300]  # fmt: skip
    random = Random(5)
    for _ in range(150):
        given = random.choices(words, k=random.randint(1, 5))
        done = cli(*given, status=None, input=b"[TF-E0203]")
        assert done.returncode in (0, 1, 2), given
        lines = done.err.splitlines()
        if done.returncode == 2:
            assert len(lines) == 2 and lines[0].startswith("tracefire: error: [TF-E0502] "), (given, lines)
            assert done.out == ""
        else:
            assert done.out, given


def test_help_wins_over_what_else_is_wrong(cli):
    assert cli("devices", "--bogus", "--help").out.startswith("usage: tracefire devices")


# ---- streams, colours, environment ----


def test_colours_are_for_terminals_or_for_who_asks(cli):
    assert "\x1b" not in cli("devices").out
    assert "\x1b[1m" in cli("devices", "--color", "always").out
    assert "\x1b[1m" in cli("--color=always", "devices").out
    assert "\x1b" not in cli("--color", "always", "devices", "--color", "never").out
    assert "\x1b" in cli("devices", "--color", "always", env={"NO_COLOR": "1"}).out
    assert "\x1b" not in cli("devices", "--color", "always", "--json").out
    assert "\x1b[1;31m" in cli("devices", "--color", "always", "extra", status=2).err


def on_a_terminal(cli, words, columns=80, **env):
    """What a terminal of this width receives from `tracefire WORDS`."""
    program = (
        "import fcntl, os, pty, struct, sys, termios\n"
        "size = struct.pack('HHHH', 50, int(sys.argv[1]), 0, 0)\n"
        "pid, terminal = pty.fork()\n"
        "if pid == 0:\n"
        "    fcntl.ioctl(1, termios.TIOCSWINSZ, size)\n"
        "    os.execv(sys.argv[2], sys.argv[2:])\n"
        "data = b''\n"
        "while True:\n"
        "    try: block = os.read(terminal, 65536)\n"
        "    except OSError: break\n"
        "    if not block: break\n"
        "    data += block\n"
        "sys.stdout.buffer.write(data)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(columns), PROGRAM, *words],
        env={**cli.env, **env},
        capture_output=True,
        timeout=60,
    )
    return done.stdout.decode().replace("\r\n", "\n")


def test_a_terminal_gets_colours_unless_it_or_the_user_says_no(cli):
    assert "\x1b[1m" in on_a_terminal(cli, ["devices"])
    assert "\x1b" not in on_a_terminal(cli, ["devices"], TERM="dumb")
    assert "\x1b" not in on_a_terminal(cli, ["devices"], NO_COLOR="1")
    assert "\x1b" in on_a_terminal(cli, ["devices"], NO_COLOR="")
    assert "\x1b" not in on_a_terminal(cli, ["devices", "--color", "never"])


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
@pytest.mark.parametrize("words", [["devices"], ["explain"], ["settings"], ["version"], ["--help"], ["help", "devices"]])
def test_lines_fit_into_the_terminal(cli, words, columns):
    out = on_a_terminal(cli, [*words, "--color", "never"], columns)
    if columns >= 80:
        free = [line for line in out.splitlines() if len(line) > columns]
        assert not free
    assert out.strip()
    if columns == 200 and words == ["explain"]:
        assert all(line.startswith(("TF-E", "CODE")) for line in out.splitlines())


def test_columns_are_aligned(cli):
    header, *rows = on_a_terminal(cli, ["settings", "--color", "never"], 100).splitlines()
    for column in ("VALUE", "SET BY"):
        at = header.index(column)
        assert all(row[at - 1] == " " and row[at] != " " for row in rows)


def test_stdout_has_the_data_alone(cli):
    done = cli("devices", "--json", env={"TRACEFIRE_THREAD": "2"})
    json.loads(done.out)
    assert "Did you mean TRACEFIRE_THREADS?" in done.err


def test_a_closed_stdout_is_an_error_and_a_closed_stderr_is_none(cli):
    for shell, status in (("devices >&-", 1), ("devices 2>&- >/dev/null", 0), ("devices <&- >/dev/null", 0)):
        done = subprocess.run(
            ["bash", "-c", f"'{PROGRAM}' {shell}"], env=cli.env, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == status, done.stderr
        if status:
            assert "standard output cannot be written: Bad file descriptor" in done.stderr


def test_a_full_disk_is_an_error(cli):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([PROGRAM, "explain"], env=cli.env, stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 1
    assert b"[TF-E0404] standard output cannot be written: No space left on device" in done.stderr


@pytest.mark.parametrize("ignored", [False, True])
def test_a_reader_that_goes_away_is_no_news(cli, ignored):
    trap = "trap '' PIPE; " if ignored else ""
    done = subprocess.run(
        ["bash", "-c", f"{trap}'{PROGRAM}' explain | true; echo ${{PIPESTATUS[0]}}"],
        env=cli.env, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    # 0 where it had written everything before the reader was gone
    assert done.stdout.strip() in ("141", "0")
    assert done.stderr == ""


def test_nobody_reads(cli):
    """The pipe has no reader from the start: the outcome is certain."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([PROGRAM, "explain"], env=cli.env, stdout=writer, stderr=subprocess.PIPE, timeout=60)
    os.close(writer)
    assert done.returncode == -13 and done.stderr == b""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [PROGRAM, "explain"], env=cli.env, stdout=writer, stderr=subprocess.PIPE, timeout=60, restore_signals=False
    )
    os.close(writer)
    assert done.returncode == 141 and done.stderr == b""


@pytest.mark.parametrize("locale", ["C", "POSIX", "C.UTF-8", "xx_YY.bogus"])
def test_locales_change_nothing(cli, locale):
    assert cli("explain", "101", env={"LC_ALL": locale}).out == cli("explain", "101").out


# ---- what they answer ----


def test_devices(cli):
    document = cli.json("devices")
    table = cli("devices").out
    cpus = [d for d in document["devices"] if d["kind"] == "CPU"]
    gpus = [d for d in document["devices"] if d["kind"] == "GPU"]
    assert [d["device"] for d in cpus] == ["/CPU:0"]
    assert sum(d["default"] for d in document["devices"]) == 1
    for device in document["devices"]:
        assert device["device"] in table and device["name"] in table
    if gpus:
        assert document["why_no_gpu"] is None
        assert document["devices"][0]["default"] and document["devices"][0]["driver"]
    else:
        reason = document["why_no_gpu"]
        assert reason and "\n" not in reason
        assert f"No GPU is used: {reason}\n" in table


def test_devices_memory_is_the_machines(cli):
    text = pathlib.Path("/proc/meminfo").read_text()
    total = int(re.search(r"MemTotal:\s+(\d+) kB", text)[1]) * 1024
    memory = [d["memory_bytes"] for d in cli.json("devices")["devices"] if d["kind"] == "CPU"][0]
    assert 0 < memory <= total


def test_devices_tells_every_place_that_it_searched(cli):
    document = cli.json("devices", "--libraries")
    assert any("libcuda.so" in line for line in document["search"])
    table = cli("devices", "--libraries").out
    for line in document["search"]:
        assert line in table
    for library in document["libraries"]:
        assert pathlib.Path(library["path"]).exists()


def test_the_search_starts_where_a_setting_says(cli, tmp_path):
    # A file named like the driver that is none: it is tried, and the loader's words are told.
    (tmp_path / "libcuda.so.1").write_text("no library")
    for words, env in (
        (["--set", f"cuda_path={tmp_path}"], {}),
        ([], {"TRACEFIRE_CUDA_PATH": str(tmp_path)}),
    ):
        search = cli.json("devices", "--libraries", *words, env=env)["search"]
        assert any(str(tmp_path) in line for line in search), search


def test_no_gpu_is_seen_when_all_are_hidden(cli):
    assert cli.json("devices", env={"CUDA_VISIBLE_DEVICES": ""})["why_no_gpu"]


def test_gpus_come_first_and_have_their_facts(cli, emulated):
    env = {**emulated, "TF_EMU_GPUS": "2", "TF_EMU_MEMORY": str(80 << 30), "TF_EMU_CAPABILITY": "90"}
    document = cli.json("devices", "--libraries", env=env)
    assert [d["device"] for d in document["devices"]] == ["/GPU:0", "/GPU:1", "/CPU:0"]
    gpu = document["devices"][0]
    assert gpu["architecture"] == "sm_90" and gpu["memory_bytes"] == 80 << 30 and gpu["default"]
    assert "CUDA 13.0" in gpu["driver"]
    assert document["why_no_gpu"] is None
    libraries = {entry["name"]: entry for entry in document["libraries"]}
    assert {"NVIDIA driver", "NVML", "NVRTC", "cuBLASLt"} <= set(libraries)
    assert libraries["cuBLASLt"]["origin"] == "TRACEFIRE_CUDA_PATH"
    table = cli("devices", env=env).out
    assert "80.0 GiB" in table and "No GPU is used" not in table
    assert "cuBLASLt" in cli("version", env=env).out


@pytest.mark.parametrize(
    "variables, said",
    [
        ({"TF_EMU_CUDA": "11040"}, "supports CUDA 11.4 and Tracefire needs 12.0 or newer. Update the NVIDIA driver"),
        ({"TF_EMU_INIT": "802"}, "nvidia-fabricmanager"),
        ({"TF_EMU_CAPABILITY": "61"}, "compute capability 6.1 is older than 7.0"),
    ],
)
def test_why_a_gpu_that_is_there_is_not_used(cli, emulated, variables, said):
    document = cli.json("devices", env={**emulated, **variables})
    assert [d["device"] for d in document["devices"]] == ["/CPU:0"]
    assert said in document["why_no_gpu"] and "\n" not in document["why_no_gpu"]
    assert said in cli("version", env={**emulated, **variables}).out


CATALOGUE = json.loads((ROOT / "schema" / "errors.json").read_text())["errors"]


def test_explain_lists_the_catalogue(cli):
    document = cli.json("explain")
    assert [e["name"] for e in document["errors"]] == [e["name"] for e in CATALOGUE]
    listed = cli("explain").out.splitlines()[1:]
    assert [line.split()[0] for line in listed] == [f"TF-E{e['number']:04}" for e in CATALOGUE]


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda e: e["name"])
def test_explain_tells_each_error(cli, entry):
    out = cli("explain", str(entry["number"])).out
    flat = " ".join(out.split())
    assert out.startswith(f"TF-E{entry['number']:04} {entry['name']}\n")
    for text in (entry["summary"], entry["cause"], entry["expected"], entry["help"]):
        assert " ".join(text.split()) in flat
    for heading in ("What happened", "What was expected", "What to do", "Example", "Instead"):
        assert f"\n{heading}\n" in out
    assert max(map(len, out.splitlines())) <= 100


def test_explain_takes_a_code_in_every_form(cli):
    expected = cli("explain", "TF-E0103").out
    for form in ("E0103", "e0103", "103", "0103", "tf-e0103", "[TF-E0103]", "BadAttribute", "kBadAttribute",
                 "bad_attribute", "bad-attribute", "BADATTRIBUTE"):  # fmt: skip
        assert cli("explain", form).out == expected, form


def test_explain_reads_a_log(cli):
    log = b"x [TF-E0203] y\n\xff\xfe [TF-E0101] and [TF-E0203], TF-E99, TF-E01011\n"
    names = [e["name"] for e in cli.json("explain", "-", input=log)["errors"]]
    assert names == ["OutOfMemory", "ShapeMismatch"]
    done = cli("explain", "-", input=b"all is well\n")
    assert done.out == "" and "mentions no error code" in done.err
    assert cli.json("explain", "-", input=b"")["errors"] == []
    assert "no error 'TF-E0999'" in cli("explain", "-", input=b"TF-E0999", status=2).err


def test_explain_says_that_stdin_is_closed(cli):
    done = subprocess.run(
        ["bash", "-c", f"'{PROGRAM}' explain - <&-"], env=cli.env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert "[TF-E0401] standard input cannot be read: Bad file descriptor" in done.stderr


def test_version(cli):
    document = cli.json("version")
    declared = re.search(r"project\(tracefire VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    assert document["version"] == declared
    assert cli("--version").out == f"tracefire {declared}\n"
    text = cli("version").out
    assert declared in text and document["compiler"] in text
    for library in document["libraries"]:
        assert library["name"] in text and library["version"] in text


def test_the_commit_is_the_one_that_was_built(cli):
    if not (ROOT / ".git").exists():
        pytest.skip("this tree is no repository")
    git = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    if git.returncode:
        pytest.skip("git does not read this repository: " + git.stderr.strip())
    commit = cli.json("version")["commit"].removesuffix("+changes")
    known = subprocess.run(["git", "cat-file", "-t", commit], cwd=ROOT, capture_output=True, text=True)
    assert known.stdout.strip() == "commit"
