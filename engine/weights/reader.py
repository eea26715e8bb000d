"""Hands a model its tensors by name and sees to it that none is missing."""

from collections.abc import Iterable
from typing import Protocol

import torch
from torch import Tensor

from engine.errors import CheckpointError


class TensorSource(Protocol):
    """A checkpoint on disk."""

    @property
    def where(self) -> str:
        """What to call it in messages."""
        ...

    def names(self) -> Iterable[str]: ...

    def load(self, name: str) -> Tensor:
        """The tensor as stored. Raises CheckpointError when it cannot be read."""
        ...


class WeightReader:
    """Takes each tensor once, checked and in the model's dtype and place.

    Some checkpoints lack the prefix of the causal model ("model."), since they were saved without the
    head: `prefixes` are tried in turn in place of the first.
    """

    def __init__(
        self, source: TensorSource, dtype: torch.dtype, device: torch.device, prefixes: tuple[str, ...] = ()
    ) -> None:
        self._source = source
        self._dtype = dtype
        self._device = device
        self._left = set(source.names())
        self._prefixes = prefixes

    def has(self, name: str) -> bool:
        return self._stored_name(name) is not None

    def take(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """The tensor `name`. Raises CheckpointError when it is absent or has another shape."""
        stored = self._stored_name(name)
        if stored is None:
            raise CheckpointError(f"tensor {name!r} is not in {self._source.where}; the checkpoint is incomplete")
        tensor = self._source.load(stored)
        if tuple(tensor.shape) != tuple(shape):
            raise CheckpointError(
                f"tensor {stored!r} of {self._source.where} has shape {tuple(tensor.shape)}, "
                f"but the model's configuration needs {tuple(shape)}"
            )
        self._left.discard(stored)
        # A copy: what stays a view of the file keeps all of it mapped.
        return tensor.to(device=self._device, dtype=self._dtype, copy=True).contiguous()

    def ignore(self, name: str) -> None:
        """Mark a tensor that the model does not need."""
        self._left.discard(self._stored_name(name) or name)

    def unused(self) -> list[str]:
        """Stored tensors that nothing took. Buffers that are computed, not learned, do not count."""
        computed = (".inv_freq", ".attn.bias", ".masked_bias", ".rotary_emb.cos_cached", ".rotary_emb.sin_cached")
        return sorted(name for name in self._left if not name.endswith(computed))

    def _stored_name(self, name: str) -> str | None:
        if name in self._left:
            return name
        first, *others = self._prefixes or ("",)
        for prefix in others:
            candidate = prefix + name.removeprefix(first)
            if name.startswith(first) and candidate in self._left:
                return candidate
        return None
