# SPDX-License-Identifier: Apache-2.0
"""docs/add-an-op.md adds a working operation: its changes are applied to a copy, built and run."""
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("TRACEFIRE_BUILD_DIR", ROOT / "build"))


@pytest.fixture
def example(tmp_path):
    """A folder with the files that the page changes, changed; and their names."""
    changes = subprocess.run([sys.executable, ROOT / "scripts" / "doc_changes", ROOT / "docs" / "add-an-op.md"],
                             check=True, capture_output=True, text=True).stdout
    names = [line.removeprefix("+++ b/") for line in changes.splitlines() if line.startswith("+++ b/")]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    # Outside of a repository `git apply` changes the files below the folder it runs in.
    subprocess.run(["git", "apply", "-"], input=changes, text=True, check=True, cwd=tmp_path,
                   env={**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)})
    return tmp_path, names


def compile_command(name):
    """How the build compiles a file, as a list of words."""
    file = BUILD / "compile_commands.json"
    if not file.exists():
        pytest.skip("nothing is built")
    for entry in json.loads(file.read_text()):
        if entry["file"] == str(ROOT / name):
            return shlex.split(entry["command"])
    raise AssertionError(f"{name} is not part of the build")


def compile_changed(folder, name, *options):
    """Compiles the changed copy of a file; returns the object's name in the build."""
    words = compile_command(name)
    made = words[words.index("-o") + 1]
    target = folder / (name.replace("/", "_") + ".o")
    words[words.index("-o") + 1] = str(target)
    words[words.index(str(ROOT / name))] = str(folder / name)
    subprocess.run([*words, *options], check=True, cwd=BUILD)
    return made, target


def test_changes_apply_to_every_kind_of_file(example):
    folder, names = example
    rooms = {"/".join(name.split("/")[:3]) for name in names}
    assert rooms == {"src/core/ops", "src/backends/ref", "src/backends/cpu", "tests/ops/cases_compute.cpp"}
    for name in names:
        assert "softsign" in (folder / name).read_text()


def test_the_row_compiles(example):
    folder, names = example
    row = next(name for name in names if name.startswith("src/core/ops/"))
    compile_changed(folder, row, "-fsyntax-only")


@pytest.mark.deep
def test_the_operation_works(example):
    folder, names = example
    if not (BUILD / "tests" / "test_ops").exists():
        pytest.skip("test_ops is not built")
    objects = dict(compile_changed(folder, name) for name in names)
    link = subprocess.run(["ninja", "-C", str(BUILD), "-t", "commands", "test_ops"], check=True,
                          capture_output=True, text=True).stdout.splitlines()[-1]
    for made, target in objects.items():
        assert link.count(made) == 1
        link = link.replace(made, shlex.quote(str(target)))
    # Beside test_ops, from where libraries are found.
    program = BUILD / "tests" / "example_ops"
    link = link.replace("-o tests/test_ops", "-o tests/example_ops")
    subprocess.run(link, shell=True, check=True, cwd=BUILD)
    table = BUILD / "tests" / "ops_support.json"
    before = table.read_text() if table.exists() else "[]"
    done = subprocess.run([str(program)], capture_output=True, text=True)
    program.unlink()
    support = json.loads(table.read_text())
    table.write_text(before)
    assert done.returncode == 0, done.stdout[-3000:]
    # The support case lists the new operation with its kernel.
    assert {row["kernel"] for row in support if row["op"] == "softsign" and row["device"] == "/CPU:0"} == {"cpu_softsign"}
