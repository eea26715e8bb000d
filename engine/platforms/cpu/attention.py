"""Paged attention by gathering pages for torch's fused attention: all decodes at once, prefills one by one."""

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.core.batch import AttentionBatch
from engine.ops.portable import hidden_keys
from engine.ops.table import OpSpec, Provider


def _unsupported(spec: OpSpec) -> list[str]:
    return ["torch's fused attention has no softcap"] if spec.softcaps else []


def paged_attention(
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    batch: AttentionBatch,
    scale: float,
    window: int | None = None,
    cap: float | None = None,
) -> Tensor:
    """As the portable op, without `cap`."""
    output = torch.empty_like(query)
    decodes = [row for row, count in enumerate(batch.query_lens) if count == 1]
    if decodes:
        rows = torch.tensor([batch.query_starts[row] for row in decodes])
        contexts = torch.tensor([batch.context_lens[row] for row in decodes])
        output[rows] = _decode(query[rows], key_cache, value_cache, batch, decodes, contexts, scale, window)
    for row, count in enumerate(batch.query_lens):
        if count > 1:
            own = slice(batch.query_starts[row], batch.query_starts[row] + count)
            output[own] = _prefill(query[own], key_cache, value_cache, batch, row, scale, window)
    return output


def _decode(
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    batch: AttentionBatch,
    rows: list[int],
    contexts: Tensor,
    scale: float,
    window: int | None,
) -> Tensor:
    size = batch.block_size
    last = -(-int(contexts.max()) // size)
    first = 0 if window is None else max(0, int(contexts.min()) - window) // size
    pages = batch.block_table[rows, first:last]
    keys, values = (cache[pages].flatten(1, 2).transpose(1, 2) for cache in (key_cache, value_cache))
    positions = torch.arange(first * size, last * size)
    seen = positions < contexts[:, None]
    if window is not None:
        seen &= positions >= contexts[:, None] - window
    attended = F.scaled_dot_product_attention(
        query[:, :, None], keys, values, attn_mask=seen[:, None, None], scale=scale, enable_gqa=True
    )
    return attended[:, :, 0]


def _prefill(
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    batch: AttentionBatch,
    row: int,
    scale: float,
    window: int | None,
) -> Tensor:
    size, context, count = batch.block_size, batch.context_lens[row], len(query)
    first = 0 if window is None else max(0, context - count - window + 1) // size
    pages = batch.block_table[row, first : -(-context // size)]
    length = context - first * size
    keys, values = (cache[pages].flatten(0, 1)[:length].transpose(0, 1) for cache in (key_cache, value_cache))
    hidden = hidden_keys(count, context, window, query.device)[:, first * size :]
    attended = F.scaled_dot_product_attention(
        query.transpose(0, 1)[None], keys[None], values[None], attn_mask=~hidden, scale=scale, enable_gqa=True
    )
    return attended[0].transpose(0, 1)


PROVIDER = Provider(op="paged_attention", name="sdpa", unsupported=_unsupported, load=lambda: paged_attention)
