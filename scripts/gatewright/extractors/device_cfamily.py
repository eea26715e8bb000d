"""Device words in C-family source.

Blind spots, each pinned by a test: a word behind an alias, a macro of another file or a template
parameter; an identifier split by a line continuation; a device type filled through a pointer.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Literal

import msgspec

from gatewright.extractors.device_casts import integer_casts
from gatewright.extractors.device_site import Site, SiteKind, Vocabulary, WordKind, Words, one_line
from gatewright.readers.cfamily import Source
from gatewright.readers.positions import encodable
from gatewright.readers.preprocessor import asserted_names

_CHAIN_KINDS: tuple[Literal["attribute", "enumerator"], ...] = ("attribute", "enumerator")
_NAME_KINDS: tuple[WordKind, ...] = (*_CHAIN_KINDS, "call", "predicate", "word")
_TEXT_KINDS: tuple[WordKind, ...] = ("literal", "include", "preprocessor", "cast")
# Longer names are no names; the bound keeps globs with several stars cheap.
_NAME_LIMIT = 200
_CHAIN_LIMIT = 1000
# White space between a name and what decides its role is looked through this far.
_BLANKS = 80

_CHAIN = re.compile(r"\w++(?:\s*+::\s*+\w++)*+")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*+")
_SCOPE_BEFORE = re.compile(r"(?<=\w)\s*+::\s*+\Z")
_INDEX = re.compile(r":(?:\d*|%[ldiuz]+|\{[^{}]*\})\Z")
_HEADER = re.compile(r'[<"]([^>"]*)[>"]')
_CONDITIONALS = frozenset({"if", "ifdef", "ifndef", "elif", "elifdef", "elifndef"})
_INCLUDES = frozenset({"include", "include_next", "import"})
# A type before a name declares it (`bool is_cuda() const`); these words do not.
_DECLARES = re.compile(
    r"(?<!\w)(?!(?:return|case|else|do|throw|and|or|not|xor|if|while|co_return|co_await|co_yield|new|delete)\b)"
    r"[A-Za-z_]\w*+\Z"
)
# An escape that spells a letter, a digit or an underscore, and a seam between two string literals.
_HIDDEN = re.compile(
    rb"\\(?:x0*[3-7]|u00[3-7]|U000000[3-7]|0?[67][0-7]|1[0-7][0-7])"
    rb"|\"(?<=[A-Za-z0-9_:]\")[ \t\r\n\\]*+[LuU8R]{0,3}\"(?=[A-Za-z0-9_:])"
)


def extract(data: bytes, options: Vocabulary) -> list[Site]:
    """Sites of one file in source order."""
    plan = _plan(options)
    if not plan.concerns(data):
        return []
    file = _File(Source(data), options)
    found = [*file.names(plan), *file.casts(plan.casts), *file.strings(), *file.conditionals(), *file.includes()]
    return [site for _, site in sorted(found, key=lambda item: item[0])]


class _Plan(msgspec.Struct, frozen=True):
    """What a vocabulary asks of a file."""

    # Bytes that every site holds one of, each with the pattern of its use at the start of a word.
    needles: list[tuple[bytes, re.Pattern[bytes]]]
    # Where in live code a name of the vocabulary may stand.
    names: re.Pattern[str] | None
    # Words of qualified names, each matched from one component of a chain to another.
    runs: list[tuple[SiteKind, re.Pattern[str], str]]
    casts: Words
    literals: bool

    def concerns(self, data: bytes) -> bool:
        for needle, pattern in self.needles:
            if needle in data and pattern.search(data):
                return True
        return self.literals and _HIDDEN.search(data) is not None


@lru_cache(maxsize=16)
def _plan(vocabulary: Vocabulary) -> _Plan:
    names = _beginnings(word for kind in _NAME_KINDS for word, _ in _words(vocabulary, kind))
    texts = _beginnings(word for kind in _TEXT_KINDS for word, _ in _words(vocabulary, kind))
    needles = _shortest({*names, *texts, *_beginnings(vocabulary.rooms)})
    return _Plan(
        [(text.encode(), re.compile(_at_word_start(text, whole).encode())) for text, whole in needles],
        re.compile("|".join(_at_word_start(text, whole) for text, whole in _shortest(names))) if names else None,
        [
            (kind, re.compile(rf"(?:^|(?<=::)){'[^:]*'.join(map(re.escape, word.split('*')))}(?=::|$)"), bucket)
            for kind in _CHAIN_KINDS
            for word, bucket in _words(vocabulary, kind)
        ],
        Words((word.rpartition("::")[2], bucket) for word, bucket in _words(vocabulary, "cast")),
        bool(vocabulary.words("literal") or vocabulary.words("word")),
    )


def _words(vocabulary: Vocabulary, kind: WordKind) -> Iterator[tuple[str, str]]:
    """The words of one kind that C-family source can spell, with their buckets."""
    for entry in vocabulary.entries:
        if entry.kind == kind:
            yield from ((word, entry.bucket) for word in entry.words if kind in _TEXT_KINDS or "." not in word)


def _beginnings(words: Iterable[str]) -> set[tuple[str, bool]]:
    """Of each word's last name: its text before a `*`, which begins a word; else its longest text, and False."""
    found = set()
    for word in words:
        first, *rest = word.rpartition("::")[2].split("*")
        found.add((first, True) if first else (max(rest, key=len, default=""), False))
    return found


