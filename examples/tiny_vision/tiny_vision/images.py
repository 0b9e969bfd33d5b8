"""From the bytes of a camera to the numbers that the network wants."""

import torch

EPSILON = 1e-3


def random_images(count: int, size: int) -> torch.Tensor:
    """Stand in for a camera: (count, 3, size, size), uint8."""
    return torch.randint(0, 256, (count, 3, size, size), dtype=torch.uint8)


def standardize(images: torch.Tensor) -> torch.Tensor:
    """Give every image of a batch mean 0 and deviation 1: (N, 3, H, W)."""
    deviation, mean = torch.std_mean(images, dim=(1, 2, 3), keepdim=True)
    return (images - mean) / (deviation + EPSILON)


def prepare(images: torch.Tensor) -> torch.Tensor:
    """Turn a batch into what the network wants: uint8 in, float out."""
    return standardize(images.float() / 255)
