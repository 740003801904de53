# SPDX-License-Identifier: Apache-2.0
"""Products that this machine's compiler links for an older glibc (scripts/older_glibc.py)."""

import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ZIG = ROOT / "build" / "dist" / "zig" / "ziglang"
sys.path.insert(0, str(ROOT / "scripts"))
import older_glibc  # noqa: E402

PROGRAM = r"""
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <unistd.h>
#include <sys/stat.h>

static bool constructed = false;
static struct Early { Early() { constructed = true; } } early;
thread_local int own = 3;

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  const std::string file = argv[argc - 1];
  std::ofstream(file) << "12345";
  struct stat by_descriptor{};
  std::FILE* opened = std::fopen(file.c_str(), "r");
  fstat(fileno(opened), &by_descriptor);
  std::string caught;
  try { fs::file_size(file + ".not"); } catch (const fs::filesystem_error& e) { caught = "caught"; }
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_lock lock(mutex);
  const auto start = std::chrono::steady_clock::now();
  bool woken = false;
  std::thread other([&] { std::lock_guard hold(mutex); woken = true; changed.notify_one(); });
  const bool seen = changed.wait_for(lock, std::chrono::seconds(20), [&] { return woken; });
  const auto middle = std::chrono::steady_clock::now();
  const bool late = changed.wait_for(lock, std::chrono::milliseconds(1300), [] { return false; });
  const double waited = std::chrono::duration<double>(std::chrono::steady_clock::now() - middle).count();
  lock.unlock();
  other.join();
  std::random_device random;
  std::printf("%d %d %ju %jd %s %d %d %d %d %d %.6f\n", constructed, own, fs::file_size(file),
              static_cast<intmax_t>(by_descriptor.st_size), caught.c_str(), seen,
              middle - start < std::chrono::seconds(5), late, waited > 1.29 && waited < 5,
              random() != random(), std::pow(argc + 0.5, 2.5));
}
"""


@pytest.mark.slow
def test_a_program_for_an_older_glibc_runs_here_and_needs_nothing_newer(tmp_path):
    if not ZIG.exists():
        pytest.skip(f"{ZIG} is not there: run make dist or make wheel")
    if not (shutil.which("ld.lld") or shutil.which("ld.gold")):
        pytest.skip("neither ld.lld nor ld.gold is installed")
    options = older_glibc.options(tmp_path / "stubs", ZIG, "2.28", "c++")
    source, program = tmp_path / "program.cpp", tmp_path / "program"
    source.write_text(PROGRAM)
    words = [*options["CMAKE_EXE_LINKER_FLAGS"].split(), source, "-o", program,
             *options["CMAKE_CXX_STANDARD_LIBRARIES"].split()]  # fmt: skip
    subprocess.run(["c++", "-std=c++20", "-O1", *words], check=True)
    assert list(older_glibc.problems(program, "2.28")) == []
    done = subprocess.run([program, tmp_path / "file"], capture_output=True, text=True, timeout=60)
    assert done.stdout == "1 3 5 5 caught 1 1 0 1 1 9.882118\n", done


def test_what_needs_a_newer_glibc_is_named(tmp_path):
    source, library = tmp_path / "a.c", tmp_path / "_core.so"
    source.write_text("#include <stdlib.h>\nint missing(void);\nint f(void) { return missing() + abs(rand()); }\n")
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
    found = list(older_glibc.problems(library, "2.1"))
    assert any("_core.so needs rand@GLIBC_2.2.5" in p for p in found)
    assert any("_core.so needs missing, of no known version" in p for p in found)
    assert not any("rand" in p for p in older_glibc.problems(library, "2.28"))
