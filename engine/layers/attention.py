"""Attention over the paged KV cache, and the memory that it reads."""

from collections.abc import Callable, Sequence

import msgspec
import torch
from torch import Tensor

from engine.core.batch import ForwardBatch
from engine.core.cache_groups import CacheGroup, LayerCache
from engine.layers.context import BuildContext
from engine.layers.norm import RMSNorm


class KVCache:
    """Key and value pages of every layer.

    A block is one page in each layer slot; a layer uses the slot that is its place in its group. So
    groups share one pool of equal-byte blocks, and `num_blocks` of them are all the memory there is.
    """

    def __init__(
        self,
        layers: Sequence[LayerCache],
        groups: Sequence[CacheGroup],
        num_blocks: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        shape = (num_blocks, groups[0].block_size, layers[0].num_kv_heads, layers[0].head_dim)
        slots = max(len(group.layers) for group in groups)
        # Zeros: padding is read, and weighed with 0, by kernels that gather whole pages.
        self.keys = [torch.zeros(shape, dtype=dtype, device=device) for _ in range(slots)]
        self.values = [torch.zeros(shape, dtype=dtype, device=device) for _ in range(slots)]
        places = {layer: (group.index, slot) for group in groups for slot, layer in enumerate(group.layers)}
        self.places = [places[layer] for layer in range(len(layers))]

    def wipe(self, blocks: Sequence[int]) -> None:
        """Set blocks to zero, so that what is in them cannot reach whoever gets them next."""
        for pages in (*self.keys, *self.values):
            pages[list(blocks)] = 0


def block_bytes(layers: Sequence[LayerCache], groups: Sequence[CacheGroup], dtype: torch.dtype) -> int:
    """Bytes of one block over all its layer slots. Every layer must store equally much per token."""
    if len({(layer.num_kv_heads, layer.head_dim) for layer in layers}) > 1:
        raise ValueError("layers that store unequally much per token cannot share blocks")
    slots = max(len(group.layers) for group in groups)
    per_token = 2 * layers[0].num_kv_heads * layers[0].head_dim * dtype.itemsize
    return slots * groups[0].block_size * per_token


class AttentionShape(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes and rules of one attention layer. `window` None sees all; `cap` None leaves scores as they are."""

    hidden: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    scale: float
    window: int | None = None
    cap: float | None = None

    @property
    def cache(self) -> LayerCache:
        return LayerCache(self.num_kv_heads, self.head_dim, self.window)


class PagedAttention:
    """Stores this step's keys and values, then attends over the sequence's pages."""

    def __init__(self, context: BuildContext, layer: int, shape: AttentionShape) -> None:
        self.layer = layer
        self.shape = shape
        self._ops = context.ops

    def __call__(self, query: Tensor, key: Tensor, value: Tensor, batch: ForwardBatch, cache: KVCache) -> Tensor:
        """query [T, heads, dim], key and value [T, kv_heads, dim] -> [T, heads * dim]."""
        group, slot = cache.places[self.layer]
        where = batch.attention[group]
        keys, values = cache.keys[slot], cache.values[slot]
        self._ops.store_kv(key, value, keys, values, where.slots)
        attended = self._ops.paged_attention(
            query, keys, values, where, self.shape.scale, self.shape.window, self.shape.cap
        )
        return attended.flatten(1)


class SelfAttention:
    """Projections around paged attention, with rotary positions and, in some families, normalised q and k."""

    def __init__(
        self,
        context: BuildContext,
        name: str,
        layer: int,
        shape: AttentionShape,
        bias: bool = False,
        norm: Callable[[str], RMSNorm] | None = None,
    ) -> None:
        """`norm` builds the norm of a head from its name; None leaves q and k as projected."""
        sizes = [shape.num_heads * shape.head_dim, shape.num_kv_heads * shape.head_dim]
        self.sizes = [sizes[0], sizes[1], sizes[1]]
        names = [f"{name}.{part}_proj" for part in "qkv"]
        self.qkv = context.fused_linear(names, self.sizes, shape.hidden, bias)
        self.output = context.linear(f"{name}.o_proj", (shape.hidden, sizes[0]), bias)
        self.q_norm = norm(f"{name}.q_norm") if norm else None
        self.k_norm = norm(f"{name}.k_norm") if norm else None
        self.attention = PagedAttention(context, layer, shape)
        self._rotary = context.ops.rotary

    def __call__(self, x: Tensor, angles: tuple[Tensor, Tensor], batch: ForwardBatch, cache: KVCache) -> Tensor:
        """x [T, hidden] -> [T, hidden]; `angles` are cos and sin [T, dim]."""
        dim = self.attention.shape.head_dim
        query, key, value = (part.unflatten(-1, (-1, dim)) for part in self.qkv(x).split(self.sizes, dim=-1))
        if self.q_norm and self.k_norm:
            query, key = self.q_norm(query), self.k_norm(key)
        query, key = self._rotary(query, *angles), self._rotary(key, *angles)
        return self.output(self.attention(query, key, value, batch, cache))
