# SPDX-License-Identifier: Apache-2.0
"""Replays one captured CUDA graph of small kernels."""
import torch
from torch import nn

from common import arguments, measure

args = arguments()
model = nn.Sequential(*[m for _ in range(12) for m in (nn.Linear(256, 256), nn.ReLU())]).cuda()
x = torch.randn(256, 256, device="cuda")
with torch.no_grad():
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            model(x)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(x)


def step(i):
    graph.replay()
    if i % 256 == 255:
        torch.cuda.synchronize()


measure(step, torch.cuda.synchronize, args)
