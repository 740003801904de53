# SPDX-License-Identifier: Apache-2.0
"""Two processes train together, each with its rank; on one GPU they share it."""
import os
import subprocess
import sys

import torch

from common import arguments, measure
from torch_model import Trainer, batch_of

if "RANK" not in os.environ:
    children = [subprocess.Popen([sys.executable, *sys.argv],
                                 env={**os.environ, "RANK": str(r), "LOCAL_RANK": str(r), "WORLD_SIZE": "2",
                                      "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29517"})
                for r in range(2)]
    sys.exit(max(c.wait() for c in children))

args = arguments()
rank = int(os.environ["RANK"])
several = torch.cuda.device_count() > 1
torch.cuda.set_device(rank if several else 0)
# NCCL wants a GPU a rank; on one GPU the ranks average through the host.
torch.distributed.init_process_group("nccl" if several else "gloo")
trainer = Trainer("cuda", width=256, blocks=2)
trainer.model = torch.nn.parallel.DistributedDataParallel(trainer.model) if several else trainer.model
images, labels = batch_of(64, device="cuda")


def step(i):
    loss = trainer.step(images, labels)
    if not several and i % 20 == 0:
        mean = loss.detach().cpu()
        torch.distributed.all_reduce(mean)


# Ranks must make the same number of steps.
args.steps = args.steps or 200
measure(step, torch.cuda.synchronize, args, rank=rank)
torch.distributed.destroy_process_group()
