"""Noise of ImageNet's shape, on the device: no decoding, no copying in the step."""

import torch

CLASSES = 1000
# The training images of ImageNet's ILSVRC 2012 (https://arxiv.org/abs/1409.0575, table 2).
IMAGES = 1_281_167
BATCHES = 4


def draw_batches(
    batch: int, side: int, device: torch.device, layout: torch.memory_format
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return square images of this side with labels drawn at random."""
    shape = (batch, 3, side, side)
    return [
        (
            torch.randn(shape, device=device).to(memory_format=layout),
            torch.randint(0, CLASSES, (batch,), device=device),
        )
        for _ in range(BATCHES)
    ]
