"""Device sites of Python files, from cheap to exact: bytes, then comments and docstrings, then `ast`."""

from gatewright.extractors.device_needles import needles
from gatewright.extractors.device_site import Site, Vocabulary
from gatewright.readers import python


def extract(data: bytes, options: Vocabulary) -> list[Site]:
    """The sites of one file in order of place; where it does not parse, an `unparsable` site comes first."""
    data = python.utf8(data)
    hits = needles(options).hits(data)
    if hits is not None:
        hits = python.code_hits(data, hits) if hits else []
        if not hits:
            return []
    return read(data, options, None if hits is None else python.line_numbers(data, hits))


def read(data: bytes, options: Vocabulary, hit_lines: list[int] | None) -> list[Site]:
    """The exact stage on UTF-8 source; `hit_lines` None: every line is looked at."""
    # The tree's modules are loaded only where a file reaches this stage.
    from gatewright.extractors import device_lexical, device_statements

    source = python.parse_utf8(data)
    if source.tree is None:
        return device_lexical.sites(source, options)
    return device_statements.sites(source, options, hit_lines)
