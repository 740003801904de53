# SPDX-License-Identifier: Apache-2.0
"""Operations on the processor beside NumPy (and PyTorch where it is installed), in one process and
on equally many threads.

usage: cpu_ops.py [--threads N] [--repeats N] [--only WORD] [--out RESULTS.json]

Everybody runs in turn, `repeats` times; a value is the best of them, because what disturbs a run
only makes it longer, and `spread` is how much longer the worst took. A product has to reach 90 % of
NumPy's rate, a transpose half the rate of a copy of the same bytes, a scatter the rate of np.add.at.
The JSON file becomes bench/results/YYYY-MM-DD-cpu.json.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", default="", help="only works whose name contains this")
    parser.add_argument("--out", type=pathlib.Path)
    return parser.parse_args()


OPTIONS = arguments()
THREADS = str(OPTIONS.threads)
WANTED = {"TRACEFIRE_THREADS": THREADS, "OPENBLAS_NUM_THREADS": THREADS, "OMP_NUM_THREADS": THREADS}
# Set for older machines than this one, they would hold NumPy back.
UNWANTED = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
if any(os.environ.get(k) != v for k, v in WANTED.items()) or any(k in os.environ for k in UNWANTED):
    kept = {k: v for k, v in os.environ.items() if k not in UNWANTED}
    os.execve(sys.executable, [sys.executable, *sys.argv], {**kept, **WANTED})

import numpy as np  # noqa: E402
from tracefire import _core  # noqa: E402

try:
    import torch
    torch.set_num_threads(OPTIONS.threads)
except ImportError:
    torch = None

ops = _core.ops
rng = np.random.default_rng(0)


def random(*sizes):
    return rng.random(sizes, dtype=np.float32)


def engine(call):
    """Runs a call of the engine to its end."""
    return lambda: call().wait()


class Results:
    def __init__(self):
        self.rows = []

    def measure(self, work, runners, amount, unit, goal=None, against="numpy"):
        """`runners`: name -> function. `amount` of `unit` * seconds are done in one run, where the
        unit is a rate; with unit 'ms' the time itself is the value."""
        if OPTIONS.only not in work:
            return
        times = {who: [] for who in runners}
        for run in runners.values():
            run()
        for _ in range(OPTIONS.repeats):
            for who, run in runners.items():
                start = time.perf_counter()
                run()
                times[who].append(time.perf_counter() - start)
        lower = unit == "ms"

        def value(seconds):
            return seconds * 1e3 if lower else amount / seconds

        for who, seconds in times.items():
            best, worst = min(seconds), max(seconds)
            ours = who == "tracefire"
            ratio = min(times[against]) / best if ours else None
            self.rows.append(dict(
                work=work, who=who, value=round(value(best), 3), unit=unit,
                better="lower" if lower else "higher", repeats=len(seconds),
                spread=round(abs(value(worst) - value(best)), 3),
                ratio=None if ratio is None else round(ratio, 3), goal=goal if ours else None,
                met=ratio >= goal if ours and goal is not None else None))
            row = self.rows[-1]
            note = f"  {row['ratio']:.2f} of {against}, goal {goal}" if ours and goal else ""
            print(f"{work:34}{who:12}{row['value']:10.2f} {unit:8}{note}", flush=True)


def products(results):
    for n in (512, 1024, 2048, 4096):
        a, b, c = random(n, n), random(n, n), np.empty((n, n), np.float32)
        ta, tb = _core.tensor(a), _core.tensor(b)
        runners = {"numpy": lambda: np.matmul(a, b, out=c), "tracefire": engine(lambda: ops.matmul(ta, tb))}
        if torch is not None:
            pa, pb, pc = torch.from_numpy(a), torch.from_numpy(b), torch.from_numpy(c)
            runners["torch"] = lambda: torch.matmul(pa, pb, out=pc)
        results.measure(f"matmul-f32-{n}", runners, 2e-9 * n**3, "GFLOP/s", goal=0.9)


def transposes(results):
    cases = [("transpose-4096x4096", (4096, 4096), (1, 0)), ("transpose-1000x3000", (1000, 3000), (1, 0)),
             ("nhwc-to-nchw-32x56x56x64", (32, 56, 56, 64), (0, 3, 1, 2)),
             ("nchw-to-nhwc-32x64x56x56", (32, 64, 56, 56), (0, 2, 3, 1)),
             ("nhwc-to-nchw-32x224x224x3", (32, 224, 224, 3), (0, 3, 1, 2)),
             ("nchw-to-nhwc-32x3x224x224", (32, 3, 224, 224), (0, 2, 3, 1))]
    for work, sizes, perm in cases:
        x = random(*sizes)
        out, same = np.empty([sizes[i] for i in perm], np.float32), np.empty_like(x)
        tx = _core.tensor(x)
        runners = {"numpy-copy": lambda: np.copyto(same, x), "numpy": lambda: np.copyto(out, x.transpose(perm)),
                   "tracefire": engine(lambda: ops.transpose(tx, perm=perm))}
        if torch is not None:
            px, pout = torch.from_numpy(x).permute(perm), torch.from_numpy(out)
            runners["torch"] = lambda: pout.copy_(px)
        results.measure(work, runners, 2e-9 * x.nbytes, "GB/s", goal=0.5, against="numpy-copy")


def scatters(results):
    count = 10**6
    for rows, width in ((1000, 1), (10**6, 1), (1000, 64), (10**5, 16)):
        shape, part = ((rows, width), (count, width)) if width > 1 else ((rows,), (count,))
        updates, places = random(*part), rng.integers(0, rows, count)
        total = np.empty(shape, np.float32)
        tu, tp = _core.tensor(updates), _core.tensor(places)

        def numpy_add():
            total[...] = 0
            np.add.at(total, places, updates)

        runners = {"numpy": numpy_add, "tracefire": engine(lambda: ops.scatter_add(tu, tp, shape=shape))}
        if torch is not None:
            pt, pu, pp = torch.from_numpy(total), torch.from_numpy(updates), torch.from_numpy(places)
            runners["torch"] = lambda: pt.zero_().index_add_(0, pp, pu)
        results.measure(f"scatter-add-1e6-of-{width}-to-{rows}", runners, 0, "ms", goal=1.0)


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def main():
    results = Results()
    for family in (products, transposes, scatters):
        family(results)
    if OPTIONS.out:
        commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True,
                                text=True, check=False).stdout.strip()
        versions = {"python": platform.python_version(), "numpy": np.__version__,
                    "torch": torch.__version__ if torch is not None else ""}
        report = dict(schema="tracefire.bench/1", date=datetime.date.today().isoformat(), commit=commit,
                      device=f"{processor()}, threads: {OPTIONS.threads}", driver="", versions=versions,
                      results=results.rows)
        OPTIONS.out.write_text(json.dumps(report, indent=1) + "\n")
    missed = [row["work"] for row in results.rows if row["met"] is False]
    print("all goals met" if not missed else "missed: " + ", ".join(missed))


if __name__ == "__main__":
    main()
