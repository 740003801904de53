# SPDX-License-Identifier: Apache-2.0
"""The same training whose author forgot to move the model to the GPU."""
import torch

from common import arguments, measure
from torch_model import Trainer, batch_of

args = arguments()
args.warmup = 1
print("GPU there:", torch.cuda.is_available())
trainer = Trainer("cpu", width=256, blocks=1, half=False)
images, labels = batch_of(8)
measure(lambda i: trainer.step(images, labels), lambda: None, args)
