# SPDX-License-Identifier: Apache-2.0
"""The records of CUPTI that the injected library reads lie as the headers of CUDA 12 and 13 say."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from prove_tools import ROOT


def headers():
    roots = [pathlib.Path(p) for p in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")) if p]
    roots += sorted(pathlib.Path("/usr/local").glob("cuda*"))
    roots += [pathlib.Path(p) / "nvidia" / name for p in sys.path for name in ("cu13", "cuda_cupti")]
    roots += [pathlib.Path(p) for p in os.environ.get("TRACEFIRE_TEST_CUPTI", "").split(os.pathsep) if p]
    folders = [r / below for r in roots for below in ("include", "extras/CUPTI/include")]
    return sorted({f.resolve() for f in folders if (f / "cupti.h").exists()})


@pytest.mark.parametrize("folder", headers() or [None])
def test_records_lie_as_the_header_says(folder):
    compiler = shutil.which("g++") or shutil.which("clang++")
    if folder is None or compiler is None:
        pytest.skip("no header of CUPTI is installed here: TRACEFIRE_TEST_CUPTI may name a folder with include/cupti.h")
    # cuda.h lies beside cupti.h, in the toolkit, or where the build has put it.
    includes = [folder, ROOT / "src", *[r.parent for r in (ROOT / "build" / "deps").glob("cuda*/include/cuda.h")]]
    done = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", *[f"-I{i}" for i in includes],
                           str(ROOT / "tests" / "inject" / "cupti_layout.cc")], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
