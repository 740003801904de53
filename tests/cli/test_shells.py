# SPDX-License-Identifier: Apache-2.0
"""Completion in real shells, and the manual pages as man formats them."""

import re
import shutil
import subprocess

import pytest

from conftest import BUILD, PROGRAM

BASH = r"""
set -u
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
complete -p tracefire >/dev/null
_tracefire
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def complete(cli, tmp_path):
    """complete("devices", "--j"): what bash offers for the last word."""
    script = tmp_path / "completion"
    script.write_text(cli("completion", "bash").out)

    def offered(*words, cwd=tmp_path):
        done = subprocess.run(
            ["bash", "--norc", "-c", BASH, "bash", script, "tracefire", *words],
            capture_output=True, text=True, timeout=30, cwd=cwd, env=cli.env,
        )  # fmt: skip
        assert done.returncode == 0 and done.stderr == "", done.stderr
        return done.stdout.split("\n")[:-1] if done.stdout.strip() else []

    return offered


def test_bash_offers_commands_options_and_values(cli, complete):
    assert complete("") == cli.commands()
    assert complete("dev") == ["devices"]
    assert complete("devices", "--j") == ["--json"]
    assert complete("devices", "--nothing") == []
    assert complete("devices", "") == []
    assert complete("devices", "--color", "") == ["auto", "always", "never"]
    assert complete("devices", "--color", "=", "al") == ["always"]
    assert complete("devices", "--color", "=") == ["auto", "always", "never"]
    assert complete("--color", "n") == ["never"]
    assert complete("--color", "never", "dev") == ["devices"]
    assert complete("explain", "TF-E010") == [f"TF-E010{i}" for i in range(1, 10)]
    assert complete("settings", "thr") == ["threads"]
    assert complete("devices", "--set", "thr") == ["threads="]
    assert complete("completion", "") == ["bash", "zsh", "fish"]
    assert complete("help", "exp") == ["explain"]


def test_bash_offers_every_option_of_every_command(cli, complete):
    for command in cli.commands():
        text = cli(command, "--help").out.split("examples:")[0]
        headings = re.findall(r"^  (-.*?)(?:  |$)", text, re.M)  # "-i, --id, --gpus LIST"
        wanted = {name for heading in headings for name in re.findall(r"(?<![\w-])--[a-z-]+", heading)}
        assert set(complete(command, "--")) == wanted


LINKED = ("doctor", "monitor", "prove")
CALLED = """
set -u
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
eval "$(complete -p "$1" | sed -n 's/.*-F \\([a-z_]*\\) .*/\\1/p')"
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize("command", LINKED)
def test_a_link_to_a_command_is_completed_as_the_command(cli, complete, tmp_path, command):
    cli("--write-manual", tmp_path)
    own = tmp_path / "bash-completion" / "completions" / f"tracefire-{command}"
    for words in (["--"], ["--j"], ["--color", ""], [""]):
        done = subprocess.run(
            ["bash", "--norc", "-c", CALLED, "bash", own, f"tracefire-{command}", *words],
            capture_output=True, text=True, timeout=30, cwd=tmp_path, env=cli.env,
        )  # fmt: skip
        assert done.stderr == "" and done.returncode == 0
        assert [w for w in done.stdout.split("\n") if w] == complete(command, *words)


@pytest.mark.parametrize("command", LINKED)
def test_fish_completes_links_to_commands(cli, tmp_path, command):
    if not shutil.which("fish"):
        pytest.skip("no fish here")
    cli("--write-manual", tmp_path)
    own = tmp_path / "fish" / "vendor_completions.d" / f"tracefire-{command}.fish"

    def offered(line):
        done = subprocess.run(
            ["fish", "-N", "-c", f"source {own}; complete -C '{line}'"],
            capture_output=True, text=True, timeout=30, env=cli.env,
        )  # fmt: skip
        return {entry.split("\t")[0] for entry in done.stdout.splitlines()}

    assert "--json" in offered(f"tracefire-{command} --")
    assert offered(f"tracefire-{command} --") == offered(f"tracefire {command} --")


def test_bash_offers_files_with_blanks(complete, tmp_path):
    (tmp_path / "a folder").mkdir()
    assert complete("--write-manual", "a") == ["a folder"]


RUNNERS = ("check", "demo", "profile", "prove")


