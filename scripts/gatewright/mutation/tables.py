"""Mutants of a policy file: an entry dropped, a limit moved, a flag turned, a pattern or text broken."""

import re
from collections.abc import Iterator
from typing import Any

from gatewright.mutation.mutant import Mutant, numbered
from gatewright.mutation.patterns import MARK, regex_edits

Keys = tuple[str | int, ...]


def plan_policy(path: str, source: bytes) -> list[Mutant]:
    """Every mutant of the TOML file at `path`; layout and comments stay as they are."""
    import tomlkit

    text = source.decode()
    mutants = []
    for keys, value in _values(tomlkit.parse(text), ()):
        for operator, becomes in _edits(value, in_array=isinstance(keys[-1], int)):
            document = tomlkit.parse(text)
            owner: Any = document
            for key in keys[:-1]:
                owner = owner[key]
            if operator == "entry":
                del owner[keys[-1]]
            else:
                owner[keys[-1]] = becomes
            edited = tomlkit.dumps(document).encode()
            mutants.append(_mutant(path, source, edited, keys, operator, value, becomes))
    return numbered(mutants)


def _values(node: Any, keys: Keys) -> Iterator[tuple[Keys, Any]]:
    """Leaves, and the tables and arrays that hold them, with the keys that lead there."""
    if keys:
        yield keys, node
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in items:
        yield from _values(child, (*keys, key))


def _edits(value: Any, *, in_array: bool) -> Iterator[tuple[str, Any]]:
    yield "entry", ""
    if isinstance(value, bool):
        yield "flag", not value
    elif isinstance(value, int | float):
        yield "limit", value + 1
        yield "limit", value - 1
    elif isinstance(value, str):
        if re.search(r"\\[a-zA-Z]|\[[^\]]+\]|[)+*]\??$", value) and "/" not in value:
            yield from (("regex", edited) for edited in regex_edits(str(value)))
        elif not in_array:
            yield "string", MARK + value


def _mutant(path: str, source: bytes, edited: bytes, keys: Keys, operator: str, value: Any, becomes: Any) -> Mutant:
    start = _common(source, edited)
    tail = _common(source[start:][::-1], edited[start:][::-1])
    end = len(source) - tail
    line = source.count(b"\n", 0, start) + 1
    unwrapped = value.unwrap() if hasattr(value, "unwrap") else value
    return Mutant(
        path=path,
        function=".".join(str(key) for key in keys if isinstance(key, str)),
        operator=operator,
        source=str(unwrapped),
        becomes="" if operator == "entry" else str(becomes),
        start=start,
        end=end,
        before=source[start:end],
        after=edited[start : len(edited) - tail],
        line=line,
        first=line,
        last=line,
        at_import=True,
    )


def _common(left: bytes, right: bytes) -> int:
    """Length of the common beginning."""
    size = min(len(left), len(right))
    return next((number for number in range(size) if left[number] != right[number]), size)
