# SPDX-License-Identifier: Apache-2.0
"""Outputs that cannot be made are refused before anything runs, and nothing is left behind."""

import json
import os
import socket
import subprocess

import pytest

from conftest import PROGRAM

# An option that names what is to be written, and the program that must not run.
FILES = {
    "check": ["check", "--no-tests", "--quiet", "--html", "OUT", "--", "touch", "ran"],
    "demo --json": ["demo", "--epochs", "1", "--json", "OUT"],
    "demo --html": ["demo", "--html", "OUT", "--", "touch", "ran"],
    "doctor": ["doctor", "--no-tests", "--output", "OUT"],
    "monitor": ["monitor", "--count", "1", "--log", "OUT"],
}
FOLDERS = {
    "prove": ["prove", "--out", "OUT", "--", "touch", "ran"],
    "profile": ["profile", "--out", "OUT", "--", "touch", "ran"],
}


def refused(cli, folder, words, out, said):
    """Runs the command in `folder`, which stays as it is."""
    before = tree_below(folder)
    done = cli(*[str(out) if word == "OUT" else word for word in words], status=2, cwd=folder)
    assert said in done.err, done.err
    assert "accuracy" not in done.out and "1 of 3" not in done.err
    assert tree_below(folder) == before
    return done


def tree_below(folder):
    return sorted((str(p), p.lstat().st_mode, p.lstat().st_size) for p in folder.rglob("*"))


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_cannot_be_made(cli, place, name):
    (place / "folder").mkdir()
    (place / "file").write_text("old")
    (place / "folder" / "file").write_text("old")
    (place / "link").symlink_to("nowhere/file")
    for out, said in (
        ("missing/file", "No such file or directory"),
        ("file/below", "Not a directory"),
        ("folder", "folder" if name == "doctor" else "Is a directory"),
        ("x" * 300, "File name too long"),
        ("/proc/file", ""),
        ("link", ""),
    ):
        refused(cli, place, FILES[name], out, said)


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_that_cannot_be_made(cli, place, name):
    (place / "file").write_text("old")
    (place / "full").mkdir()
    (place / "full" / "file").write_text("old")
    for out, said in (
        ("file", "is no folder"),
        ("file/below", "Not a directory"),
        ("full", "not empty"),
        ("new/other/" + "x" * 300, "File name too long"),
        ("/proc/no/folder", "could not be made"),
    ):
        refused(cli, place, FOLDERS[name], out, said)


@pytest.mark.parametrize("name", {**FILES, **FOLDERS})
def test_a_file_system_that_is_read_only(cli, place, name):
    (place / "old").write_text("old")
    (place / "empty").mkdir()
    mount = 'mount --bind "$PWD" "$PWD" && mount -o remount,bind,ro "$PWD" && cd "$PWD" && exec "$@"'
    cli.wrapper = ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, "sh"]
    tried = subprocess.run([*cli.wrapper, "touch", "file"], capture_output=True, text=True, cwd=place)
    if "Read-only file system" not in tried.stderr:
        pytest.skip(f"no file system can be made read-only here: {tried.stderr.strip()}")
    words = {**FILES, **FOLDERS}[name]
    for out in ("new", "empty" if name in FOLDERS else "old"):
        refused(cli, place, words, out, "Read-only file system")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("name", {**FILES, **FOLDERS})
def test_a_folder_that_may_not_be_written(cli, place, name):
    inner = place / "closed"
    inner.mkdir(mode=0o500)
    refused(cli, place, {**FILES, **FOLDERS}[name], "closed/new", "Permission denied")


def test_a_file_that_is_there_stays_until_there_is_a_report(cli, place):
    old = place / "page.html"
    old.write_text("old")
    cli("check", "--no-tests", "--quiet", "--html", old, "--", "sh", "-c", "cp page.html seen", cwd=place)
    assert (place / "seen").read_text() == "old" and old.read_text().startswith("<!DOCTYPE html>")
    assert old.stat().st_mode & 0o777 == 0o600


def test_a_page_goes_through_a_link_and_into_a_device(cli, place):
    """What is named is written to and not replaced, so that root does not lose /dev/null."""
    (place / "link").symlink_to("page.html")
    (place / "null").symlink_to("/dev/null")
    for name in ("link", "null"):
        cli("check", "--no-tests", "--quiet", "--html", name, "--", "true", cwd=place)
        assert (place / name).is_symlink()
    assert (place / "page.html").read_text().startswith("<!DOCTYPE html>")


def test_the_same_file_twice(cli, place):
    (place / "link").symlink_to("file")
    for words in (
        ["demo", "--json", "file", "--html", "file"],
        ["demo", "--json", "file", "--html", "./file"],
        ["demo", "--json", "link", "--html", place / "file"],
    ):
        assert "Two files were expected" in cli(*words, status=2, cwd=place).err
    assert not (place / "file").exists()
    (place / "file").write_text("{}")
    for words in (
        ["doctor", "--no-tests", "--log", "file", "-o", "link"],
        ["doctor", "--no-tests", "--data", "file", "-o", "./file"],
        ["doctor", "diff", "/", "file", "-o", "file"],
    ):
        assert "Two files were expected" in cli(*words, status=2, cwd=place).err
    assert (place / "file").read_text() == "{}"


def test_a_refusal_of_something_else_leaves_no_output_behind(cli, place):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = "127.0.0.1:%d" % taken.getsockname()[1]
        refused(cli, place, ["monitor", "--count", "1", "--serve", address, "--log", "OUT"], "log", "")
    nobody = subprocess.Popen(["true"])
    nobody.wait()
    for words in (["prove", "--attach", str(nobody.pid)], ["prove", "--from", "nothing"]):
        done = cli(*words, "--out", "new/proof", status=2, cwd=place)
        assert done.err and tree_below(place) == []


def test_a_result_that_has_no_room_leaves_the_one_of_before(cli, tmp_path):
    file = tmp_path / "demo.json"
    file.write_text('{"of": "before"}')
    cli.wrapper = ["bash", "-c", 'trap "" XFSZ; ulimit -f 1; exec "$@"', "bash"]  # files of 1 KiB at most
    done = cli("demo", "--epochs", "1", "--json", file, status=1)
    assert "[TF-E0404]" in done.err and "File too large" in done.err
    assert file.read_text() == '{"of": "before"}' and list(tmp_path.glob("demo*")) == [file]


def test_a_result_keeps_the_name_and_the_mode_of_what_it_replaces(cli, tmp_path):
    file, link = tmp_path / "demo.json", tmp_path / "link"
    file.write_text("{}")
    file.chmod(0o640)
    link.symlink_to(file)
    cli("demo", "--epochs", "1", "--json", link, status=1)
    assert link.is_symlink() and file.stat().st_mode & 0o777 == 0o640
    assert json.loads(file.read_text())["schema"] == "tracefire.demo/1"
