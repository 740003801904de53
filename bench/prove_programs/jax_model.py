# SPDX-License-Identifier: Apache-2.0
"""A network with convolutions, attention and products, for the JAX programs."""
import functools

import jax
import jax.numpy as jnp


def parameters(width=512, blocks=4, classes=100):
    keys = iter(jax.random.split(jax.random.key(0), 64))

    def dense(*shape):
        return jax.random.normal(next(keys), shape, jnp.float32) * shape[-2] ** -0.5

    return {"stem": [jax.random.normal(next(keys), (7, 7, 3, 64)) * 0.05,
                     jax.random.normal(next(keys), (3, 3, 64, width)) * 0.03],
            "blocks": [{"qkv": dense(width, 3 * width), "out": dense(width, width),
                        "up": dense(width, 4 * width), "down": dense(4 * width, width)} for _ in range(blocks)],
            "head": dense(width, classes)}


def norm(x):
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def forward(p, images):
    p, x = jax.tree.map(lambda a: a.astype(jnp.bfloat16), (p, images))
    for kernel, stride in zip(p["stem"], (4, 2)):
        x = jax.nn.relu(jax.lax.conv_general_dilated(x, kernel, (stride, stride), "SAME",
                                                     dimension_numbers=("NHWC", "HWIO", "NHWC")))
    x = x.reshape(x.shape[0], -1, x.shape[-1])
    for block in p["blocks"]:
        q, k, v = jnp.split((norm(x) @ block["qkv"]).reshape(*x.shape[:2], -1, 3 * 64), 3, -1)
        x = x + jax.nn.dot_product_attention(q, k, v).reshape(x.shape) @ block["out"]
        x = x + jax.nn.gelu(norm(x) @ block["up"]) @ block["down"]
    return x.mean(1) @ p["head"]


def loss_of(p, images, labels):
    logits = forward(p, images).astype(jnp.float32)
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()


@functools.partial(jax.jit, donate_argnums=0)
def train_step(p, images, labels):
    loss, gradients = jax.value_and_grad(loss_of)(p, images, labels)
    return jax.tree.map(lambda a, g: a - 1e-3 * g, p, gradients), loss
