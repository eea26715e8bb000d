"""Whose code judges: the version and the digest of the installed gate, printed in every report."""

from functools import cache
from hashlib import blake2b
from pathlib import Path

from gatewright import __version__


def gate_version() -> str:
    return __version__


@cache
def gate_digest() -> str:
    """Twelve hexadecimal digits over the path and content of every module of the package."""
    root = Path(__file__).resolve().parent.parent
    state = blake2b(digest_size=6)
    for path in sorted(root.rglob("*.py")):
        state.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return state.hexdigest()
