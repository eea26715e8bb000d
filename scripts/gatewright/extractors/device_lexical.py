"""Device sites of Python source that does not parse: by patterns, on text without comments and strings."""

import re
from bisect import bisect_right
from functools import lru_cache

from gatewright.extractors.device_lexicon import FIELD, lexicon
from gatewright.extractors.device_site import Site, SiteKind, Vocabulary, WordKind, one_line
from gatewright.readers.python import Source
from gatewright.readers.python_lexer import LINE_BREAK, TOKEN, mask

_STRING = re.compile(r"(\"\"\"|'''|[\"'])(.*?)\1?\Z", re.DOTALL)
_REPLACEMENT = re.compile(r"\{[^{}]*\}")


def sites(source: Source, vocabulary: Vocabulary) -> list[Site]:
    """What the patterns find, in order; first one `unparsable` site that says why they were needed."""
    text = source.text
    starts = [0, *(line_break.end() for line_break in LINE_BREAK.finditer(text))]
    found: dict[int, Site] = {}

    def add(offset: int, kind: SiteKind, bucket: str, token: str) -> None:
        line = bisect_right(starts, offset)
        statement = one_line(source.lines[line - 1][:1000])
        found.setdefault(offset, Site(line, offset - starts[line - 1] + 1, kind, bucket, token, statement))

    code = mask(text)
    for pattern, kind, bucket in _patterns(vocabulary):
        for match in pattern.finditer(code):
            add(match.start(1), kind, bucket, "".join(match[1].split()))
    words = lexicon(vocabulary)
    for token in TOKEN.finditer(text):
        string = _STRING.match(token[0])
        if string is not None:
            value = _REPLACEMENT.sub(FIELD, string[2])
            literal = words.device_string(value)
            if literal is not None:
                add(token.start(), "literal", literal, f'"{value.replace(FIELD, "{}")}"')
    reason = Site(1, 1, "unparsable", "", source.error, "")
    return [reason, *(found[offset] for offset in sorted(found))]


@lru_cache(maxsize=16)
def _patterns(vocabulary: Vocabulary) -> list[tuple[re.Pattern[str], SiteKind, str]]:
    shapes: dict[WordKind, str] = {
        "attribute": r"(?<!\w)({word}(?:[ \t]*\.[ \t]*\w+)*)(?!\w)",
        "predicate": r"(?<!\w)({word})(?!\w)",
        "call": r"\.[ \t]*({word})[ \t]*\(",
        "import": r"^[ \t]*(?:import|from)[ \t]+({word})(?!\w)",
        "word": r"(?<!\w)({word})(?!\w)",
    }
    patterns: list[tuple[re.Pattern[str], SiteKind, str]] = []
    for kind, shape in shapes.items():
        for entry in vocabulary.entries:
            for word in entry.words if entry.kind == kind else ():
                body = re.escape(word).replace(r"\*", r"\w*").replace(r"\.", r"[ \t]*\.[ \t]*")
                patterns.append((re.compile(shape.replace("{word}", body), re.MULTILINE), kind, entry.bucket))  # type: ignore[arg-type]
    return patterns
