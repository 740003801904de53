# SPDX-License-Identifier: Apache-2.0
"""Prepares every batch in Python, in the training loop, for a jitted step."""
import jax
import numpy as np

from common import arguments, measure
from jax_model import parameters, train_step

args = arguments()
state = {"p": parameters(256, 2), "loss": None}
rng = np.random.default_rng(0)
stored = rng.integers(0, 255, (256, 160, 160, 3), dtype=np.uint8)


def step(i):
    batch = np.empty((64, 128, 128, 3), np.float32)
    for n in range(64):
        y, x = rng.integers(0, 32, 2)
        image = stored[(i * 64 + n) % len(stored), y:y + 128, x:x + 128].astype(np.float32) / 255
        batch[n] = (image - image.mean()) / image.std()
    state["p"], state["loss"] = train_step(state["p"], batch, rng.integers(0, 100, 64))


measure(step, lambda: jax.block_until_ready(state["loss"]), args, platform=jax.default_backend())
