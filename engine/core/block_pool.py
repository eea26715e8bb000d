"""The pages of the KV cache: who holds them, which are free, which still hold useful content."""

from collections import OrderedDict
from collections.abc import Iterable

from engine.core.prefix_keys import BlockKey

# Stands in block tables for a page that its group no longer needs. Never allocated, never read.
NULL_BLOCK = 0


class BlockPool:
    """Equal-byte blocks, numbered from 1, under reference counts and one LRU of free blocks.

    A free block keeps its content and its key until it is taken: it can be hit until then. Content
    belongs to one cache group, so keys are (group index, block key).
    """

    def __init__(self, num_blocks: int) -> None:
        """`num_blocks` counts the null block."""
        self.num_blocks = num_blocks
        self.refs = [0] * num_blocks
        self._keys: list[tuple[int, BlockKey] | None] = [None] * num_blocks
        self._cached: dict[tuple[int, BlockKey], int] = {}
        self._free: OrderedDict[int, None] = OrderedDict.fromkeys(range(1, num_blocks))

    @property
    def num_free(self) -> int:
        return len(self._free)

    def allocate(self, count: int) -> list[int]:
        """Take the least recently used free blocks. The caller has checked `num_free`."""
        blocks = [self._free.popitem(last=False)[0] for _ in range(count)]
        for block in blocks:
            self.refs[block] = 1
            self.forget(block)
        return blocks

    def lookup(self, group: int, key: BlockKey) -> int | None:
        """The block that holds this content, taken or free."""
        return self._cached.get((group, key))

    def share(self, blocks: Iterable[int]) -> None:
        """Add a holder to each block; a free one leaves the free list with its content."""
        for block in blocks:
            if block != NULL_BLOCK:
                if self.refs[block] == 0:
                    del self._free[block]
                self.refs[block] += 1

    def release(self, blocks: Iterable[int]) -> None:
        """Drop a holder of each block, in the order in which their content should be given up."""
        for block in blocks:
            if block == NULL_BLOCK:
                continue
            self.refs[block] -= 1
            if self.refs[block] == 0:
                self._free[block] = None
                if self._keys[block] is None:
                    self._free.move_to_end(block, last=False)

    def remember(self, group: int, key: BlockKey, block: int) -> None:
        """Make a block's content findable. Of two blocks with equal content the first stays."""
        if self._keys[block] is None and (group, key) not in self._cached:
            self._keys[block] = (group, key)
            self._cached[group, key] = block

    def count_free(self, blocks: Iterable[int]) -> int:
        """How many of these blocks sharing would take from the free list."""
        return sum(1 for block in blocks if block != NULL_BLOCK and self.refs[block] == 0)

    def forget(self, block: int) -> None:
        """Make a block's content unfindable."""
        key = self._keys[block]
        if key is not None:
            self._keys[block] = None
            del self._cached[key]
