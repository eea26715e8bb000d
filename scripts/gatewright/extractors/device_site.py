"""Sites of device words, and the vocabulary that says which words those are.

Shared by the Python and the C-family extractor, so that both report the same facts under the same buckets.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

import msgspec

# What a word of the vocabulary is compared with. `*` in a word stands for any run of characters.
WordKind = Literal[
    "attribute",  # a run of components in a chain: `torch.cuda` (Python), `at::cuda` (C++)
    "predicate",  # the last name of something read or called: `is_cuda`
    "literal",  # a whole string, alone or with an index: "cuda", "cuda:0"
    "call",  # the name of a method that is called: `x.cuda()`, `x->cuda()`
    "import",  # a Python module, with everything below it
    "include",  # the path in an #include that no guard encloses
    "preprocessor",  # a macro tested by #if, #ifdef, #ifndef, #elif, #elifdef, defined()
    "enumerator",  # a whole C++ identifier, qualified or not: `kCUDA`
    "cast",  # a C++ type that an integer is turned into, whatever the spelling of the cast
    "word",  # an identifier, or a name (no white space) in a string: `nccl*`
    "mark",  # the last name of a test's decorator: `requires_cuda`
]
SiteKind = Literal[
    "attribute",
    "predicate",
    "literal",
    "call",
    "import",
    "include",
    "preprocessor",
    "enumerator",
    "cast",
    "word",
    "dynamic",
    "device_test",
    "unparsable",
]
# Longer statements are cut: they only have to tell one site from another.
STATEMENT_LIMIT = 200


class Site(msgspec.Struct, frozen=True, array_like=True):
    """One use of a device word in code.

    `line` and `column` are 1-based, columns count code points. `bucket` names the vocabulary entry; it
    is empty for an import or include that may lead into a device room, which only a judge with the
    paths of the tree can decide (`token` is then the module, with its leading dots, or the header).
    `token` is the canonical spelling (`torch.cuda.synchronize`, `"cuda:0"`), `statement` the source of
    the innermost statement on one line. `import_time`: runs when the module is imported.
    """

    line: int
    column: int
    kind: SiteKind
    bucket: str
    token: str
    statement: str
    import_time: bool = False


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One bucket of the vocabulary."""

    kind: WordKind
    bucket: str
    words: tuple[str, ...]


class Vocabulary(msgspec.Struct, frozen=True, array_like=True):
    """The options of both extractors.

    `guards` are macros (globs) whose `#if` makes a device include legitimate. `rooms` are the folder and
    file names (globs) that mark a device room: an import or include with such a component is reported with an
    empty bucket.
    """

    entries: tuple[Entry, ...]
    guards: tuple[str, ...] = ()
    rooms: tuple[str, ...] = ()

    def words(self, kind: WordKind) -> "Words":
        return _words(self, kind)


class Words:
    """The words of one kind, for whole-word lookup."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        pairs = list(pairs)
        self.all = tuple(word for word, _ in pairs)
        self.exact = {word: bucket for word, bucket in reversed(pairs) if "*" not in word}
        self.globs = [(glob_regex(word), bucket) for word, bucket in pairs if "*" in word]
        self._any_glob = re.compile("|".join(regex.pattern for regex, _ in self.globs) or r"(?!)", re.DOTALL)

    def __bool__(self) -> bool:
        return bool(self.all)

    def bucket(self, text: str) -> str | None:
        """The bucket of the word that `text` is, or None. An exact word wins over a glob."""
        found = self.exact.get(text)
        if found is None and self._any_glob.fullmatch(text):
            found = next((bucket for regex, bucket in self.globs if regex.fullmatch(text)), None)
        return found


def glob_regex(word: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, word.split("*"))), re.DOTALL)


@lru_cache(maxsize=64)
def _words(vocabulary: Vocabulary, kind: WordKind) -> Words:
    return Words((word, entry.bucket) for entry in vocabulary.entries if entry.kind == kind for word in entry.words)


def one_line(text: str) -> str:
    """A statement's source without line breaks and runs of white space, cut to STATEMENT_LIMIT."""
    return " ".join(text.split())[:STATEMENT_LIMIT]
