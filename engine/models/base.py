"""What the engine expects of a model family."""

from collections.abc import Mapping
from typing import Any, Protocol

from torch import Tensor

from engine.core.batch import ForwardBatch
from engine.layers.attention import AttentionShape, KVCache
from engine.layers.context import BuildContext


class CausalLM(Protocol):
    """A decoder with its weights."""

    def forward(self, batch: ForwardBatch, cache: KVCache) -> Tensor:
        """Hidden states [T, dim] of the flat batch."""
        ...

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits [R, vocab] of some rows [R, dim] of the hidden states."""
        ...


class Family(Protocol):
    """How to read a configuration and build a model from it. One module per family has one."""

    # The first is what the model's tensors are called by; the others are tried in its place.
    prefixes: tuple[str, ...]
    # Whether positions beyond the configuration's limit can be computed at all.
    extensible_positions: bool

    def attention(self, config: Mapping[str, Any]) -> list[AttentionShape]:
        """The attention of every layer, from the first to the last. Raises CheckpointError on unknown settings."""
        ...

    def build(self, config: Mapping[str, Any], context: BuildContext) -> CausalLM: ...
