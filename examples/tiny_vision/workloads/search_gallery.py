"""The nearest pictures in a large gallery, for one query."""

import torch
from ci_perf.workload import Context, Workload
from tiny_vision.gallery import Gallery


def build(context: Context) -> Workload:
    pictures = int(context.parameters["pictures"])
    gallery = Gallery(torch.randn(pictures, 64, device=context.device))
    query = torch.randn(1, 64, device=context.device)

    def step() -> torch.Tensor:
        return gallery.search(query, count=5)

    return Workload(
        step=step,
        output=step,
        item_unit="query",
    )
