# SPDX-License-Identifier: Apache-2.0
"""Reads a number from the GPU after every layer: host and GPU take turns."""
import torch
from torch import nn

from common import arguments, measure

args = arguments()
layers = nn.ModuleList([nn.Linear(1024, 1024) for _ in range(16)]).cuda()
x = torch.randn(1536, 1024, device="cuda")


@torch.no_grad()
def step(i):
    h, seen = x, 0.0
    for layer in layers:
        h = layer(h)
        seen += h[0, 0].item()  # a progress display, say
    return seen


measure(step, torch.cuda.synchronize, args)
