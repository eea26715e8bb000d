"""Cache groups: layers that keep the same positions share block tables."""

from collections.abc import Callable, Sequence
from math import ceil

import msgspec

from engine.core.block_pool import NULL_BLOCK
from engine.core.prefix_keys import BlockKey

# The block that holds a key's content, or None.
Lookup = Callable[[BlockKey], int | None]


class LayerCache(msgspec.Struct, frozen=True):
    """What one attention layer stores per token. `window` None keeps every position."""

    num_kv_heads: int
    head_dim: int
    window: int | None = None


class CacheGroup:
    """Layers with one block table. Base of the kinds; this one keeps every position."""

    def __init__(self, index: int, layers: Sequence[int], block_size: int) -> None:
        self.index = index
        self.layers = tuple(layers)
        self.block_size = block_size

    def table_length(self, num_tokens: int) -> int:
        """Entries of a block table that reaches over `num_tokens` positions."""
        return ceil(num_tokens / self.block_size)

    def free_before(self, num_computed: int) -> int:
        """Table index before which no later query needs a block, when `num_computed` positions are stored."""
        return 0

    def blocks_needed(self, num_tokens: int, chunk: int) -> int:
        """Most blocks held at once by a sequence that grows to `num_tokens` in steps of at most `chunk`."""
        return self.table_length(num_tokens)

    def longest_hit(self, keys: Sequence[BlockKey], lookup: Lookup) -> list[int]:
        """The block table of the longest cached prefix of `keys`, in whole blocks."""
        table: list[int] = []
        for key in keys:
            block = lookup(key)
            if block is None:
                break
            table.append(block)
        return table


class SlidingGroup(CacheGroup):
    """Layers whose queries see the last `window` positions, their own included."""

    def __init__(self, index: int, layers: Sequence[int], block_size: int, window: int) -> None:
        super().__init__(index, layers, block_size)
        self.window = window

    def free_before(self, num_computed: int) -> int:
        return max(0, num_computed - self.window + 1) // self.block_size

    def blocks_needed(self, num_tokens: int, chunk: int) -> int:
        # The window before a chunk and the chunk itself may each straddle one more block.
        span = ceil((self.window - 1 + chunk) / self.block_size) + 1
        return min(self.table_length(num_tokens), span)

    def longest_hit(self, keys: Sequence[BlockKey], lookup: Lookup) -> list[int]:
        # Blocks before the window may be gone: look for the longest prefix whose last window is there.
        found: dict[int, int] = {}
        end = len(keys)
        position = end - 1
        while end > 0:
            start = self.free_before(end * self.block_size)
            while position >= start:
                block = lookup(keys[position])
                if block is None:
                    break
                found[position] = block
                position -= 1
            else:
                return [NULL_BLOCK] * start + [found[index] for index in range(start, end)]
            end = position
            position = end - 1
        return []


def group_layers(layers: Sequence[LayerCache], block_size: int) -> list[CacheGroup]:
    """Groups of equally many layers of one window, so that their pages have equal bytes.

    The group size is the layer count of the rarest window; where it does not divide the others, a
    group's last layer slots stay unused.
    """
    by_window: dict[int | None, list[int]] = {}
    for index, layer in enumerate(layers):
        by_window.setdefault(layer.window, []).append(index)
    size = min(len(members) for members in by_window.values())
    groups: list[CacheGroup] = []
    for window, members in by_window.items():
        for start in range(0, len(members), size):
            part = members[start : start + size]
            index = len(groups)
            groups.append(
                CacheGroup(index, part, block_size) if window is None else SlidingGroup(index, part, block_size, window)
            )
    return groups
