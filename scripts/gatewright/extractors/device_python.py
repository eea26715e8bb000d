"""Device sites of Python files, from cheap to exact: bytes, then comments and docstrings, then `ast`."""

import re

from gatewright.extractors.device_needles import needles
from gatewright.extractors.device_site import Site, Vocabulary
from gatewright.readers import python
from gatewright.readers.python_lexer import code_hits, line_numbers

_IMPORT = re.compile(rb"[ \t]*(?:import[ \t]+[\w.]+[ \t]+as|from[ \t]+[\w.]+[ \t]+import)[ \t]([^\r\n#]{1,500})")


def extract(data: bytes, options: Vocabulary) -> list[Site]:
    """The sites of one file in order of place; where it does not parse, an `unparsable` site comes first."""
    data = python.utf8(data)
    hits = needles(options).hits(data)
    hits = code_hits(data, hits) if hits else []
    return _read_around(data, options, hits) if hits else []


def _read_around(data: bytes, options: Vocabulary, hits: list[int]) -> list[Site]:
    """The exact stage on the parts of a file that may hold sites; on all of it where those cannot be told."""
    from gatewright.extractors import device_statements

    names = {name for hit in hits for name in _imported_names(data, hit)}
    if names:
        pattern = re.compile(rb"\b(?:" + b"|".join(sorted(map(re.escape, names))) + rb")\b")
        hits = code_hits(data, sorted({*hits, *(use.start() for use in pattern.finditer(data))}))
    lines = line_numbers(data, hits)
    source = python.parse_around(data, hits)
    found = None if source is None else device_statements.sites(source, options, lines, is_part=True)
    return read(data, options, lines) if found is None else found


def _imported_names(data: bytes, hit: int) -> list[bytes]:
    """Names that the import on the line of a hit binds: their uses may be sites as well."""
    start = data.rfind(b"\n", 0, hit) + 1
    line = _IMPORT.match(data, start)
    return re.findall(rb"\w+", line[1]) if line else []


def read(data: bytes, options: Vocabulary, hit_lines: list[int] | None = None) -> list[Site]:
    """The exact stage on a whole file of UTF-8 source; `hit_lines` None: every line is looked at."""
    # The modules that need the syntax tree are loaded only where a file reaches this stage.
    from gatewright.extractors import device_lexical, device_statements

    source = python.parse_utf8(data)
    if source.tree is None:
        return device_lexical.sites(source, options)
    found = device_statements.sites(source, options, hit_lines)
    assert found is not None
    return found
