# SPDX-License-Identifier: Apache-2.0
"""The scripts that set up, build and test run on Python 3.8, and without the Python parts."""

import ast
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOR_NEWER = {"make_wheel", "generate_stubs.py"}  # run by .venv's Python alone
# What Python 3.9 to 3.11 brought; a call of it would fail only when it is reached.
NEWER = re.compile(
    r"\.remove(prefix|suffix)\(|functools\.cache\b|waitstatus_to_exitcode|is_relative_to|with_stem\("
    r"|hardlink_to|strict=|itertools\.pairwise|\bzoneinfo\b|\bgraphlib\b|\btomllib\b|\bExceptionGroup\b"
    r"|bit_count\(|random\.randbytes|math\.lcm|ast\.unparse"
)


def scripts():
    for path in sorted((ROOT / "scripts").rglob("*")):
        if path.is_file() and path.name not in FOR_NEWER and "__pycache__" not in path.parts:
            with open(path, "rb") as file:
                first = file.readline()
            if path.suffix == ".py" or b"python3" in first:
                yield path


class Newer(ast.NodeVisitor):
    """Things that only running would find: dict | dict, and list[int] that is evaluated."""

    def __init__(self):
        self.found = []

    def visit_BinOp(self, node):
        if isinstance(node.op, ast.BitOr) and any(
            isinstance(side, (ast.Dict, ast.DictComp)) for side in (node.left, node.right)
        ):
            self.found.append(f"line {node.lineno}: dict | dict")
        self.generic_visit(node)

    def visit_Subscript(self, node):
        if isinstance(node.value, ast.Name) and node.value.id in ("list", "dict", "tuple", "set"):
            self.found.append(f"line {node.lineno}: {node.value.id}[…]")
        self.generic_visit(node)


@pytest.mark.parametrize("path", list(scripts()), ids=lambda p: p.name)
def test_a_build_script_is_python_3_8(path):
    text = path.read_text()
    tree = ast.parse(text, str(path), feature_version=(3, 8))
    visitor = Newer()
    visitor.visit(tree)
    assert not visitor.found
    assert not NEWER.search(text), NEWER.search(text)[0]


def older_pythons():
    names = [f"python3.{minor}" for minor in (8, 9, 10)]
    found = [shutil.which(name) for name in names]
    found += glob.glob(os.path.expanduser("~/.pyenv/versions/3.[89].*/bin/python"))
    found += glob.glob(os.path.expanduser("~/.pyenv/versions/3.10.*/bin/python"))
    for python in filter(None, found):
        code = "import sys; sys.exit(not (3, 8) <= sys.version_info < (3, 11))"
        if subprocess.run([python, "-c", code], capture_output=True).returncode == 0:
            yield python


@pytest.mark.slow
def test_an_older_python_generates_and_checks(tmp_path):
    python = next(older_pythons(), None)
    if python is None:
        pytest.skip("no Python 3.8 to 3.10 here")
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": ""}

    def run(*words):
        done = subprocess.run([python, *words], capture_output=True, text=True, timeout=120, env=env, cwd=ROOT)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    for generator in sorted((ROOT / "scripts" / "generate").glob("*.py")):
        for output in run(generator, "--root", ROOT, "--list-outputs").split():
            (tmp_path / output).parent.mkdir(parents=True, exist_ok=True)  # as ninja does
        run(generator, "--root", ROOT, "--out", tmp_path)
    run("scripts/generate_errors.py", "schema/errors.json", tmp_path / "error_codes.h")
    for name in ("budgets", "includes", "layout", "words"):
        run(f"scripts/lint/{name}.py")
    for name in ("run_tests", "run_doc_blocks", "make_dist"):
        run(f"scripts/{name}", "--help")
    deps = os.environ.get("TRACEFIRE_DEPS_DIR", str(ROOT / "build" / "deps"))
    if pathlib.Path(deps, ".stamps").is_dir():  # else it would download
        run("scripts/fetch_deps")


# ---- the demo and set-up without the Python parts ----


