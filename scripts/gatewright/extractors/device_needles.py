"""The byte stage of the Python extractor: where in a file a word of the vocabulary may stand.

Conservative: a file without a hit has no site, and a site's statement holds at least one hit.
"""

import importlib
import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache

import msgspec

from gatewright.extractors.device_site import Vocabulary

_PYTHON_KINDS = frozenset({"attribute", "predicate", "literal", "call", "import", "word", "mark"})
_WORD = "[A-Za-z0-9_]"

# Escapes, among them those whose value is a letter, a digit or an underscore: the source does not spell the word.
_WORD_ESCAPE = re.compile(rb"\\(?:x[3-7]|u00[3-7]|U000000[3-7]|N\{|0?[67][0-7]|1[0-7][0-7])")
_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|u00([0-9a-fA-F]{2})|U000000([0-9a-fA-F]{2})|N\{([^}]*)\}|([0-7]{2,3}))")
# A line joined to the next inside a word.
_JOINED_LINES = re.compile(rb"\\(?<=[A-Za-z0-9_.:]\\)(?:\r\n|\r|\n)(?=[A-Za-z0-9_.:])")
# Letters and digits that NFKC, which Python applies to identifiers, turns into ASCII ones.
_COMPATIBLE = re.compile(
    "[\u00aa\u00ba\u0132-\u0133\u013f-\u0140\u0149\u017f\u01c4-\u01cc\u01f1-\u01f3\u02b0-\u02b8\u02e0-\u02e4"
    "\u1d2c-\u1d6a\u1d78-\u1dbf\u1e9a\u1e9b\u2071\u207f\u2090-\u209c\u2102-\u2149\u2160-\u2188\u2c7c\u2c7d"
    "\ua69c\ua7f2-\ua7f4\ua7f8\ua7f9\uab5c-\uab5f\ufb00-\ufb06\ufe33\ufe34\ufe4d-\ufe4f\uff10-\uff19\uff21-\uff3a\uff3f\uff41-\uff5a"
    "\U00010780-\U000107ba\U0001d400-\U0001d7ff\U0001fbf0-\U0001fbf9]"
)
_ASCII = bytes(range(128))


def _seam(quote: str) -> re.Pattern[bytes]:
    """Two string pieces that are concatenated, with word characters at the seam; the first ends in `quote`.

    The bounds keep the search linear: pieces with more than about 30 comment lines between them are
    not recognised. A pattern that starts with fixed bytes is searched for much faster, hence one for
    each quote and look-behinds after the bytes that they look at.
    """
    gap = r"(?:[ \t\f\r\n\\+]++|#[^\r\n]{0,400}+){0,64}+"
    empty_piece = rf"[A-Za-z]{{0,2}}[\"']{{2}}(?![\"']){gap}"
    opening = rf"[A-Za-z]{{0,2}}[\"']{{1,3}}(?={_WORD})"
    return re.compile(f"{quote}(?<={_WORD}{quote})(?:{quote * 2})?{gap}(?:{empty_piece}){{0,8}}{opening}".encode())


_SEAMS = (_seam('"'), _seam("'"))
_TAIL = re.compile(rb"[A-Za-z0-9_]{1,40}\Z")
_HEAD = re.compile(rb"[A-Za-z0-9_]{1,40}")


class Needles(msgspec.Struct, frozen=True):
    """`present` numbers the needles that a file holds; `patterns` find the words around each of them.

    `seam`: words cut in two by NUL.
    """

    present: Callable[[bytes], Iterable[int]]
    patterns: list[re.Pattern[bytes]]
    seam: re.Pattern[bytes]

    def hits(self, data: bytes) -> list[int]:
        """Ascending offsets in UTF-8 source; each site's statement holds one.

        Where letters are not spelt plainly, each such place is a hit, unless no word is there either way.
        """
        found = self._search(data)
        disguises = _disguises(data)
        if disguises and (found or self._search(_plain(data))):
            return sorted({*found, *disguises})
        return found

    def _search(self, data: bytes) -> list[int]:
        found: list[int] = []
        for number in self.present(data):
            found += [match.start() for match in self.patterns[number].finditer(data)]
        for pattern in _SEAMS:
            for seam in pattern.finditer(data):
                tail, head = _TAIL.search(data, max(seam.start() - 40, 0), seam.start()), _HEAD.match(data, seam.end())
                if tail and head and self.seam.search(tail[0] + b"\0" + head[0]):
                    found.append(seam.start() - 1)
        return sorted(found)


