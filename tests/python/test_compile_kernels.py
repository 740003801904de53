# SPDX-License-Identifier: Apache-2.0
"""The ready kernels are compiled while building, by NVRTC alone."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DEPS = pathlib.Path(os.environ.get("TRACEFIRE_DEPS_DIR") or ROOT / "build" / "deps")
NVRTC = DEPS / "cuda12" / "lib" / "libnvrtc.so.12"
KERNEL = 'extern "C" __global__ void __launch_bounds__(64) twice(float* x) { x[index()] *= 2.0f; }\n'
HEADER = "__device__ inline long long index() { return blockIdx.x * blockDim.x + threadIdx.x; }\n"

pytestmark = pytest.mark.skipif(not NVRTC.exists(), reason=f"{NVRTC} is not there: run make deps")


def compile_kernels(folder, text, *targets):
    (folder / "a.cu").write_text('#include "common.cuh"\n' + text)
    (folder / "common.cuh").write_text(HEADER)
    out = folder / "out.cpp"
    images = [word for target in targets for word in ("--image", f"{NVRTC} {target}")]
    done = subprocess.run([sys.executable, str(ROOT / "scripts/compile_kernels.py"), *images,
                           "--out", str(out), str(folder / "a.cu")], capture_output=True, text=True)
    return done, out


def image_bytes(out):
    body = out.read_text().split("kImage0[", 1)[1].split("=\n", 1)[1].split(";\n", 1)[0]
    pieces = [line.strip()[1:-1] for line in body.splitlines()]
    return b"".join(re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8)]), p.encode()) for p in pieces)


def test_ptx_is_no_newer_than_the_oldest_supported_driver_reads(tmp_path):
    done, out = compile_kernels(tmp_path, KERNEL, "compute_75")
    assert done.returncode == 0, done.stderr
    ptx = image_bytes(out).decode()
    assert ".version 8.0" in ptx and ".target sm_75" in ptx and ".entry twice" in ptx
    assert ptx.endswith("\0")
    assert '{"a.cu", 75, true, "12.0", kKernels0' in out.read_text()


def test_a_cubin_is_an_elf_file(tmp_path):
    done, out = compile_kernels(tmp_path, KERNEL, "sm_90", "compute_75")
    assert done.returncode == 0, done.stderr
    assert image_bytes(out).startswith(b"\x7fELF")
    assert 'kKernels0[] = {"twice"}' in out.read_text()


def test_an_error_in_a_kernel_stops_the_build_and_says_where(tmp_path):
    done, _ = compile_kernels(tmp_path, KERNEL.replace("2.0f", "two"), "compute_75")
    assert done.returncode != 0
    assert 'a.cu(2): error: identifier "two" is undefined' in done.stderr


def test_a_file_without_kernels_is_refused(tmp_path):
    done, _ = compile_kernels(tmp_path, "", "compute_75")
    assert done.returncode != 0 and 'defines no extern "C" __global__ function' in done.stderr