@pytest.fixture
def tree(tmp_path):
    """scripts/ and requirements/ in a tree whose programs only say how they were called."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")

    def program(path, says):
        path = tmp_path / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#!/bin/sh\necho {says} "$@" PYTHONPATH=$PYTHONPATH\n')
        path.chmod(0o755)

    program("build/bin/tracefire", "library")
    program(".venv/bin/python", "keras")
    module = tmp_path / "build/python/tracefire/_core.abi3.so"
    module.parent.mkdir(parents=True)
    module.touch()
    return tmp_path


def demo(tree, *words, **env):
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHON", "BUILD", "PYTHONPATH")}
    done = subprocess.run(
        [tree / "scripts" / "demo", *words], capture_output=True, text=True, timeout=30, env={**kept, **env}, cwd="/"
    )
    assert done.returncode == 0, done.stderr
    return done


def test_the_demo_runs_keras_where_it_can(tree):
    done = demo(tree, "--epochs", "3")
    # The command line runs it, to report on it.
    assert done.stdout.split()[:13] == [
        "library", "demo", "--json", "build/demo.json", "--html", "build/demo.html", "--", "env",
        "PYTHONPATH=build/python", ".venv/bin/python", "-m", "tracefire.demo", "--epochs",
    ]  # fmt: skip
    assert done.stderr == ""


@pytest.mark.parametrize("lack", ["asked for", "no .venv", "no module"])
def test_the_demo_runs_the_library_where_keras_cannot(tree, lack):
    env = {}
    if lack == "asked for":
        env = {"PYTHON": "none"}
    elif lack == "no .venv":
        shutil.rmtree(tree / ".venv")
    else:
        (tree / "build/python/tracefire/_core.abi3.so").unlink()
    done = demo(tree, "--epochs", "3", **env)
    assert done.stdout.split()[:8] == [
        "library", "demo", "--json", "build/demo.json", "--html", "build/demo.html", "--epochs", "3",
    ]  # fmt: skip
    assert done.stderr.startswith("demo: without Keras, because ")


def test_set_up_can_leave_the_python_parts_out(tree):
    shutil.rmtree(tree / ".venv")
    deps = os.environ.get("TRACEFIRE_DEPS_DIR", str(ROOT / "build" / "deps"))
    if not pathlib.Path(deps, ".stamps").is_dir():
        pytest.skip("build/deps is not complete, so set-up would download")
    missing = subprocess.run(
        f"dpkg-query -W $(grep -hv '^#' {ROOT}/requirements/apt.txt) >/dev/null 2>&1", shell=True
    ).returncode
    if missing:
        pytest.skip("packages of requirements/apt.txt are missing, so set-up would install them")
    done = subprocess.run(
        [tree / "scripts" / "setup"], capture_output=True, text=True, timeout=60, cwd="/",
        env={**os.environ, "PYTHON": "none", "TRACEFIRE_DEPS_DIR": deps},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "the Python parts" in done.stdout and "are left out" in done.stdout
    assert not (tree / ".venv").exists()


def chosen_python(tree, name, **env):
    """What set-up's function prints for PYTHON=name, and its exit status."""
    text = (ROOT / "scripts/setup").read_text()
    function = re.search(r"^find_python\(\) \{.*?^\}", text, re.M | re.S)[0]
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"{function}\nif ! find_python; then exit 3; fi"],
        capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHON": name, "PYENV_ROOT": str(tree / "pyenv"), **env},
    )  # fmt: skip


@pytest.fixture
def unused(tree):
    """A Python's name that pyenv knows, whose shim does not start and whose own program does."""
    name = "python3.99"
    shim, own = tree / "shims" / name, tree / "pyenv" / "versions" / "3.99.1" / "bin" / name
    for path, text in ((shim, f"echo 'pyenv: {name}: command not found' >&2; exit 127"),
                       (own, f'exec "{sys.executable}" "$@"')):  # fmt: skip
        path.parent.mkdir(parents=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    return name, {"PATH": f"{shim.parent}:{os.environ['PATH']}"}, own


def test_set_up_takes_the_python_that_is_named_or_none(tree, unused):
    name, env, own = unused
    if chosen_python(tree, sys.executable).returncode:
        pytest.skip("this Python has no headers or no venv")
    assert chosen_python(tree, name, **env).returncode == 0
    own.unlink()
    done = chosen_python(tree, name, **env)
    assert (done.returncode, done.stdout) == (3, "")


def test_a_wheel_is_made_for_the_python_that_is_named(tree, unused):
    name, env, own = unused
    program = f"import runpy; print(runpy.run_path({str(ROOT / 'scripts/make_wheel')!r})['find_python']({name!r})[0])"

    def find():
        return subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=60,
            env={**os.environ, **env, "PYENV_ROOT": str(tree / "pyenv")},
        )  # fmt: skip

    done = find()
    assert (done.returncode, done.stdout) == (0, f"{own}\n"), done.stderr
    own.unlink()
    done = find()
    assert done.returncode == 1
    assert f"does not start: pyenv: {name}: command not found; name a Python 3.11" in done.stderr


def test_set_up_chooses_between_the_names_of_a_package(tree):
    """`a|b` is there where either is; else the first is asked for that the system knows."""
    tools = tree / "tools"
    tools.mkdir()
    for name, text in {
        "dpkg-query": 'case "$*" in *" here") echo installed;; esac',
        "apt-cache": 'case "$*" in *" known") exit 0;; esac; exit 1',
    }.items():
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    function = re.search(r"^choose_package\(\) \{.*?^\}", (ROOT / "scripts/setup").read_text(), re.M | re.S)[0]

    def chosen(line):
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f'{function}\nchoose_package "$1"', "bash", line],
            capture_output=True, text=True, timeout=30, check=True,
            env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"},
        ).stdout  # fmt: skip

    assert chosen("here") == ""
    assert chosen("gone|here") == ""
    assert chosen("gone") == "gone"
    assert chosen("gone|known") == "known"
    assert chosen("gone|lost") == "gone"


# ---- what an installation ships ----