@pytest.fixture
def here(tmp_path):
    """A folder with a program of its own, first in PATH, and a script."""
    program = tmp_path / "trainer-of-mine"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "train-it.py").touch()
    return tmp_path


@pytest.mark.parametrize("command", RUNNERS)
def test_bash_offers_programs_and_their_files_after_the_dashes(cli, complete, here, command):
    cli.env["PATH"] = f"{here}:{cli.env.get('PATH', '/usr/bin:/bin')}"
    assert complete(command, "") == ["--"]
    assert complete(command, "--", "trainer-o") == ["trainer-of-mine"]
    assert complete(command, "--", "python", "train-") == ["train-it.py"]
    # Options there are the program's own, whatever their name.
    assert complete(command, "--", "python", "train-it.py", "--color", "") != ["auto", "always", "never"]
    assert complete("doctor", "--env", "thr") == [], "variables of any name, not settings"


def test_bash_completes_interactively(cli, tmp_path):
    """A person's shell: Tab after `tracefire dev`."""
    script = tmp_path / "completion"
    script.write_text(cli("completion", "bash").out)
    if not shutil.which("script"):
        pytest.skip("no script(1) to make a terminal")
    keys = f"PS1='> '; PATH={PROGRAM.parent}:$PATH; source {script}\ntracefire --vers\t; echo $?\nexit\n"
    done = subprocess.run(
        ["script", "-qec", "bash --norc --noprofile -i", "/dev/null"],
        input=keys, capture_output=True, text=True, timeout=30, env=cli.env,
    )  # fmt: skip
    assert re.search(r"tracefire \d+\.\d+\.\d+\r?\n", done.stdout), done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_text_that_the_shell_can_read(cli, tmp_path, shell):
    path = tmp_path / "completion"
    path.write_text(cli("completion", shell).out)
    if not shutil.which(shell):
        pytest.skip(f"no {shell} here")
    done = subprocess.run([shell, "-n", path], capture_output=True, text=True, timeout=30, env=cli.env)
    assert done.returncode == 0 and done.stderr == ""


def zsh_shows(cli, folder, line, *words):
    """What an interactive zsh shows for `line` and two tabs, until it has shown all the words."""
    (folder / "_tracefire").write_text(cli("completion", "zsh").out)
    seen = " && ".join(f"$text == *{word}*" for word in words)
    program = (
        "zmodload zsh/zpty\n"
        "zpty z zsh -f -i\n"
        f"zpty -w z 'PS1=; fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -D; setopt no_list_beep'\n"
        "sleep 1\n"
        f"zpty -w -n z $'{line}\\t\\t'\n"
        "for i in {1..160}; do\n"
        "  sleep 0.25; while zpty -r -t z more; do text+=$more; done\n"
        f"  [[ {seen} ]] && break\n"
        "done\n"
        "print -r -- $text\n"
    )
    return subprocess.run(["zsh", "-f", "-c", program], capture_output=True, text=True, timeout=60, env=cli.env).stdout


def test_zsh_offers_commands_options_and_values(cli, tmp_path):
    if not shutil.which("zsh"):
        pytest.skip("no zsh here")
    words = ("--json", "--libraries", "--color")
    shown = zsh_shows(cli, tmp_path, "tracefire devices --", *words)
    assert all(word in shown for word in words), shown


@pytest.mark.parametrize("command, words", [
    ("doctor", ("--framework", "--root")), ("monitor", ("--query-gpu", "--webhook")), ("prove", ("--attach", "--require"))])
def test_zsh_completes_links_to_commands(cli, tmp_path, command, words):
    if not shutil.which("zsh"):
        pytest.skip("no zsh here")
    shown = zsh_shows(cli, tmp_path, f"tracefire-{command} --", *words)
    assert all(word in shown for word in words), shown


def test_zsh_offers_programs_and_their_files_after_the_dashes(cli, here):
    if not shutil.which("zsh"):
        pytest.skip("no zsh here")
    (here / "_tracefire").write_text(cli("completion", "zsh").out)
    program = (
        "zmodload zsh/zpty\n"
        "zpty z zsh -f -i\n"
        f"zpty -w z 'PS1=; fpath=({here} $fpath); autoload -Uz compinit; compinit -u -D; setopt no_list_beep'\n"
        "sleep 1\n"
        "zpty -w -n z $'tracefire prove -- trainer-o\\t'\n"
        "sleep 1\n"
        "zpty -w -n z $'train-\\t'\n"
        "for i in {1..40}; do\n"
        "  sleep 0.25; while zpty -r -t z more; do text+=$more; done\n"
        "  [[ $text == *train-it.py* ]] && break\n"
        "done\n"
        "print -r -- $text\n"
    )
    env = {**cli.env, "PATH": f"{here}:{cli.env.get('PATH', '/usr/bin:/bin')}"}
    done = subprocess.run(
        ["zsh", "-f", "-c", program], capture_output=True, text=True, timeout=30, env=env, cwd=here
    )
    assert "trainer-of-mine" in done.stdout and "train-it.py" in done.stdout, done.stdout


