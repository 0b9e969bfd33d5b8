"""From the bytes of a batch of thumbnails to their class scores."""

import torch
from ci_perf.workload import Context, Workload
from tiny_vision import images
from tiny_vision.model import TinyNet


def build(context: Context) -> Workload:
    batch = int(context.parameters["batch"])
    model = TinyNet().to(context.device).eval()
    thumbnails = images.random_images(batch, size=8).to(context.device)

    @torch.inference_mode()
    def step() -> torch.Tensor:
        return model(images.prepare(thumbnails))

    return Workload(step=step, output=step, items_per_step=batch, item_unit="image")
