"""Which sequence holds which blocks, over all cache groups."""

from collections.abc import Sequence as Seq
from functools import partial

from engine.core.block_pool import NULL_BLOCK, BlockPool
from engine.core.cache_groups import CacheGroup
from engine.core.prefix_keys import BlockKey, PrefixKeys
from engine.core.request import Sequence


class KVCacheManager:
    """Block tables of all sequences. Only this object changes a sequence's `tables` and `keys`."""

    def __init__(self, groups: Seq[CacheGroup], num_blocks: int, enable_prefix_caching: bool) -> None:
        """All groups share one `block_size`; `num_blocks` counts the null block."""
        self.groups = list(groups)
        self.block_size = self.groups[0].block_size
        self.pool = BlockPool(num_blocks)
        self.caching = enable_prefix_caching
        self._keys = PrefixKeys()

    def blocks_for(self, num_tokens: int, chunk: int) -> int:
        """Most blocks that a sequence of `num_tokens` holds at once, when computed `chunk` tokens at a time."""
        return sum(group.blocks_needed(num_tokens, chunk) for group in self.groups)

    def admit(self, sequence: Sequence, chunk: int) -> bool:
        """Give a sequence without blocks its cached prefix, if it can then grow to its present tokens.

        Sets `num_computed` to the length of the hit.
        """
        tables = self._longest_hit(sequence)
        held = [block for table in tables for block in table if block != NULL_BLOCK]
        to_grow = self.blocks_for(sequence.num_tokens, chunk) - len(held)
        if self.pool.count_free(held) + max(0, to_grow) > self.pool.num_free:
            return False
        self.pool.share(held)
        sequence.tables = tables
        sequence.num_computed = len(tables[0]) * self.block_size
        sequence.num_remembered = len(tables[0])
        return True

    def extend(self, sequence: Sequence, count: int) -> bool:
        """Provide slots for the next `count` positions; False, and nothing changed, when blocks are short."""
        self._free_out_of_window(sequence)
        end = sequence.num_computed + count
        missing = [group.table_length(end) - len(sequence.tables[group.index]) for group in self.groups]
        if sum(missing) > self.pool.num_free:
            return False
        for table, more in zip(sequence.tables, missing, strict=True):
            table.extend(self.pool.allocate(more))
        return True

    def remember(self, sequence: Sequence, num_computed: int) -> None:
        """Make the full blocks under the first `num_computed` positions findable by other sequences."""
        if not self.caching:
            return
        end = min(num_computed, len(sequence.token_ids)) // self.block_size
        self._extend_keys(sequence, end)
        for index in range(sequence.num_remembered, end):
            for group in self.groups:
                block = sequence.tables[group.index][index]
                if block != NULL_BLOCK:
                    self.pool.remember(group.index, sequence.keys[index], block)
        sequence.num_remembered = max(sequence.num_remembered, end)

    def release(self, sequence: Sequence) -> None:
        """Take all blocks back. The end of a sequence is given up first: its start is what others share."""
        for table in sequence.tables:
            self.pool.release(reversed(table))
        sequence.tables = []
        sequence.num_computed = 0
        sequence.num_remembered = 0

    def spoil(self, sequence: Sequence) -> list[int]:
        """Make the content of the blocks that only this sequence holds unfindable; returns these blocks."""
        own = [b for table in sequence.tables for b in table if b != NULL_BLOCK and self.pool.refs[b] == 1]
        for block in own:
            self.pool.forget(block)
        return own

    def _free_out_of_window(self, sequence: Sequence) -> None:
        for group in self.groups:
            table = sequence.tables[group.index]
            index = min(group.free_before(sequence.num_computed), len(table)) - 1
            while index >= 0 and table[index] != NULL_BLOCK:
                self.pool.release([table[index]])
                table[index] = NULL_BLOCK
                index -= 1

    def _longest_hit(self, sequence: Sequence) -> list[list[int]]:
        """Block tables of the longest prefix that is cached in every group, leaving a token to compute.

        Prompt logprobs need the logits of every prompt position, so such a sequence computes them all.
        """
        limit = (len(sequence.token_ids) - 1) // self.block_size
        if not self.caching or sequence.wants_prompt_logprobs:
            limit = 0
        self._extend_keys(sequence, limit)
        while limit:
            keys = sequence.keys[:limit]
            tables = [group.longest_hit(keys, partial(self.pool.lookup, group.index)) for group in self.groups]
            shortest = min(len(table) for table in tables)
            if shortest == limit:
                return tables
            limit = shortest
        return [[] for _ in self.groups]

    def _extend_keys(self, sequence: Sequence, count: int) -> None:
        size = self.block_size
        for index in range(len(sequence.keys), count):
            parent: BlockKey | None = sequence.keys[-1] if index else None
            tokens = tuple(sequence.token_ids[index * size : (index + 1) * size])
            sequence.keys.append(self._keys.intern(parent, tokens, sequence.request.cache_salt))
