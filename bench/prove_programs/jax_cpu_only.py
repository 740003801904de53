# SPDX-License-Identifier: Apache-2.0
"""The same training where the environment chose the CPU for JAX."""
import os

os.environ["JAX_PLATFORMS"] = "cpu"
import jax

from common import arguments, measure
from jax_model import parameters, train_step

args = arguments()
args.warmup = 1
state = {"p": parameters(128, 1), "loss": None}
images = jax.random.normal(jax.random.key(1), (8, 64, 64, 3))
labels = jax.random.randint(jax.random.key(2), (8,), 0, 100)


def step(i):
    state["p"], state["loss"] = train_step(state["p"], images, labels)
    jax.block_until_ready(state["loss"])


measure(step, lambda: None, args, platform=jax.default_backend())