def _disguises(data: bytes) -> list[int]:
    """Where a letter is an escape, is joined to the next over a line's end, or becomes one by normalisation."""
    found: list[int] = []
    if b"\\" in data:
        found += [match.start() for pattern in (_WORD_ESCAPE, _JOINED_LINES) for match in pattern.finditer(data)]
    if not data.isascii() and _COMPATIBLE.search(data.translate(None, _ASCII).decode("utf-8", "ignore")):
        text, offset, done = data.decode("utf-8", "surrogateescape"), 0, 0
        for match in _COMPATIBLE.finditer(text):
            offset += len(text[done : match.start()].encode("utf-8", "surrogateescape"))
            done = match.start()
            found.append(offset)
    return found


def _plain(data: bytes) -> bytes:
    """The source with its letters spelt plainly."""
    plain = _ESCAPE.sub(_unescape, _JOINED_LINES.sub(b"", data))
    return unicodedata.normalize("NFKC", plain.decode("utf-8", "ignore")).encode()


def _unescape(escape: re.Match[bytes]) -> bytes:
    two, four, eight, name, octal = escape.groups()
    if name is None:
        return bytes([int(octal, 8) & 0x7F if octal else int(two or four or eight, 16) & 0x7F])
    try:
        return unicodedata.lookup(name.decode("ascii", "replace")).encode()
    except KeyError:
        return escape[0]


@lru_cache(maxsize=16)
def needles(vocabulary: Vocabulary) -> Needles:
    """The needles of a vocabulary: the last name of each chain, the longest fixed part of each glob."""
    entries = [entry for entry in vocabulary.entries if entry.kind in _PYTHON_KINDS]
    words = {(entry.kind == "literal", word) for entry in entries for word in entry.words if "::" not in word}
    names = {word if is_literal else word.rpartition(".")[2] for is_literal, word in words} | set(vocabulary.rooms)
    whole = {name for name in names if re.fullmatch(_WORD + "+", name)}
    parts = {max(re.split(r"[^A-Za-z0-9_]+", name), key=len) for name in names - whole}
    parts = {part for part in parts if not any(other in part for other in parts - {part})}
    whole = {word for word in whole if not any(part in word for part in parts)}
    groups = _group(whole | parts)
    patterns = [_around(needle, group, whole) for needle, group in groups.items()]
    seam = re.compile(b"|".join(_split_patterns(whole | parts)) or rb"(?!)")
    return Needles(_finder([needle.encode() for needle in groups]), patterns, seam)


def _group(words: set[str]) -> dict[str, list[str]]:
    """Each word under the shortest word inside it: a needle costs a pass over every file."""
    groups: dict[str, list[str]] = {}
    for word in sorted(words):
        needle = min((other for other in words if other in word), key=lambda other: (len(other), other))
        groups.setdefault(needle, []).append(word)
    return groups


def _around(needle: str, words: Iterable[str], whole: set[str]) -> re.Pattern[bytes]:
    """Finds the needle where it is part of one of the words; fixed bytes first, which are searched for much faster."""
    places = []
    for word in words:
        before, _, after = word.partition(needle)
        start, end = (f"(?<!{_WORD})", f"(?!{_WORD})") if word in whole else ("", "")
        places.append(f"(?<={start}{before}{needle})(?={after}{end})")
    return re.compile(f"{needle}(?:{'|'.join(places)})".encode())


def _finder(needles: list[bytes]) -> Callable[[bytes], Iterable[int]]:
    """Which needles stand in a file. google-re2 says so in one pass where it is installed, with the same answer."""
    try:
        re2 = importlib.import_module("re2")
        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        words = re2.Set.SearchSet(options)
    except (ImportError, AttributeError):
        # Other packages go by the same name.
        return lambda data: [number for number, needle in enumerate(needles) if needle in data]
    for needle in needles:
        words.Add(needle.decode())
    words.Compile()
    return lambda data: sorted(words.Match(data) or ())


def _split_patterns(words: set[str]) -> list[bytes]:
    """For each way to cut each word in two: its parts on both sides of NUL, the right one perhaps cut again."""
    patterns: list[bytes] = []
    for word in sorted(words):
        for cut in range(1, len(word)):
            rest = word[cut:]
            shorter = "".join(f"|{rest[:size]}\\Z" for size in range(1, len(rest)))
            patterns.append(f"{word[:cut]}\0(?:{rest}{shorter})".encode())
    return patterns
