"""One step of learning."""

import torch
from torch import nn


class Trainer:
    """Holds a model and its optimizer, and remembers the latest loss."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        self.loss = torch.zeros(())

    def step(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        """Learn from one batch."""
        self.optimizer.zero_grad()
        self.loss = nn.functional.cross_entropy(self.model(images), labels)
        self.loss.backward()
        self.optimizer.step()

    def latest_loss(self) -> float:
        """Say how wrong the model was before its latest step."""
        return self.loss.item()
