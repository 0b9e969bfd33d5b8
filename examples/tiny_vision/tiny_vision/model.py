"""The network: images in, class scores or an embedding out."""

import torch
from torch import nn

WIDTHS = (16, 32, 64)


class TinyNet(nn.Module):
    """Three convolutions, each halving the image, and a linear classifier."""

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, WIDTHS[0], 3, stride=2, padding=1)
        self.norm1 = nn.BatchNorm2d(WIDTHS[0])
        self.conv2 = nn.Conv2d(WIDTHS[0], WIDTHS[1], 3, stride=2, padding=1)
        self.norm2 = nn.BatchNorm2d(WIDTHS[1])
        self.conv3 = nn.Conv2d(WIDTHS[1], WIDTHS[2], 3, stride=2, padding=1)
        self.norm3 = nn.BatchNorm2d(WIDTHS[2])
        self.classifier = nn.Linear(WIDTHS[2], classes)

    def embed(self, images: torch.Tensor) -> torch.Tensor:
        """One vector per image: (N, 3, H, W) to (N, 64)."""
        x = torch.relu(self.norm1(self.conv1(images)))
        x = torch.relu(self.norm2(self.conv2(x)))
        x = torch.relu(self.norm3(self.conv3(x)))
        return x.mean(dim=(2, 3))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Class scores: (N, 3, H, W) to (N, classes)."""
        return self.classifier(self.embed(images))
