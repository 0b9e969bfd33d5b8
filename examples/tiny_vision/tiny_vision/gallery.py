"""Find the pictures that look most like a given one."""

import torch


class Gallery:
    """The embeddings of all known pictures, kept at length 1."""

    def __init__(self, embeddings: torch.Tensor) -> None:
        self.embeddings = torch.nn.functional.normalize(embeddings)

    def search(self, queries: torch.Tensor, *, count: int) -> torch.Tensor:
        """Positions of the `count` nearest pictures of each query, nearest first."""
        similarity = torch.nn.functional.normalize(queries) @ self.embeddings.T
        return similarity.topk(count).indices
