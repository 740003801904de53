# SPDX-License-Identifier: Apache-2.0
"""A program of one's own is built against an installation, as docs/cpp-program.md tells."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TRACEFIRE_BUILD_DIR", ROOT / "build")).resolve()
PAGE = (ROOT / "docs" / "cpp-program.md").read_text()

pytestmark = pytest.mark.slow


def written(name):
    """The text that the page writes into a file of this name."""
    return re.search(rf"cat > \S*/{name} <<'END'\n(.*?)^END$", PAGE, re.S | re.M).group(1)


def run(*command, **more):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    if not (BUILD / "lib" / "libtracefire.so").exists() or not (BUILD / "bin" / "tracefire").exists():
        pytest.skip(f"{BUILD} is not built: run make")
    folder = tmp_path_factory.mktemp("installed")
    run("cmake", "--install", BUILD, "--component", "cpp", "--prefix", folder / "first")
    (folder / "first").rename(folder / "moved")  # nothing in it names the place where it was made
    return folder / "moved"


def has_no_path_of(prefix, *others):
    for path in prefix.rglob("*"):
        if path.suffix in (".cmake", ".pc", ".h"):
            text = path.read_text()
            for other in others:
                assert str(other) not in text, f"{path} names {other}"


def check_program(program):
    assert run(program, env={"PATH": "/usr/bin:/bin"}) == "14\n"


def test_installed_files_name_no_other_place(prefix):
    has_no_path_of(prefix, ROOT, BUILD, prefix.parent / "first")
    for header in ("tensor.h", "ops.h", "error_codes.h", "version.h"):
        assert (prefix / "include" / "tracefire" / header).exists()


def test_version_header(prefix):
    text = (prefix / "include" / "tracefire" / "version.h").read_text()
    version = re.search(r'TRACEFIRE_VERSION "(.*)"', text).group(1)
    assert f"project(tracefire VERSION {version} " in (ROOT / "CMakeLists.txt").read_text()


@pytest.mark.parametrize("kind", ["installation", "build"])
def test_cmake_finds_the_package(prefix, tmp_path, kind):
    for name in ("sum.cpp", "CMakeLists.txt"):
        (tmp_path / name).write_text(written(name))
    where = f"-DCMAKE_PREFIX_PATH={prefix}" if kind == "installation" else f"-DTracefire_DIR={BUILD}"
    run("cmake", "-S", tmp_path, "-B", tmp_path / "made", where)
    run("cmake", "--build", tmp_path / "made")
    check_program(tmp_path / "made" / "sum")


def test_cmake_refuses_another_version(prefix, tmp_path):
    (tmp_path / "sum.cpp").write_text(written("sum.cpp"))
    (tmp_path / "CMakeLists.txt").write_text(written("CMakeLists.txt").replace("Tracefire 0.1", "Tracefire 7.0"))
    done = subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "made", f"-DCMAKE_PREFIX_PATH={prefix}"],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode != 0
    assert "7.0" in done.stderr


def test_pkg_config(prefix, tmp_path):
    if shutil.which("pkg-config") is None:
        pytest.skip("needs pkg-config")
    (libraries,) = prefix.glob("lib*/**/pkgconfig")
    env = dict(os.environ, PKG_CONFIG_PATH=str(libraries))
    (tmp_path / "sum.cpp").write_text(written("sum.cpp"))
    flags = run("pkg-config", "--cflags", "--libs", "tracefire", env=env).split()
    libdir = run("pkg-config", "--variable=libdir", "tracefire", env=env).strip()
    run(os.environ.get("CXX", "c++"), "-std=c++20", tmp_path / "sum.cpp", "-o", tmp_path / "sum", *flags,
        f"-Wl,-rpath,{libdir}")
    check_program(tmp_path / "sum")


def test_every_public_header_compiles_alone(prefix, tmp_path):
    headers = sorted(path.name for path in (prefix / "include" / "tracefire").glob("*.h"))
    assert len(headers) >= 16
    source = tmp_path / "alone.cpp"
    compiler = os.environ.get("CXX", "c++")
    for header in headers:
        source.write_text(f"#include <tracefire/{header}>\n#include <tracefire/{header}>\nint main() {{}}\n")
        run(compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", prefix / "include", source)
