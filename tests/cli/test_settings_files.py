# SPDX-License-Identifier: Apache-2.0
"""Settings of commands: flags, environment, files, and what is said of wrong ones."""

import os
import pathlib
import shutil
import tempfile

import pytest


def setting(cli, name, *words, **options):
    values = cli.json("settings", name, *words, **options)["settings"]
    assert len(values) == 1
    return values[0]["value"], values[0]["source"]


def test_the_strongest_that_speaks_wins(cli):
    assert setting(cli, "threads") == ("0", "default")
    cli.config("# cores for others\n\nthreads = 3\n")
    assert setting(cli, "threads") == ("3", "user file")
    env = {"TRACEFIRE_THREADS": "4"}
    assert setting(cli, "threads", env=env) == ("4", "environment")
    assert setting(cli, "threads", "--set", "threads=5", env=env) == ("5", "flag")
    assert setting(cli, "threads", "--set", "threads=5", "--set", "threads=6") == ("6", "flag")


def test_a_flag_may_stand_before_the_command(cli):
    words = ("--set", "threads=5", "settings", "--set", "deterministic=true")
    values = {s["name"]: s["value"] for s in cli.json(*words)["settings"]}
    assert values["threads"] == "5" and values["deterministic"] == "true"


def test_the_user_folder_follows_the_specification(cli, tmp_path):
    cli.config("threads = 3\n")
    cli.config("threads = 7\n", folder="elsewhere")
    assert setting(cli, "threads", env={"XDG_CONFIG_HOME": str(cli.home / "elsewhere")}) == ("7", "user file")
    # Relative and empty values count as unset.
    assert setting(cli, "threads", env={"XDG_CONFIG_HOME": "elsewhere"}, cwd=cli.home) == ("3", "user file")
    assert setting(cli, "threads", env={"XDG_CONFIG_HOME": ""}) == ("3", "user file")


def test_without_a_home_there_is_no_user_file(cli):
    assert setting(cli, "threads", env={"HOME": None}) == ("0", "default")
    assert setting(cli, "threads", env={"HOME": ""}) == ("0", "default")
    assert setting(cli, "threads", env={"HOME": str(cli.home / "missing")}) == ("0", "default")
    assert cli("devices", env={"HOME": None}).err == ""


def test_the_file_is_read_as_people_write_it(cli):
    cli.config(b"\xef\xbb\xbfthreads=3\r\n\t deterministic =  true  \r\n  # a comment\r\ncuda_path = /a=b # c")
    assert setting(cli, "threads")[0] == "3"
    assert setting(cli, "deterministic")[0] == "true"
    assert setting(cli, "cuda_path")[0] == "/a=b # c"
    cli.config("")
    assert setting(cli, "threads") == ("0", "default")
    cli.config("cuda_path =\n")
    assert setting(cli, "cuda_path") == ("", "user file")


@pytest.mark.parametrize(
    "text, line, said",
    [
        ("threads = many\n", 1, "the setting threads cannot be 'many'. A whole number of at least 0"),
        ("\n\nthread = 1\n", 3, "Did you mean 'threads'?"),
        ("# fine\nthreads\n", 2, "'threads' is no setting. `name = value` was expected"),
        ("= 3\n", 1, "`name = value` was expected"),
        ("threads = 1\n\nthreads = 2\n", 3, "stands in line 1 already"),
        ("deterministic = true\nthreads = -1", 2, "the setting threads cannot be '-1'"),
        ("[section]\nthreads = 1\n", 1, "'[section]' is no setting"),
        (b"\xff\xfe\n", 1, "is no setting"),
        (b"threads = 1\n\x00\n", 2, "a zero byte, so this is no text"),
        ("x" * 5000 + "\n", 1, "is no setting"),
    ],
)
def test_a_wrong_file_is_an_error_that_names_the_line(cli, text, line, said):
    path = cli.config(text)
    done = cli("devices", status=1)
    assert done.out == ""
    message, hint = done.err.splitlines()
    assert message.startswith(f"tracefire: error: [TF-E0503] {path}:{line}: ")
    assert said in message and len(message) < 600
    assert hint == "tracefire: hint: `tracefire explain TF-E0503` says more."


