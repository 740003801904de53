# SPDX-License-Identifier: Apache-2.0
"""Trains with a large batch that lies on the GPU: the GPU should be busy nearly all the time."""
import torch

from common import arguments, measure
from torch_model import Trainer, batch_of

args = arguments()
trainer = Trainer("cuda")
images, labels = batch_of(256, device="cuda")
measure(lambda i: trainer.step(images, labels), torch.cuda.synchronize, args)
