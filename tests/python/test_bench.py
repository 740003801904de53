# SPDX-License-Identifier: Apache-2.0
"""bench/kernel_lists.py, on the kernels that a profiler saw of an epoch on an H200."""

import json
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import kernel_lists  # noqa: E402

RECORD = json.loads((ROOT / "bench" / "results" / "2026-11-30-gpu-mlp-kernels.json").read_text())
NOTES = ("Activity Buffer Request", "Command Buffer Full", "Buffer Flush", "cudaDeviceSynchronize")


@pytest.fixture
def seen():
    return {name: row["count"] for name, row in RECORD["profiler"].items() if name not in NOTES}


@pytest.fixture
def named(seen):
    counts = {name: count for name, count in seen.items() if name.startswith("tf_")}
    counts["cublasLtMatmul"] = sum(r["runs"] for r in RECORD["rows"] if r["op"] == "matmul")
    return counts


def test_the_recorded_epoch_agrees_but_for_what_split_k_adds(named, seen):
    problems, helpers = kernel_lists.compare(named, seen)
    assert problems == []
    [helper] = helpers
    assert "splitKreduce_kernel" in helper["kernel"] and helper["launches"] == 2 * 469
    assert "cuBLASLt divides the inner dimension" in helper["reason"]


def test_every_difference_is_told(named, seen):
    def told(named, seen):
        problems, _ = kernel_lists.compare(named, seen)
        return problems

    first = next(n for n in named if n.startswith("tf_"))
    [problem] = told({**named, first: named[first] + 1}, seen)
    assert problem.startswith(f"{first}: the executor says {named[first] + 1} launches, the profiler saw")
    [problem] = told({**named, "tf_of_nothing": 3}, seen)
    assert problem == "tf_of_nothing: the executor says 3 launches, the profiler saw none"
    [problem] = told(named, {**seen, "void at::native::vectorized_elementwise_kernel": 1})
    assert "of which the executor says nothing" in problem
    [problem] = told({**named, "cublasLtMatmul": 3751}, seen)
    assert problem == "cublasLtMatmul: the executor says 3751 products, the profiler saw 3752"
    without = {n: c for n, c in seen.items() if n != first}
    [problem] = told(named, without)
    assert problem.endswith("launches, the profiler saw none")
    problems = told(named, {**seen, "splitKreduce_kernel of others": 10**6})
    assert problems == ["there are more helper kernels than products that could have launched them"]


def test_names_of_the_executor_are_read_from_a_profile():
    rows = [
        {"device": "/GPU:0", "symbols": ["tf_a", "memset", "tf_b"], "runs": 4},
        {"device": "/GPU:0", "symbols": ["tf_a"], "runs": 3},
        {"device": "/CPU:0", "symbols": [], "runs": 9},
    ]
    assert kernel_lists.named_kernels({"operations": rows}) == {"tf_a": 7, "tf_b": 4}
