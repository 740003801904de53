# SPDX-License-Identifier: Apache-2.0
"""One quiet Keras MLP epoch (60,000 rows, batch 128): what the executor says ran, and, where torch
is at hand, what its profiler saw in the same process.

usage: profile_epoch.py OUT.json
"""
import json
import os
import sys
import time

os.environ["KERAS_BACKEND"] = "tracefire"
import tracefire  # noqa: E402,F401
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


watch = fit(4)
proof = watch.proofs[-1]
steps = 469
runs = sum(row["runs"] for row in proof["rows"])
report = {"epoch_ms": [round(t * 1e3, 2) for t in watch.times], "verdict": proof["verdict"],
          "graph_launches": proof["graph_launches"], "synchronizations": proof["synchronizations"],
          "steps_of_kernels_per_training_step": round(runs / steps, 2), "precision": proof["precision"],
          "rows": proof["rows"]}
for row in proof["rows"]:
    print(f"{row['op']:28}{row['kernel']:32}{row['device']:8}{row['runs'] / steps:8.2f} a step")
try:
    import torch
    from torch.profiler import ProfilerActivity, profile

    torch.zeros(1, device="cuda")
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        fit(1)
        torch.cuda.synchronize()
    kernels = {}
    for event in seen.events():
        if "Memcpy" not in event.name and "Memset" not in event.name:
            count, total = kernels.get(event.name, (0, 0.0))
            kernels[event.name] = (count + 1, total + event.device_time)
    report["profiler_kernels_per_step"] = round(sum(c for c, _ in kernels.values()) / steps, 2)
    report["profiler"] = {name: {"count": count, "us": round(total, 1)}
                          for name, (count, total) in sorted(kernels.items(), key=lambda item: -item[1][1])}
    for name, (count, total) in sorted(kernels.items(), key=lambda item: -item[1][1])[:40]:
        print(f"{count / steps:8.2f} a step {total / steps:9.2f} us a step  {name[:90]}")
except Exception as error:  # without torch, or on a machine whose profiler is taken
    report["profiler"] = f"not available: {error!r}"
    print("torch.profiler:", report["profiler"])
print({k: v for k, v in report.items() if k not in ("rows", "profiler")})
with open(sys.argv[1], "w", encoding="utf-8") as f:
    json.dump(report, f, indent=1)
