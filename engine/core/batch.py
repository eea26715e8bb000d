"""The flat batch of one step: prefill chunks and decodes side by side, without padding."""

from collections.abc import Sequence as Seq

import msgspec
import torch
from torch import Tensor

from engine.core.block_pool import NULL_BLOCK
from engine.core.cache_groups import CacheGroup
from engine.core.scheduler import ScheduledSequence


class AttentionBatch(msgspec.Struct, frozen=True):
    """Where the layers of one cache group write and read, for T tokens of S sequences.

    Sequence s has `query_lens[s]` queries, which are its last positions of `context_lens[s]`, at rows
    `query_starts[s]` onwards. `slots` [T] int64: block * block_size + offset of each token's own key
    and value. `block_table` [S, B] int64, padded with the null block.
    """

    query_starts: list[int]
    query_lens: list[int]
    context_lens: list[int]
    slots: Tensor
    block_table: Tensor
    block_size: int


class ForwardBatch(msgspec.Struct, frozen=True):
    """What the model reads: `token_ids` and `positions` [T] int64, and one attention batch per group."""

    token_ids: Tensor
    positions: Tensor
    attention: list[AttentionBatch]


def build_batch(items: Seq[ScheduledSequence], groups: Seq[CacheGroup], device: torch.device) -> ForwardBatch:
    """The batch of these sequences. A token still in flight stands as 0 until it is put in on the device."""
    tokens: list[int] = []
    positions: list[int] = []
    owners: list[int] = []
    starts: list[int] = []
    for row, item in enumerate(items):
        starts.append(len(tokens))
        known = item.sequence.token_ids[item.start : item.end]
        tokens.extend(known + [0] * (item.count - len(known)))
        positions.extend(range(item.start, item.end))
        owners.extend([row] * item.count)
    position = torch.tensor(positions)
    owner = torch.tensor(owners)
    counts = [item.count for item in items]
    contexts = [item.end for item in items]
    attention = []
    for group in groups:
        table = _block_table(items, group)
        blocks = table[owner, position // group.block_size]
        slots = blocks * group.block_size + position % group.block_size
        attention.append(AttentionBatch(starts, counts, contexts, slots.to(device), table.to(device), group.block_size))
    return ForwardBatch(torch.tensor(tokens).to(device), position.to(device), attention)


def _block_table(items: Seq[ScheduledSequence], group: CacheGroup) -> Tensor:
    tables = [item.sequence.tables[group.index] for item in items]
    width = max(len(table) for table in tables)
    return torch.tensor([table + [NULL_BLOCK] * (width - len(table)) for table in tables])
