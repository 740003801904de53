# SPDX-License-Identifier: Apache-2.0
"""Unpacks the tarball that `make dist` made, and runs its program as people do."""

import importlib.machinery
import importlib.util
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import tarfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TRACEFIRE_BUILD_DIR", ROOT / "build"))


def load_make_dist():
    loader = importlib.machinery.SourceFileLoader("make_dist", str(ROOT / "scripts" / "make_dist"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("make_dist", loader))
    loader.exec_module(module)
    return module


def find_tarball():
    """The tarball of this machine's processor and "", or None and why there is none to test."""
    found = sorted((ROOT / "dist").glob(f"tracefire-tools-*-linux-{platform.machine()}.tar.gz"))
    if not found:
        return None, "no tarball in dist/: run make dist"
    with tarfile.open(found[-1]) as archive:
        version = archive.extractfile(archive.getnames()[0] + "/VERSION").read().decode()
    of = re.search(r"^commit +(\w+)", version, re.M)[1]
    head = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True)
    if head.returncode == 0 and of not in ("unknown", head.stdout.strip()):
        return None, f"{found[-1].name} was made from commit {of}, not from this one: run make dist"
    return found[-1], ""


class Tools:
    """The unpacked tarball, with nothing of this machine's settings in the environment."""

    def __init__(self, folder, home):
        self.folder = folder
        self.program = folder / "bin" / "tracefire"
        kept = {k: v for k, v in os.environ.items() if not re.match("TRACEFIRE_|XDG_|NO_COLOR|COLUMNS|LD_", k)}
        self.env = {**kept, "HOME": str(home), "TERM": "dumb"}

    def __call__(self, *words, status=0, program=None, env=None, **options):
        done = subprocess.run([program or self.program, *words], capture_output=True, text=True, timeout=60,
                              stdin=subprocess.DEVNULL, env={**self.env, **(env or {})}, **options)  # fmt: skip
        if status is not None:
            assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
        return done

    def commands(self):
        section = self("--help").stdout.split("\ncommands:\n")[1].split("\n\n")[0]
        return re.findall(r"^  ([\w-]+)", section, re.M)


@pytest.fixture(scope="session")
def tarball():
    found, why_not = find_tarball()
    return found or pytest.skip(why_not)


@pytest.fixture(scope="session")
def unpacked(tarball, tmp_path_factory):
    """Unpacked, then moved: nothing may hold the place where it was first."""
    first = tmp_path_factory.mktemp("first")
    subprocess.run(["tar", "-xzf", tarball, "-C", first], check=True)
    (folder,) = first.iterdir()
    place = tmp_path_factory.mktemp("a place") / "tools"
    shutil.move(folder, place)
    return place


@pytest.fixture
def tools(unpacked, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    return Tools(unpacked, home)


def doctor_fixtures():
    return json.loads((ROOT / "tests" / "data" / "doctor" / "fixtures.json").read_text())


def lay_out(fixture, root):
    """The file tree of a fixture below `root`."""
    for path, content in fixture["files"].items():
        full = root / path.lstrip("/")
        full.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, dict) and "symlink" in content:
            full.symlink_to(content["symlink"])
        else:
            full.write_text(content if isinstance(content, str) else "")
    return root
