"""Token embeddings and the head that may share their weights."""

import torch.nn.functional as F
from torch import Tensor

from engine.layers.context import BuildContext


class Embedding:
    """Rows of weight [vocab, dim] by token id."""

    def __init__(self, context: BuildContext, name: str, vocab: int, dim: int) -> None:
        self.weight = context.weights.take(f"{name}.weight", (vocab, dim))

    def __call__(self, ids: Tensor) -> Tensor:
        return F.embedding(ids, self.weight)


class Head:
    """hidden [R, dim] -> logits [R, vocab].

    A tied head shares the embedding and ignores a head in the checkpoint; an untied one must be there.
    """

    def __init__(self, context: BuildContext, name: str, embedding: Embedding, tied: bool) -> None:
        if tied:
            context.weights.ignore(f"{name}.weight")
            self._linear = context.shared_linear(embedding.weight)
        else:
            vocab, dim = embedding.weight.shape
            self._linear = context.linear(name, (vocab, dim))

    def __call__(self, hidden: Tensor) -> Tensor:
        return self._linear(hidden)
