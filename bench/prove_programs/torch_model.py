# SPDX-License-Identifier: Apache-2.0
"""A network with convolutions, attention and products, for the PyTorch programs."""
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        a = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(a.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Network(nn.Module):
    def __init__(self, width=512, blocks=4, classes=100):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, stride=2, padding=3), nn.BatchNorm2d(64), nn.ReLU(),
                                  nn.Conv2d(64, 128, 3, stride=2, padding=1), nn.BatchNorm2d(128), nn.ReLU(),
                                  nn.Conv2d(128, width, 3, stride=2, padding=1))
        self.blocks = nn.Sequential(*[Block(width, width // 64) for _ in range(blocks)])
        self.head = nn.Linear(width, classes)

    def forward(self, images):
        x = self.stem(images).flatten(2).transpose(1, 2)
        return self.head(self.blocks(x).mean(1))


class Trainer:
    """One training step on a batch: forward, backward, AdamW."""

    def __init__(self, device, width=512, blocks=4, half=True):
        torch.manual_seed(0)
        self.device, self.half = device, half
        self.model = Network(width, blocks).to(device).to(memory_format=torch.channels_last)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=device == "cuda")

    def step(self, images, labels):
        with torch.autocast(self.device, torch.bfloat16, enabled=self.half):
            loss = nn.functional.cross_entropy(self.model(images), labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss


def batch_of(size, side=128, device="cpu"):
    generator = torch.Generator().manual_seed(1)
    images = torch.randn(size, 3, side, side, generator=generator)
    labels = torch.randint(0, 100, (size,), generator=generator)
    return images.to(device, memory_format=torch.channels_last), labels.to(device)
