"""Whose code judges: the version and the digest of the installed gate, printed in every report."""

from functools import cache
from hashlib import blake2b
from pathlib import Path

from gatewright import __version__

PACKAGE = Path(__file__).resolve().parent.parent


@cache
def sources() -> dict[Path, bytes]:
    """Content of every module of the package, in order of path; read once a run."""
    return {path: path.read_bytes() for path in sorted(PACKAGE.rglob("*.py"))}


def gate_version() -> str:
    return __version__


@cache
def gate_digest() -> str:
    """Twelve hexadecimal digits over the path and content of every module of the package."""
    state = blake2b(digest_size=6)
    for path, content in sources().items():
        state.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + content + b"\0")
    return state.hexdigest()
