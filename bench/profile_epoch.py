# SPDX-License-Identifier: Apache-2.0
"""One quiet Keras MLP epoch (60,000 rows, batch 128): what the executor says ran, held against what
torch's profiler saw in the same process.

usage: profile_epoch.py OUT.json [--no-profiler]

Exits 1 where the two lists of kernels differ by more than bench/kernel_lists.py explains, 3 where they
could not be compared: no GPU, or no profiler of torch. --no-profiler asks for the executor's list alone.
"""
import json
import os
import sys
import time

os.environ["KERAS_BACKEND"] = "tracefire"
import kernel_lists  # noqa: E402 - beside this file
import tracefire  # noqa: E402
from tracefire import _core  # noqa: E402
import keras  # noqa: E402
import numpy as np  # noqa: E402
from keras import layers  # noqa: E402

rng = np.random.default_rng(0)
x = rng.random((60000, 784), dtype=np.float32)
y = rng.integers(0, 10, 60000)
model = keras.Sequential([keras.Input((784,)), layers.Dense(512, "relu"), layers.Dropout(.3),
                          layers.Dense(256, "relu"), layers.Dropout(.3), layers.Dense(10, "softmax")])
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])


class EpochProof(keras.callbacks.Callback):
    """The proof of each epoch alone."""

    def __init__(self):
        super().__init__()
        self.proofs, self.times = [], []

    def on_epoch_begin(self, epoch, logs=None):
        _core.reset_proof()
        self.start = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.times.append(time.perf_counter() - self.start)
        self.proofs.append(json.loads(_core.proof().json()))


def fit(epochs):
    watch = EpochProof()
    model.fit(x, y, batch_size=128, epochs=epochs, verbose=0, callbacks=[watch])
    return watch


def profiled():
    """({kernel: launches} the executor says, {kernel: [launches, us]} the profiler saw) of an epoch."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    torch.zeros(1, device="cuda")
    tracefire.profiler.start(step_times=False)  # single steps are not timed, so graphs stay whole
    with profile(activities=[ProfilerActivity.CUDA]) as record:
        fit(1)
        torch.cuda.synchronize()
    session = json.loads(tracefire.profiler.stop().json())
    seen = {}
    for event in record.events():
        on_gpu = str(event.device_type).endswith("CUDA") and event.device_time > 0  # no notes of the profiler
        if on_gpu and "Memcpy" not in event.name and "Memset" not in event.name:
            row = seen.setdefault(event.name, [0, 0.0])
            row[0] += 1
            row[1] += event.device_time
    return kernel_lists.named_kernels(session), seen


def main(out, with_profiler):
    steps = 469
    watch = fit(4)
    proof = watch.proofs[-1]
    runs = sum(row["runs"] for row in proof["rows"])
    quiet = sorted(watch.times[1:])
    report = {
        "epoch_ms": [round(t * 1e3, 2) for t in watch.times],
        "median_ms": round(quiet[len(quiet) // 2] * 1e3, 3),
        "spread_ms": round((quiet[-1] - quiet[0]) * 1e3, 3),  # of the epochs after the first
        "verdict": proof["verdict"], "graph_launches": proof["graph_launches"],
        "synchronizations": proof["synchronizations"],
        "steps_of_kernels_per_training_step": round(runs / steps, 2), "precision": proof["precision"],
    }  # fmt: skip
    for row in proof["rows"]:
        print(f"{row['op']:28}{row['kernel']:32}{row['device']:8}{row['runs'] / steps:8.2f} a step")
    status, problems, helpers, seen, named = 0, [], [], {}, {}
    if with_profiler:
        try:
            named, seen = profiled()
        except Exception as error:  # without torch or a GPU, or where the profiler is taken
            status = 3
            report["not_compared"] = repr(error)
            print(f"profile_epoch: the kernels were not compared: {error!r}", file=sys.stderr)
        else:
            problems, helpers = kernel_lists.compare(named, {name: count for name, (count, _) in seen.items()})
            status = 1 if problems else 0
            report["profiler_kernels_per_step"] = round(sum(c for c, _ in seen.values()) / steps, 2)
            report["helper_kernels_per_step"] = round(sum(h["launches"] for h in helpers) / steps, 2)
            report["kernels_agree"] = not problems
    for name, (count, total) in sorted(seen.items(), key=lambda item: -item[1][1])[:40]:
        print(f"{count / steps:8.2f} a step {total / steps:9.2f} us a step  {name[:90]}")
    for helper in helpers:
        print(f"{helper['launches'] / steps:8.2f} a step  {helper['kernel'][:60]}: {helper['reason']}")
    for problem in problems:
        print(f"profile_epoch: {problem}", file=sys.stderr)
    print(report)
    report.update(rows=proof["rows"], executor=named, helpers=helpers, problems=problems)
    report["profiler"] = {name: {"count": count, "us": round(total, 1)}
                          for name, (count, total) in sorted(seen.items(), key=lambda item: -item[1][1])}
    with open(out, "w", encoding="utf-8") as f:
        json.dump(report, f, indent=1)
        f.write("\n")
    return status


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--no-profiler"]):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], "--no-profiler" not in sys.argv))