def _shortest(parts: set[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Those parts that are found wherever one of the rest is."""
    kept: list[tuple[str, bool]] = []
    for part, starts in sorted(parts, key=lambda item: (len(item[0]), item)):
        if not any((starts and part.startswith(other)) if anchored else other in part for other, anchored in kept):
            kept.append((part, starts))
    return kept


def _at_word_start(text: str, starts: bool) -> str:
    # The literal comes first, so that the engine can search for it.
    return re.escape(text) + (rf"(?<![A-Za-z0-9_]{re.escape(text)})" if starts else "")


Found = tuple[int, Site]


class _File:
    """One source file under one vocabulary; each method yields (offset, site)."""

    def __init__(self, source: Source, vocabulary: Vocabulary) -> None:
        self.source = source
        self.vocabulary = vocabulary
        self.words = {kind: vocabulary.words(kind) for kind in (*_NAME_KINDS, *_TEXT_KINDS)}

    def names(self, plan: _Plan) -> Iterator[Found]:
        """Qualified names in statements and in macros; each is one site, of the first kind that knows it."""
        if plan.names is None:
            return
        for code in (self.source.live, self.source.macros):
            end = 0
            for hit in plan.names.finditer(code):
                if hit.start() < end:
                    continue
                chain = _CHAIN.match(code, _chain_start(code, hit.start(), end))
                if chain:
                    end = chain.end()
                    found = self._name(code, chain, plan)
                    if found:
                        yield self._site(chain.start(), *found)

    def _name(self, code: str, match: re.Match[str], plan: _Plan) -> tuple[SiteKind, str, str] | None:
        """Kind, bucket and token of the first word that knows a name."""
        parts = [part.strip() for part in match[0].split("::")]
        chain = "::".join(parts)
        if len(chain) > _CHAIN_LIMIT:
            return None
        for kind, pattern, entry in plan.runs:
            if run := pattern.search(chain):
                return kind, entry, chain[run.start() :]
        before = code[max(0, match.start() - _BLANKS) : match.start()].rstrip()
        called = code[match.end() : match.end() + _BLANKS].lstrip().startswith("(")
        member = before.endswith((".", "->"))
        if member and called and (bucket := self.words["call"].bucket(parts[-1])):
            return "call", bucket, parts[-1]
        if (member or (called and not _DECLARES.search(before))) and (
            bucket := self.words["predicate"].bucket(parts[-1])
        ):
            return "predicate", bucket, parts[-1]
        for part in parts:
            if bucket := self.words["word"].bucket(part):
                return "word", bucket, part
        return None

    def casts(self, words: Words) -> Iterator[Found]:
        for code in (self.source.live, self.source.macros) if words else ():
            for cast in integer_casts(code, words.all):
                bucket = words.bucket(cast.type) or ""
                yield self._site(cast.start, "cast", bucket, f"{cast.type}({cast.operand[:80]})")

    def strings(self) -> Iterator[Found]:
        literals, words = self.words["literal"], self.words["word"]
        if not literals and not words:
            return
        for string in self.source.strings:
            value = string.value
            if not 0 < len(value) <= _NAME_LIMIT or any(map(str.isspace, value)):
                continue
            device = literals.bucket(value) or literals.bucket(_INDEX.sub("", value))
            bucket = device or words.bucket(value)
            if bucket and self._in_code(string.start):
                yield self._site(string.start, "literal" if device else "word", bucket, f'"{value}"')

    def conditionals(self) -> Iterator[Found]:
        words = self.words["preprocessor"]
        for directive in self.source.directives if words else ():
            if directive.dead or directive.keyword not in _CONDITIONALS:
                continue
            for name in _IDENTIFIER.finditer(self.source.code, directive.body, directive.end):
                macro = words.bucket(name[0]) if len(name[0]) <= _NAME_LIMIT else None
                if macro:
                    yield self._site(name.start(), "preprocessor", macro, name[0])

    def includes(self) -> Iterator[Found]:
        """Device headers that no guard encloses, and headers that may lie in a device room."""
        words, rooms = self.words["include"], Words((room, room) for room in self.vocabulary.rooms)
        guards = Words((guard, "guard") for guard in self.vocabulary.guards)
        guarded = self.source.guarded(lambda condition: any(map(guards.bucket, asserted_names(condition))))
        for directive in self.source.directives if words or rooms else ():
            header = _HEADER.match(directive.text) if directive.keyword in _INCLUDES and not directive.dead else None
            if header is None or len(header[1]) > _NAME_LIMIT:
                continue
            device = words.bucket(header[1])
            if (device or any(map(rooms.bucket, _components(header[1])))) and not guarded(directive.start):
                yield self._site(directive.start, "include", device or "", header[1])

    def _in_code(self, offset: int) -> bool:
        """Whether a literal is neither dropped nor the argument of a directive, macro bodies apart."""
        directive = self.source.directive_at(offset)
        return not self.source.is_dead(offset) and (directive is None or directive.keyword == "define")

    def _site(self, offset: int, kind: SiteKind, bucket: str, token: str) -> Found:
        line, column = self.source.position(offset)
        statement = one_line(self.source.statement(offset))
        return offset, Site(line, column, kind, bucket, encodable(token), encodable(statement))


def _chain_start(code: str, position: int, floor: int) -> int:
    """Start of the qualified name around `position`, at or behind `floor`."""
    while True:
        while position > floor and (code[position - 1].isalnum() or code[position - 1] == "_"):
            position -= 1
        scope = _SCOPE_BEFORE.search(code, max(floor, position - _BLANKS), position)
        if scope is None:
            return position
        position = scope.start()


def _components(header: str) -> list[str]:
    """Folders of a header's path, and its file name without suffix."""
    *folders, name = header.split("/")
    return [*folders, name.partition(".")[0]]