BUILD = pathlib.Path(os.environ.get("TRACEFIRE_BUILD_DIR", ROOT / "build"))
# Beginning of a name in docs/dependencies.md: a file of the folder of licences that holds its terms, and words of it.
LICENCES = {
    "oneDNN": ("onednn/LICENSE", "Apache License"),
    "Xbyak": ("libxbyak-dev.txt", "Redistribution and use in source and binary forms"),
    "Highway": ("libhwy-dev.txt", "Apache License"),
    "nlohmann/json": ("nlohmann-json3-dev.txt", "Permission is hereby granted, free of charge"),
    "libdeflate": ("libdeflate-dev.txt", "Permission is hereby granted, free of charge"),
    "CLI11": ("libcli11-dev.txt", "Redistribution and use in source and binary forms"),
    "nanobind": ("nanobind.txt", "Redistribution and use in source and binary forms"),
    "libgomp": ("libgomp1.txt", "runtime library exception"),
}


def shipped_libraries():
    """Names of the first table of docs/dependencies.md whose last column says that they are shipped."""
    text = (ROOT / "docs" / "dependencies.md").read_text().split("## Libraries that Tracefire is built from\n")[1]
    rows = [line.strip("| ").split(" | ") for line in text.split("\n\n")[0].splitlines()[2:]]
    return [row[0] for row in rows if row[-1] != "nothing"]


@pytest.mark.parametrize("component, folder", [("cpp", "share/doc/tracefire"), ("python", "tracefire")])
def test_an_installation_ships_the_licences(tmp_path, component, folder):
    needed = BUILD / "bin" / "tracefire" if component == "cpp" else BUILD / "python" / "tracefire" / "_core.pyi"
    if not needed.exists() or not shutil.which("cmake"):
        pytest.skip(f"needs cmake and {needed}: run make")
    done = subprocess.run(
        ["cmake", "--install", BUILD, "--component", component, "--prefix", tmp_path], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    names = shipped_libraries()
    assert len(names) == len(LICENCES)
    for name in names:
        (key,) = [key for key in LICENCES if name.startswith(key)]
        if component == "cpp" and key in ("nanobind", "libgomp"):  # in the wheel alone
            continue
        file, words = LICENCES[key]
        text = " ".join((tmp_path / folder / "licences" / file).read_text().split())
        assert words.lower() in text.lower(), name


def test_a_wheel_builds_what_it_installs():
    """scikit-build-core builds the targets that pyproject.toml names, and no others."""
    rules = (ROOT / "cmake" / "PythonModule.cmake").read_text()
    installed = set(re.findall(r"^install\(TARGETS (\w+) [^)]*COMPONENT python\)", rules, re.M))
    installed |= set(re.findall(r"^install\((?:PROGRAMS|FILES) \"\$<TARGET_FILE:(\w+)>", rules, re.M))
    (line,) = re.findall(r"^build\.targets = (.+)$", (ROOT / "pyproject.toml").read_text(), re.M)
    built = set(re.findall(r'"(\w+)"', line)) | {"tracefire"}  # which the module links to
    assert {"tracefire_python", "tracefire_inject", "tracefire_program"} <= installed
    assert installed <= built


def test_the_bindings_keep_to_the_stable_abi():
    # The wheel for 3.12 and newer is built with Py_LIMITED_API, which lacks these macros; .venv's
    # Python may be older, and does not notice.
    macro = re.compile(r"\bPy[A-Z]\w*_(GET_\w+|SET_ITEM|AS_[A-Z]+|AsUTF8)\b")
    found = [
        f"{path.name}:{number}: {match.group()}"
        for path in sorted((ROOT / "python" / "bindings").glob("*.[ch]*"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for match in macro.finditer(line)
    ]
    assert found == []


def test_a_python_reads_the_packages_and_their_pth_as_they_are_now(tmp_path):
    """Nothing of the packages is copied to where it would grow old."""
    source, target = tmp_path / "python", tmp_path / "it's built"
    (source / "package").mkdir(parents=True)
    (source / "package" / "__init__.py").write_text("")
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    python = venv / "bin" / "python"
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = pathlib.Path(subprocess.check_output([python, "-c", ask], text=True).strip())
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    link = ROOT / "scripts" / "link_packages.py"

    def build():
        subprocess.run([python, link, source, target], check=True, env=env)

    def seen():
        code = "import sys, package; print(getattr(sys, 'told', None))"
        return subprocess.check_output([python, "-c", code], text=True, env=env).strip()

    build()
    assert not list(site.iterdir())  # a Python that was not told of the packages is left alone
    # As set-ups of earlier versions left it: a path, and a copy that has grown old.
    (site / "tracefire-development.pth").write_text(f"{target}\n")
    (site / "tracefire.pth").write_text("import sys; sys.told = 'old'\n")
    for word in ("new", "newer"):
        (source / "tracefire.pth").write_text(f"import sys; sys.told = {word!r}\n")
        if word == "new":
            build()
        assert seen() == word
    # An installed wheel's file stays.
    (site / "tracefire.pth").write_text("import sys\n")
    (site / "tracefire-0.1.0.dist-info").mkdir()
    subprocess.run([python, link, "--enter", target], check=True, env=env)
    assert (site / "tracefire.pth").exists() and seen() == "newer"