@pytest.mark.parametrize(
    "name, value, said",
    [
        ("THREADS", "lots", "A whole number of at least 0 and at most 1024 was expected"),
        ("DEVICE_POLICY", "Soft", "One of soft|strict was expected"),
        ("LOG_LEVEL", "loud", "One of debug|info|warning|error|off was expected"),
        ("DISABLED_PASSES", "nosuch", "'nosuch', which is no pass"),
        ("DISABLED_PASSES", "inline_calls", "without which no program can be made"),
        ("LOG_DEVICE_PLACEMENT", "", "true or false"),
        ("GPU_MEMORY_FRACTION", "1.5", "at most 1"),
    ],
)
def test_a_wrong_variable_is_an_error_like_a_wrong_file(cli, name, value, said):
    for command in ("devices", "settings", "version", "manifest"):
        done = cli(command, status=1, env={f"TRACEFIRE_{name}": value})
        assert done.out == ""
        message, hint = done.err.splitlines()
        assert message.startswith(f"tracefire: error: [TF-E0503] environment variable TRACEFIRE_{name}: the setting ")
        assert said in message and hint.endswith("`tracefire explain TF-E0503` says more.")
    for words in (["--help"], ["explain", "101"], ["completion", "bash"]):
        assert cli(*words, env={f"TRACEFIRE_{name}": value}).err == ""


def test_what_serves_other_programs_says_it_and_goes_on(cli):
    done = cli("prove", "--quiet", "true", env={"TRACEFIRE_THREADS": "lots"})
    assert done.err.startswith("tracefire: warning: [TF-E0503] environment variable TRACEFIRE_THREADS")
    assert len(done.err.splitlines()) == 1


def test_a_flag_starts_the_placement_log(cli):
    done = cli("demo", "--epochs", "1", "--set", "log_device_placement=yes", status=1)
    assert "Executing op MatMul in device /job:localhost/replica:0/task:0/device:" in done.err
    assert "Executing op" not in cli("demo", "--epochs", "1", status=1).err


def test_a_wrong_file_hides_no_help(cli):
    cli.config("nonsense\n")
    for words in (["--help"], ["devices", "--help"], ["explain", "TF-E0503"], ["completion", "bash"], ["--version"]):
        assert cli(*words).err == ""


def test_a_file_that_cannot_be_read(cli):
    path = cli.config("threads = 3\n")
    path.unlink()
    path.mkdir()
    done = cli("settings", status=1)
    assert f"[TF-E0401] the settings file {path} is there and cannot be read: it is not a regular file" in done.err
    path.rmdir()
    os.mkfifo(path)
    assert "it is not a regular file" in cli("settings", status=1).err
    path.unlink()
    path.write_bytes(b"#" * (2 << 20))
    assert "it is larger than 1 MiB" in cli("settings", status=1).err


@pytest.fixture
def open_folder():
    """A folder that every user can reach, unlike pytest's own."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tracefire-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_permissions(cli, open_folder):
    """As a user without rights: root may read everything."""
    user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    try:
        reachable = cli("--version", status=None, cwd="/", **user).returncode == 0
    except PermissionError:
        reachable = False
    if not reachable:
        pytest.skip("another user cannot run the program where it lies")
    path = open_folder / "tracefire" / "config"
    path.parent.mkdir(mode=0o755)
    path.write_text("threads = 3\n")
    env = {"HOME": None, "XDG_CONFIG_HOME": str(open_folder)}
    path.chmod(0)
    done = cli("settings", status=1, env=env, cwd="/", **user)
    assert "[TF-E0401]" in done.err and "Permission denied" in done.err
    path.chmod(0o644)
    assert setting(cli, "threads", env=env, cwd="/", **user) == ("3", "user file")
    path.parent.chmod(0)  # as in `su` with the HOME of root
    done = cli("settings", env=env, cwd="/", **user)
    assert "cannot be looked for: Permission denied" in done.err
    assert done.out.startswith("SETTING")
    path.parent.chmod(0o755)
