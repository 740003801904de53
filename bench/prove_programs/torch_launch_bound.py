# SPDX-License-Identifier: Apache-2.0
"""Trains on one row at a time: kernels of microseconds, each launched from Python."""
import torch
from torch import nn

from common import arguments, measure

args = arguments()
model = nn.Sequential(*[m for _ in range(12) for m in (nn.Linear(64, 64), nn.ReLU())]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x, y = torch.randn(1, 64, device="cuda"), torch.randn(1, 64, device="cuda")


def step(i):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


measure(step, torch.cuda.synchronize, args)
