"""Counter-based uniforms: a value depends on its counters alone, so neighbours and restarts cannot matter."""

import struct
from hashlib import blake2b

# Fewer bits than a double holds: a uniform times a sum stays below the sum.
_BITS = 48


def uniform(seed: int, choice: int, position: int) -> float:
    """The number in [0, 1) that belongs to this output position of this choice."""
    counters = struct.pack("<QQQ", seed % 2**64, choice, position)
    number = int.from_bytes(blake2b(counters, digest_size=8).digest(), "little")
    return (number >> (64 - _BITS)) / float(2**_BITS)
