# SPDX-License-Identifier: Apache-2.0
"""Records of unmodified PyTorch and JAX programs on an NVIDIA H200 (bench/prove_programs), analysed again:
the verdicts, causes and kernels must stay right."""
import json
import pathlib
import subprocess
import tarfile

import pytest

from test_report import planes_of, trace_of
from prove_tools import PROVE

ARCHIVE = pathlib.Path(__file__).parent / "recorded" / "records.tar.xz"
REFERENCE = pathlib.Path(__file__).parent / "recorded" / "reference.json"

# program: verdict, grade (None: any), the largest cause (None: any), classes that must be among the kernels
EXPECTED = {
    "torch_exact": ("on-gpu", None, None, {"matmul", "convolution", "attention", "elementwise", "optimizer", "normalisation"}),
    "torch_healthy": ("on-gpu", "healthy", None, {"matmul", "convolution", "elementwise"}),
    "jax_healthy": ("on-gpu", "healthy", None, {"matmul", "convolution", "elementwise"}),
    "torch_cpu_only": ("on-cpu", None, None, set()),
    "jax_cpu_only": ("on-cpu", None, None, set()),
    "torch_input_bound": ("on-gpu", "low", "input", {"matmul", "convolution"}),
    "jax_input_bound": ("on-gpu", "low", "input", {"matmul", "convolution"}),
    "torch_sync_bound": ("on-gpu", None, "synchronisation", {"matmul"}),
    "torch_ranks": ("on-gpu", "healthy", None, {"matmul"}),
    "torch_launch_bound": ("on-gpu", "idle", "launch", {"matmul", "elementwise"}),
    "torch_copy_bound": ("on-gpu", "idle", "copy", {"matmul"}),
    "torch_cpu_fallback": ("partly-on-gpu", "idle", "cpu_fallback", {"matmul"}),
    "torch_graph": ("on-gpu", "healthy", None, {"matmul"}),
}


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    found = {}
    for records in sorted((folder / "records").iterdir()):
        done = subprocess.run([str(PROVE), "--json", "--from", str(records)], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, (records.name, done.stderr)
        found[records.name] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("program", EXPECTED)
def test_verdict_and_cause(reports, program):
    verdict, grade, cause, classes = EXPECTED[program]
    report = reports[program]
    assert report["exit_status"] == 0
    assert report["verdict"] == verdict, report["reason"]
    if grade is not None:
        assert report["grade"] == grade, report["busy_share"]
    if cause is not None:
        assert report["causes"] and report["causes"][0]["cause"] == cause, report["causes"]
        assert any(a["actions"] for a in report["advice"])
    assert classes <= {c["class"] for c in report["classes"]}
    assert report["complete"]


def test_kernels_are_those_that_pytorch_counts(reports):
    """PyTorch's own profiler counted 20 steps; the proof's run made 25 (5 to warm up)."""
    reference = json.loads(REFERENCE.read_text())
    seen = {k["name"]: k for k in reports["torch_exact"]["kernels"]}
    compared = 0
    for name, count, microseconds in reference["kernels_us"]:
        if count % reference["steps"] or name not in seen:
            continue
        per_step = count // reference["steps"]
        assert seen[name]["count"] >= per_step * 25, name
        if seen[name]["count"] != per_step * 25:
            continue  # setting up uses it too
        if microseconds > 1000:
            ours = seen[name]["total_ns"] / 1000 / 25
            assert abs(ours - microseconds / reference["steps"]) < 0.25 * ours, name
        compared += 1
    assert compared >= 50


def test_graphs_and_tensor_cores(reports):
    assert any("traced by node" in note for note in reports["torch_graph"]["notes"])
    products = [k for k in reports["torch_exact"]["kernels"] if k["class"] in ("matmul", "convolution", "attention")]
    on_tensor_cores = sum(k["total_ns"] for k in products if k["tensor_cores"] == "yes")
    assert on_tensor_cores > 0.8 * sum(k["total_ns"] for k in products)  # it trains in bfloat16
    unused = [k for k in reports["torch_launch_bound"]["kernels"] if k["class"] == "matmul"]
    assert unused and all(k["tensor_cores"] != "yes" for k in unused)  # float32, one row


@pytest.mark.parametrize("program", ["torch_graph", "torch_ranks"])
def test_traces_of_recorded_programs(tmp_path_factory, reports, program):
    """Kernels of a graph run at once on one stream: no viewer may lose them."""
    folder = tmp_path_factory.mktemp("traces")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    subprocess.run([str(PROVE), "--from", str(folder / "records" / program), "--out", str(folder / "out")],
                   check=True, capture_output=True, timeout=120)
    events, processes = trace_of(folder / "out" / "trace.json")
    assert len(processes) == len(reports[program]["processes"])
    work = sum(e["ph"] == "X" and e["tid"] >= 1 << 24 for e in events)
    calls = sum(e["ph"] == "X" and e["tid"] < 1 << 24 for e in events)
    file, = (folder / "out" / "tensorboard" / "plugins" / "profile" / "prove").iterdir()
    planes = planes_of(file)
    assert work == sum(len(line) for name, lines in planes.items() if name.startswith("/device:") for line in lines.values())
    assert calls == sum(len(line) for line in planes["/host:CPU"].values()) and work > 1000
