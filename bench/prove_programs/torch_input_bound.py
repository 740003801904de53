# SPDX-License-Identifier: Apache-2.0
"""Prepares every batch in Python, in the training loop: the GPU waits for input."""
import numpy as np
import torch

from common import arguments, measure
from torch_model import Trainer

args = arguments()
trainer = Trainer("cuda", width=256, blocks=2)
rng = np.random.default_rng(0)
stored = rng.integers(0, 255, (256, 160, 160, 3), dtype=np.uint8)


def load(i):
    batch = np.empty((64, 3, 128, 128), np.float32)
    for n in range(64):  # crop, flip, scale, one image after the other
        y, x = rng.integers(0, 32, 2)
        image = stored[(i * 64 + n) % len(stored), y:y + 128, x:x + 128].astype(np.float32) / 255
        image = image[:, ::-1] if n % 2 else image
        batch[n] = ((image - image.mean()) / image.std()).transpose(2, 0, 1)
    return torch.from_numpy(batch), torch.from_numpy(rng.integers(0, 100, 64))


def step(i):
    images, labels = load(i)
    trainer.step(images.to("cuda"), labels.to("cuda"))


measure(step, torch.cuda.synchronize, args)
