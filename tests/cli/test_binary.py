# SPDX-License-Identifier: Apache-2.0
"""The file build/bin/tracefire: what it links to, what it shows, and that it can be moved."""

import re
import shutil
import subprocess

import pytest

from conftest import BUILD, PROGRAM

LIBRARY = BUILD / "lib" / "libtracefire.so"


def needs(tool, path):
    """Skips where the tool is not installed, or the file was not carried to this machine."""
    if not shutil.which(tool):
        pytest.skip(f"needs {tool}")
    if not path.exists():
        pytest.skip(f"needs {path}, a file of the build folder")


def dynamic(path, tag):
    needs("readelf", path)
    text = subprocess.run(["readelf", "-d", path], check=True, capture_output=True, text=True).stdout
    return re.findall(rf"\({tag}\).*\[(.*)\]", text)


@pytest.mark.parametrize("path", [PROGRAM, LIBRARY], ids=lambda p: p.name)
def test_no_nvidia_library_is_linked(path):
    needed = dynamic(path, "NEEDED")
    assert needed
    foreign = [n for n in needed if re.match(r"lib(cuda|cublas|cudnn|nvrtc|nvidia|nccl|cupti|nvJitLink|cufft)", n)]
    assert not foreign
    if path == PROGRAM:
        assert any(n.startswith("libtracefire.so.") for n in needed)


def test_the_search_path_is_relative():
    (path,) = dynamic(PROGRAM, "RUNPATH") or dynamic(PROGRAM, "RPATH")
    assert path.split(":")[:2] == ["$ORIGIN", "$ORIGIN/../lib"]
    assert all(part.startswith("$ORIGIN") for part in path.split(":"))


def test_the_library_shows_one_name_of_the_command_line():
    needs("nm", LIBRARY)
    text = subprocess.run(["nm", "-DC", "--defined-only", LIBRARY], check=True, capture_output=True, text=True).stdout
    shown = [line.split(" ", 2)[2] for line in text.splitlines() if line.count(" ") >= 2]
    assert any(name.startswith("tracefire::run_command_line(") for name in shown)
    assert not [name for name in shown if "CLI::" in name or "tracefire::cli::" in name or "nlohmann" in name]


def test_it_runs_from_another_folder(cli, tmp_path):
    for folder in ("bin", "lib"):
        (tmp_path / "moved" / folder).mkdir(parents=True)
    shutil.copy(PROGRAM, tmp_path / "moved" / "bin")
    for name in [n for n in dynamic(PROGRAM, "NEEDED") + dynamic(LIBRARY, "NEEDED") if re.match("lib(tracefire|dnnl)", n)]:
        shutil.copy(BUILD / "lib" / name, tmp_path / "moved" / "lib" / name)
    env = {**cli.env, "LD_DEBUG": "libs"}
    env.pop("LD_LIBRARY_PATH", None)  # which is asked before the program's own path
    done = subprocess.run(
        [tmp_path / "moved/bin/tracefire", "version", "--json"],
        capture_output=True, text=True, timeout=60, cwd="/", env=env,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    loaded = re.findall(r"calling init: (\S*libtracefire\S*)", done.stderr)
    assert loaded and all(str(tmp_path) in path for path in loaded)


def test_it_can_be_installed(cli, tmp_path):
    """Program, library, manual pages and completions, where each is looked for below a prefix."""
    cmake = shutil.which("cmake")
    if not cmake or not (BUILD / "share").exists() or not (BUILD / "cmake_install.cmake").exists():
        pytest.skip("needs cmake and a full build")
    command = [cmake, "--install", BUILD, "--prefix", tmp_path, "--component", "cpp"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    program = tmp_path / "bin" / "tracefire"
    done = subprocess.run([program, "devices"], capture_output=True, text=True, timeout=60, env=cli.env)
    assert done.returncode == 0 and done.stdout.startswith("DEVICE"), done.stderr
    share = tmp_path / "share"
    assert (share / "man/man1/tracefire-devices.1").read_text() == cli("devices", "--man").out
    assert (share / "bash-completion/completions/tracefire").exists()


def test_it_needs_no_python(cli, tmp_path):
    """With nothing on PATH at all, and no variable of Python's."""
    env = {"HOME": str(tmp_path / "missing")}
    done = subprocess.run([PROGRAM, "devices"], capture_output=True, timeout=60, env=env)
    assert done.returncode == 0 and done.stdout.startswith(b"DEVICE")


def test_it_starts_quickly(cli):
    """Of the processor's time: waiting for it is not the program's fault."""
    times = []
    for _ in range(5):
        done = subprocess.run(
            ["bash", "-c", f"times_before=$(times); '{PROGRAM}' --version >/dev/null; times | tail -1"],
            capture_output=True, text=True, timeout=60, env=cli.env,
        )  # fmt: skip
        user, system = re.findall(r"(\d+)m([\d.]+)s", done.stdout)
        times.append(float(user[1]) + float(system[1]))
    assert min(times) < 0.2
