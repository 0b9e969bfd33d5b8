"""One optimizer step on a batch of prepared images."""

import torch
from ci_perf.workload import Context, Workload
from tiny_vision.model import TinyNet
from tiny_vision.training import Trainer


def build(context: Context) -> Workload:
    batch = int(context.parameters["batch"])
    trainer = Trainer(TinyNet().to(context.device))
    images = torch.randn(batch, 3, 32, 32, device=context.device)
    labels = torch.randint(0, 10, (batch,), device=context.device)
    return Workload(
        step=lambda: trainer.step(images, labels),
        items_per_step=batch,
        item_unit="image",
        loss=trainer.latest_loss,
    )
