# SPDX-License-Identifier: Apache-2.0
"""The tarball of the tools: what its files need, and that every command works from where it was unpacked."""
import hashlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tarfile

import pytest

from conftest import BUILD, ROOT, doctor_fixtures, find_tarball, lay_out

sys.path.insert(0, str(ROOT / "tests" / "cli"))
from json_schema import errors  # noqa: E402

if find_tarball()[0] is None:
    pytest.skip(find_tarball()[1], allow_module_level=True)

OLDEST_GLIBC = (2, 31)  # Debian 11, Ubuntu 20.04
PLAIN_LIBRARIES = r"(libc|libm|libdl|libpthread|librt|ld-linux-x86-64|ld-linux-aarch64)\.so\.\d"


def elf_files(folder):
    return [p for p in folder.rglob("*") if p.is_file() and p.read_bytes()[:4] == b"\x7fELF"]


def readelf(option, file):
    return subprocess.run(["readelf", option, "--wide", file], check=True, capture_output=True, text=True).stdout


def test_sums_and_owners(tarball, unpacked):
    digest, name = tarball.with_name(tarball.name + ".sha256").read_text().split()
    assert name == tarball.name and digest == hashlib.sha256(tarball.read_bytes()).hexdigest()
    lines = (unpacked / "MANIFEST.sha256").read_text().splitlines()
    listed = {line.split("  ", 1)[1]: line.split("  ", 1)[0] for line in lines}
    files = {str(p.relative_to(unpacked)) for p in unpacked.rglob("*") if p.is_file()} - {"MANIFEST.sha256"}
    assert set(listed) == files
    for file, digest in listed.items():
        assert hashlib.sha256((unpacked / file).read_bytes()).hexdigest() == digest, file
    with tarfile.open(tarball) as archive:
        entries = archive.getmembers()
    assert {e.name.split("/")[0] for e in entries} == {tarball.name[: -len(".tar.gz")]}
    assert {(e.uid, e.gid) for e in entries} == {(0, 0)}
    assert all(e.isdir() or e.isfile() for e in entries)
    assert not [e.name for e in entries if e.mode & 0o022]
    assert tarball.stat().st_size < 5e6


def test_licences_of_what_is_linked_in(unpacked):
    for name, words in {"nlohmann-json3-dev": "MIT|Expat", "libcli11-dev": "BSD", "llvm-libcxx": "LLVM",
                        "llvm-libcxxabi": "LLVM", "llvm-libunwind": "LLVM", "zig": "MIT"}.items():  # fmt: skip
        assert re.search(words, (unpacked / "licences" / f"{name}.txt").read_text(errors="replace")), name
    assert "Apache License" in (unpacked / "LICENSE").read_text()


def test_files_need_an_old_c_library_and_nothing_else(unpacked):
    files = elf_files(unpacked)
    assert {p.name for p in files} == {"tracefire", "libtracefire_inject.so"}
    for file in files:
        for name in re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d", file)):
            assert re.fullmatch(PLAIN_LIBRARIES, name), (file, name)
        for path in re.findall(r"\(R(?:UN)?PATH\).*\[(.*)\]", readelf("-d", file)):
            assert all(part.startswith("$ORIGIN") for part in path.split(":")), (file, path)
        versions = re.findall(r"\b(GLIBC\w*|GLIBCXX|CXXABI|GCC)_(\d+(?:\.\d+)*)", readelf("-V", file))
        assert versions and {kind for kind, _ in versions} == {"GLIBC"}, (file, versions)
        newest = max(tuple(map(int, number.split("."))) for _, number in versions)
        assert newest <= OLDEST_GLIBC, (file, newest)
        assert not re.search(r"GNU_STACK.*RWE", readelf("-l", file)), f"{file} has an executable stack"
    assert re.search(r"Type:\s+DYN", readelf("-h", unpacked / "bin" / "tracefire")), "no fixed addresses"


def test_the_library_shows_one_symbol(unpacked):
    text = readelf("--dyn-syms", unpacked / "lib" / "libtracefire_inject.so")
    shown = [line.split()[-1] for line in text.splitlines() if re.search(r"(GLOBAL|WEAK)\s+DEFAULT\s+\d+ ", line)]
    assert shown == ["InitializeInjection"]


def test_the_library_loads_into_any_program(tools):
    code = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
assert library.InitializeInjection() in (0, 1)
print(sorted({l.split()[-1] for l in open('/proc/self/maps') if 'stdc++' in l or 'libc++' in l}))
"""
    library = tools.folder / "lib" / "libtracefire_inject.so"
    done = tools("-c", code, library, program=sys.executable)
    assert done.stdout == "[]\n" and done.stderr == ""


def test_runs_through_a_link_in_path(tools, tmp_path):
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "tracefire").symlink_to(tools.program)
    (bin_folder / "second").symlink_to("tracefire")
    empty = {"PATH": f"{bin_folder}:{os.environ['PATH']}"}
    for name in ("tracefire", "second"):
        line = f"{name} prove --quiet -- sh -c 'echo $CUDA_INJECTION64_PATH; exit 7'"
        done = subprocess.run(["sh", "-c", line], env={**tools.env, **empty}, cwd="/", capture_output=True, text=True)
        assert done.returncode == 7, done.stderr
        assert done.stdout.strip() == str(tools.folder.resolve() / "lib" / "libtracefire_inject.so")
    done = subprocess.run([tools.program, "--version"], env={}, cwd="/", capture_output=True, text=True)
    assert re.fullmatch(r"tracefire \d+\.\d+\.\d+\n", done.stdout)


def test_a_library_in_the_current_folder_is_not_used(tools, tmp_path):
    """Called by its name alone, the program knows its place from the system, not from that name."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    shutil.copy("/bin/true", folder / "libtracefire_inject.so")
    done = subprocess.run(["sh", "-c", "tracefire prove --print-env --out records"], cwd=folder, text=True,
                          capture_output=True, env={**tools.env, "PATH": f"{tools.program.parent}:/usr/bin:/bin"})  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert str(tools.folder.resolve() / "lib" / "libtracefire_inject.so") in done.stdout
    assert str(folder / "libtracefire_inject.so") not in done.stdout


