"""Keys of cached blocks: a chain over token ids and extra keys."""

from collections.abc import Hashable
from weakref import WeakValueDictionary


class BlockKey:
    """Names the content of one full block and of all before it.

    Interned: two keys are the same object exactly when their parents, token ids and extra keys are
    equal. So a dictionary hit is a verified hit, and no hash collision can serve foreign content.
    """

    __slots__ = ("__weakref__",)


class PrefixKeys:
    """Interns keys. A key lives while a block, a sequence or a longer chain refers to it."""

    def __init__(self) -> None:
        self._keys: WeakValueDictionary[Hashable, BlockKey] = WeakValueDictionary()

    def intern(self, parent: BlockKey | None, tokens: tuple[int, ...], extra: Hashable = None) -> BlockKey:
        """The key of a block. `extra` is what changes the content beside the tokens: adapter load, image, salt."""
        content = (parent, tokens, extra)
        key = self._keys.get(content)
        if key is None:
            key = self._keys[content] = BlockKey()
        return key
