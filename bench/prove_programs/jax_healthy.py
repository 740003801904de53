# SPDX-License-Identifier: Apache-2.0
"""Trains a jitted step with a large batch that lies on the GPU."""
import jax

from common import arguments, measure
from jax_model import parameters, train_step

args = arguments()
state = {"p": parameters(), "loss": None}
images = jax.random.normal(jax.random.key(1), (256, 128, 128, 3))
labels = jax.random.randint(jax.random.key(2), (256,), 0, 100)


def step(i):
    before = state["loss"]
    state["p"], state["loss"] = train_step(state["p"], images, labels)
    if before is not None:
        jax.block_until_ready(before)  # one step ahead of the device, no more


measure(step, lambda: jax.block_until_ready(state["loss"]), args, platform=jax.default_backend())
