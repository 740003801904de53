# SPDX-License-Identifier: Apache-2.0
"""Sends much and computes little: every step copies a large batch there and the result back."""
import torch

from common import arguments, measure

args = arguments()
host = torch.randn(64, 1024, 1024)  # 256 MiB, pageable
weights = torch.randn(1024, 16, device="cuda")


def step(i):
    (host.to("cuda") @ weights).relu().cpu()


measure(step, torch.cuda.synchronize, args)
