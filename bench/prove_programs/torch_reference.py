# SPDX-License-Identifier: Apache-2.0
"""What PyTorch's own profiler counts in 20 steps of torch_healthy.py: an independent reference for
the names, numbers and times of kernels. Prints one JSON line."""
import json

import torch
from torch.profiler import ProfilerActivity, profile

from torch_model import Trainer, batch_of

trainer = Trainer("cuda")
images, labels = batch_of(256, device="cuda")
for _ in range(5):
    trainer.step(images, labels)
torch.cuda.synchronize()
with profile(activities=[ProfilerActivity.CUDA]) as seen:
    for _ in range(20):
        trainer.step(images, labels)
    torch.cuda.synchronize()
kernels = {}
for event in seen.events():
    if event.device_type == torch.autograd.DeviceType.CUDA:
        row = kernels.setdefault(event.name, [0, 0.0])
        row[0] += 1
        row[1] += event.time_range.elapsed_us()
rows = sorted(([n, c, round(t, 1)] for n, (c, t) in kernels.items()), key=lambda r: -r[2])
print(json.dumps({"program": "torch_reference.py", "steps": 20, "kernels_us": rows}), flush=True)
