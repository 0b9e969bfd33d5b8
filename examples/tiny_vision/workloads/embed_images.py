"""One vector per image, for a batch of prepared images."""

import torch
from ci_perf.workload import Context, Workload
from tiny_vision.model import TinyNet


def build(context: Context) -> Workload:
    model = TinyNet().to(context.device).eval()
    images = torch.randn(32, 3, 32, 32, device=context.device)
    return Workload(
        step=torch.inference_mode()(lambda: model.embed(images)),
        items_per_step=len(images),
        item_unit="image",
    )
