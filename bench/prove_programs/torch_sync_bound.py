# SPDX-License-Identifier: Apache-2.0
"""Reads a number from the GPU after every small piece of work: host and GPU take turns."""
import torch
from torch import nn

from common import arguments, measure

args = arguments()
layers = nn.ModuleList([nn.Linear(1024, 1024) for _ in range(8)]).cuda()
optimizer = torch.optim.SGD(layers.parameters(), lr=1e-3)
x = torch.randn(512, 1024, device="cuda")


def step(i):
    h, seen = x, []
    for layer in layers:
        h = torch.relu(layer(h))
        seen.append(h.abs().max().item())
    loss = h.square().mean()
    seen.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    for parameter in layers.parameters():
        seen.append(parameter.grad.norm().item())
    optimizer.step()


measure(step, torch.cuda.synchronize, args)