def test_starts_at_once(tools):
    def seconds():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        tools("version")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds() for _ in range(10)) < 0.020


def test_commands_are_the_tools(tools):
    commands = tools.commands()
    assert {"check", "doctor", "prove", "monitor", "version", "explain", "completion", "help"} <= set(commands)
    assert not {"demo", "devices", "profile"} & set(commands), "these need the engine"
    for command in commands:
        text = tools(command, "--help").stdout + tools("help", command).stdout
        # Pages tell of commands that are here.
        for line in re.findall(r"^  (?:.*\| )?tracefire ([a-z][\w-]*)", text, re.M):
            assert line in commands, (command, line)


def test_pages_are_those_of_the_program(tools, tmp_path):
    tools("--write-manual", tmp_path / "share")
    made = {p.relative_to(tmp_path / "share") for p in (tmp_path / "share").rglob("*") if p.is_file()}
    assert {f"man/man1/tracefire-{c}.1" for c in tools.commands()} <= {str(p) for p in made}
    for path in made:
        assert (tools.folder / "share" / path).read_bytes() == (tmp_path / "share" / path).read_bytes()
    if not shutil.which("man"):
        pytest.skip("no man to format the pages with")
    done = tools("-M", tools.folder / "share" / "man", "tracefire-prove", program="man", env={"MANPAGER": "cat"})
    assert "tracefire-prove" in done.stdout and "--attach" in done.stdout


def test_bash_completes(tools):
    script = tools.folder / "share" / "bash-completion" / "completions" / "tracefire"
    code = f'source "{script}"; COMP_WORDS=(tracefire pro); COMP_CWORD=1; _tracefire; echo "${{COMPREPLY[@]}}"'
    assert tools("--norc", "-c", code, program="bash").stdout == "prove\n"


@pytest.mark.parametrize("fixture", doctor_fixtures(), ids=lambda f: f["id"])
def test_doctor_finds_what_the_full_build_finds(tools, tmp_path, fixture):
    root = lay_out(fixture, tmp_path / "root")
    words = ["doctor", "--root", root, "--json", *fixture.get("args", []), *fixture["expect"].get("args", [])]
    words += [word for name, value in fixture["env"].items() for word in ("--env", f"{name}={value}")]
    done = tools(*words, status=None)
    report = json.loads(done.stdout)
    kinds = {f["kind"] for f in report["findings"] if f["severity"] != "info"}
    assert kinds == set(fixture["expect"]["finding_kinds"])
    assert report["verdict"] == fixture["expect"]["verdict"]
    full = BUILD / "bin" / "tracefire-tools"  # the same program by this machine's compiler
    if full.exists():
        assert report == json.loads(tools(*words, program=full, status=None).stdout)


def test_prove_runs_a_program(tools, tmp_path):
    done = tools("prove", "--out", tmp_path / "proof", "--", "/bin/true")
    assert "on-cpu" in done.stderr
    report = json.loads((tmp_path / "proof" / "report.json").read_text())
    assert report["schema"].startswith("tracefire.prove/")


def test_prove_records_a_gpu_program(tools, tmp_path):
    """The injected library at work, in a program that calls a stand-in of CUPTI."""
    program, cupti = BUILD / "tests" / "tf_fake_gpu_program", BUILD / "tests" / "libtf_fake_cupti.so"
    if not program.exists() or not cupti.exists():
        pytest.skip("the stand-ins of a GPU program are not built: run make")
    (tmp_path / "libcupti.so.13").symlink_to(cupti)
    tools("prove", "--out", tmp_path / "out", "--", program, "training", "3", env={"TRACEFIRE_CUDA_PATH": str(tmp_path)})
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert list((tmp_path / "out").glob("p*.sum")), "the library recorded nothing"
    assert "kernel" in json.dumps(report)


def test_monitor_reads_nvml(tools, tmp_path):
    nvml = BUILD / "tests" / "libtf_fake_nvml_new.so"
    if not nvml.exists():
        pytest.skip("the stand-in of NVML is not built: run make")
    (tmp_path / "libnvidia-ml.so.1").symlink_to(nvml)
    done = tools("monitor", "--once", "--json", env={"TRACEFIRE_CUDA_PATH": str(tmp_path)})
    document = json.loads(done.stdout)
    schema = json.loads((tools.folder / "share/doc/tracefire-tools/schema/monitor.json").read_text())
    assert not list(errors(document, schema))
    assert document["gpus"]


def test_version_and_explain(tools):
    document = json.loads(tools("version", "--json").stdout)
    schema = json.loads((ROOT / "schema" / "cli" / "version.json").read_text())
    assert not list(errors(document, schema))
    assert document["engine"] is False and document["libraries"] == []
    assert document["version"] in (tools.folder / "VERSION").read_text()
    assert "TF-E0101" in tools("explain", "TF-E0101").stdout
    assert "TF-" in tools("prove", status=2).stderr
