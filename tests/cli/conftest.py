# SPDX-License-Identifier: Apache-2.0
"""Runs the program build/bin/tracefire as a person's shell would."""

import glob
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

from json_schema import errors

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
import emulated_libraries  # noqa: E402

BUILD = pathlib.Path(os.environ.get("TRACEFIRE_BUILD_DIR", ROOT / "build"))
PROGRAM = BUILD / "bin" / "tracefire"
SCHEMAS = {
    json.loads(path.read_text())["properties"]["schema"]["const"]: json.loads(path.read_text())
    for path in (ROOT / "schema" / "cli").glob("*.json")
}


def pytest_collection_modifyitems(items):
    if not PROGRAM.exists():
        for item in items:
            if item.path.parent == pathlib.Path(__file__).parent:
                item.add_marker(pytest.mark.skip(f"{PROGRAM} is not built: run make"))


def tree_of(name, root):
    """A machine's files below `root`: one of the fixtures of the doctor's own tests."""
    (fixture,) = [f for f in json.loads((ROOT / "tests/data/doctor/fixtures.json").read_text()) if f["id"] == name]
    for path, content in fixture["files"].items():
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            file.write_text(content)
        elif "symlink" in content:
            file.symlink_to(content["symlink"])
        else:
            file.touch()
    return root


class Cli:
    """The program with an environment of its own: an empty home, no setting, no terminal."""

    def __init__(self, home):
        self.home = home
        self.wrapper = []  # a program that runs ours, with its options
        kept = {k: v for k, v in os.environ.items() if not re.match("TRACEFIRE_|XDG_|NO_COLOR|COLUMNS", k)}
        self.env = {**kept, "HOME": str(home), "TERM": "xterm-256color"}
        # Added by tests of commands that need a GPU's NVML: a stand-in with one H200.
        (home / "driver").mkdir()
        (home / "driver" / "libnvidia-ml.so.1").symlink_to(BUILD / "tests" / "libtf_fake_nvml_new.so")
        self.nvml = {"TRACEFIRE_CUDA_PATH": str(home / "driver")}

    def __call__(self, *words, status=0, env=None, **options):
        """Runs `tracefire WORDS`; env adds variables, or removes those that are None."""
        all_env = {**self.env, **(env or {})}
        all_env = {k: v for k, v in all_env.items() if v is not None}
        done = subprocess.run(
            [*self.wrapper, PROGRAM, *words], capture_output=True, timeout=120, env=all_env, **options
        )
        done.out = done.stdout.decode()
        done.err = done.stderr.decode()
        if status is not None:
            assert done.returncode == status, (words, done.returncode, done.out, done.err)
        return done

    def json(self, *words, **options):
        """The document that a command prints with --json; it must fit its published schema."""
        done = self(*words, "--json", **options)
        document = json.loads(done.stdout)
        assert document["schema"] in SCHEMAS, "schema/cli/ has no such schema"
        problems = list(errors(document, SCHEMAS[document["schema"]]))
        assert not problems, problems
        return document

    def commands(self):
        section = self("--help").out.split("\ncommands:\n")[1].split("\n\n")[0]
        return re.findall(r"^  (\w+)", section, re.M)

    def config(self, text, folder=".config"):
        path = self.home / folder / "tracefire" / "config"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path


@pytest.fixture
def cli(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    return Cli(home)


@pytest.fixture
def emulated(cli, tmp_path):
    """Environment in which the driver and its libraries are the emulator of the C++ tests."""
    missing = emulated_libraries.what_is_missing(BUILD, kernels=False)
    if missing:
        pytest.skip(missing)
    (tmp_path / "emulated").mkdir()
    return emulated_libraries.make(BUILD, tmp_path / "emulated")


@pytest.fixture
def emulated_kernels(emulated):
    """The same where kernels are run, not only devices listed: they are built for the host."""
    missing = emulated_libraries.what_is_missing(BUILD)
    if missing:
        pytest.skip(missing)
    return emulated


@pytest.fixture
def no_toolkit(cli):
    """Hides every CUDA toolkit and package of this machine from the program."""
    for name in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX"):
        cli.env.pop(name, None)
    toolkits = {os.path.realpath(t) for root in ("/usr/local", "/opt") for t in glob.glob(f"{root}/cuda*")}
    toolkits = sorted(t for t in toolkits if os.path.isdir(t))
    if toolkits:
        # A mount namespace of its own, in which empty folders lie over them.
        mounts = "".join(f"mount -t tmpfs none {shlex.quote(t)} && " for t in toolkits)
        cli.wrapper = ["unshare", "--map-root-user", "--mount", "sh", "-c", mounts + 'exec "$@"', "sh"]
        try:
            tried = subprocess.run([*cli.wrapper, "true"], capture_output=True, text=True)
        except FileNotFoundError:
            pytest.skip(f"no unshare to hide {', '.join(toolkits)} with")
        if tried.returncode:
            pytest.skip(f"{', '.join(toolkits)} cannot be hidden here: {tried.stderr.strip()}")
    libraries = [f"{stem}.so.{major}" for stem in ("libnvrtc", "libcublasLt") for major in (11, 12, 13)]
    code = "import ctypes, sys\nfor name in sys.argv[1:]:\n  try: print(ctypes.CDLL(name)._name)\n  except OSError: pass"
    found = subprocess.run(
        [*cli.wrapper, sys.executable, "-c", code, *libraries], capture_output=True, text=True, env=cli.env
    ).stdout.split()
    if found:
        pytest.skip(f"the system's loader knows {', '.join(found)}, which cannot be hidden")
