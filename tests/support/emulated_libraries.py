# SPDX-License-Identifier: Apache-2.0
"""A folder in which the emulator stands under the names of NVIDIA's libraries, and what makes programs use it."""

import pathlib
import shutil

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = ("libcuda.so.1", "libnvidia-ml.so.1", "libnvrtc.so.13", "libcublasLt.so.13")


def _emulator(build):
    return pathlib.Path(build) / "tests" / "libtf_cuda_emulator.so"


def _kernels(build):
    return pathlib.Path(build) / "tests" / "libtf_emulated_kernels.so"


def what_is_missing(build, kernels=True):
    """Why it cannot be used here; "" where it can. Without `kernels`: devices are only listed."""
    if not _emulator(build).exists():
        return f"the emulator of NVIDIA's libraries, {_emulator(build)}, is not built"
    if kernels and not _kernels(build).exists():
        return f"the ready kernels are not built for the host, {_kernels(build)}"
    if kernels and not shutil.which("c++"):
        return "needs c++, with which the emulated NVRTC compiles"
    return ""


def make(build, folder):
    """Puts the libraries into an empty folder; returns the environment of programs that use them."""
    folder = pathlib.Path(folder)
    for name in NAMES:
        (folder / name).symlink_to(_emulator(build).resolve())
    return {
        "TRACEFIRE_CUDA_PATH": str(folder),
        "TRACEFIRE_CACHE_DIRECTORY": str(folder / "cache"),  # not beside a real GPU's kernels
        "TF_EMU_READY_KERNELS": str(_kernels(build)),
        "TF_EMU_PRELUDE": str(ROOT / "tests" / "nvidia" / "emulator" / "device_prelude.h"),
    }