def test_fish_offers_commands_options_and_values(cli, tmp_path):
    if not shutil.which("fish"):
        pytest.skip("no fish here")
    path = tmp_path / "completion.fish"
    path.write_text(cli("completion", "fish").out)

    def offered(line):
        done = subprocess.run(
            ["fish", "-N", "-c", f"source {path}; complete -C '{line}'"],
            capture_output=True, text=True, timeout=30, env=cli.env,
        )  # fmt: skip
        return [entry.split("\t")[0] for entry in done.stdout.splitlines()]

    assert offered("tracefire dev") == ["devices"]
    assert "--json" in offered("tracefire devices --")
    assert sorted(offered("tracefire devices --color ")) == ["always", "auto", "never"]
    assert "TF-E0101" in offered("tracefire explain ")


def test_fish_offers_programs_and_their_files_after_the_dashes(cli, here):
    if not shutil.which("fish"):
        pytest.skip("no fish here")
    path = here / "completion.fish"
    path.write_text(cli("completion", "fish").out)
    env = {**cli.env, "PATH": f"{here}:{cli.env.get('PATH', '/usr/bin:/bin')}"}

    def offered(line):
        done = subprocess.run(
            ["fish", "-N", "-c", f"source {path}; complete -C '{line}'"],
            capture_output=True, text=True, timeout=30, env=env, cwd=here,
        )  # fmt: skip
        assert done.stderr == ""
        return [entry.split("\t")[0] for entry in done.stdout.splitlines()]

    for command in RUNNERS:
        assert "devices" not in offered(f"tracefire {command} ")
        assert offered(f"tracefire {command} -- trainer-o") == ["trainer-of-mine"]
        assert "train-it.py" in offered(f"tracefire {command} -- sh train-")


# ---- manual pages ----


def roff(text):
    groff = shutil.which("groff")
    if not groff:
        pytest.skip("no groff here")
    done = subprocess.run(
        [groff, "-man", "-Tascii", "-ww", "-P-c", "-P-b", "-P-u"], input=text, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout


def test_every_manual_page_is_proper_roff(cli):
    for words in ([], *([c] for c in cli.commands())):
        page = cli(*words, "--man").out
        name = "-".join(["tracefire", *words])
        text = roff(page)
        assert text.startswith(f"{name.upper()}(1)")
        for heading in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "SEE ALSO"):
            assert f"\n{heading}\n" in text
        assert f"{name} - " in text
        for option in re.findall(r"^  (?:-\w, )?(--[a-z-]+)", cli(*words, "--help").out, re.M):
            assert option in text


def test_the_program_page_tells_statuses_variables_and_files(cli):
    text = roff(cli("--man").out)
    for word in ("EXIT STATUS", "ENVIRONMENT", "FILES", "NO_COLOR", "/etc/tracefire/config", "130"):
        assert word in text
    for command in cli.commands():
        assert f"tracefire-{command}(1)" in text


def test_the_build_wrote_them(cli):
    share = BUILD / "share"
    if not share.exists():
        pytest.skip("build/share is made by a full build")
    pages = {p.name for p in (share / "man/man1").iterdir()}
    assert pages == {"tracefire.1", *(f"tracefire-{c}.1" for c in cli.commands())}
    assert (share / "man/man1/tracefire-devices.1").read_text() == cli("devices", "--man").out
    assert (share / "bash-completion/completions/tracefire").read_text() == cli("completion", "bash").out
    assert (share / "zsh/site-functions/_tracefire").read_text() == cli("completion", "zsh").out
    assert (share / "fish/vendor_completions.d/tracefire.fish").read_text() == cli("completion", "fish").out


def test_writing_them_where_nobody_may_write(cli):
    done = cli("--write-manual", "/proc/nothing", status=1)
    assert "cannot be written" in done.err
