"""Facts: the pure function of one blob that a check stands on."""

import importlib
import importlib.util
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from gatewright.core.globs import PathSet
from gatewright.core.version import sources


class Extractor(msgspec.Struct, frozen=True, kw_only=True):
    """How the facts of one kind are taken from the bytes of one file.

    `function` is "package.module:name" of `(data: bytes, options) -> list[fact]`, where a fact is
    a msgspec struct of type `fact`. It is imported only where there is something to extract. An
    empty list is the common answer and costs nothing to store. `options` is what the policy says
    that shapes the facts: plain, hashable data, part of the cache key.
    """

    name: str
    paths: PathSet
    function: str
    fact: type[msgspec.Struct]
    options: Any = None

    def load(self) -> Any:
        module, _, attribute = self.function.partition(":")
        return getattr(importlib.import_module(module), attribute)

    def key(self) -> bytes:
        """Names the function from bytes to facts: its code, its options, the interpreter."""
        return _key(self.name, self.function, self.options)


@cache
def _key(name: str, function: str, options: Any) -> bytes:
    module = function.partition(":")[0]
    parts = (name, code_digest(module), repr(sorted_data(options)), python_minor())
    return blake2b("\0".join(parts).encode(), digest_size=16).digest()


def sorted_data(options: Any) -> Any:
    """Options as nested sorted lists, so that equal policies give equal keys."""
    data = msgspec.to_builtins(options)
    return _sorted(data)


def _sorted(data: Any) -> Any:
    if isinstance(data, dict):
        return [[key, _sorted(data[key])] for key in sorted(data)]
    if isinstance(data, list | tuple):
        return [_sorted(item) for item in data]
    return data


def python_minor() -> str:
    import sys

    return f"{sys.version_info[0]}.{sys.version_info[1]}"


@cache
def code_digest(module: str) -> str:
    """Digest of the source of `module`, of every extractor and of every reader."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"no module {module!r} to extract facts with", name=module)
    own = Path(spec.origin)
    state = blake2b(_shared_digest(), digest_size=16)
    state.update(own.name.encode() + b"\0" + (sources().get(own) or own.read_bytes()))
    return state.hexdigest()


@cache
def _shared_digest() -> bytes:
    state = blake2b(digest_size=16)
    for path, content in sources().items():
        if path.parent.name in ("readers", "extractors") or path == Path(__file__):
            state.update(path.name.encode() + b"\0" + content + b"\0")
    return state.digest()
