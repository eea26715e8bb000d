"""The vocabulary in the forms that the Python extractor asks for."""

import re
from functools import lru_cache

from gatewright.extractors.device_site import Vocabulary, Words

# Stands for a replacement field in the text of an f-string.
FIELD = "\0"
# The index of a device string: digits, or what `%`, `format` or an f-string puts there.
INDEX = re.compile(r"(?:\d|\0|%\(?\w*\)?[dius]|\{[^{}]*\})*")


class Lexicon:
    """The vocabulary in the forms that the visitor asks for."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        words = vocabulary.words
        self.predicates, self.literals, self.calls = words("predicate"), words("literal"), words("call")
        self.imports, self.names, self.marks = words("import"), words("word"), words("mark")
        self._rooms = Words((room, room) for room in vocabulary.rooms)
        self._chains = [
            (re.compile(rf"(?:^|\.)({re.escape(word).replace(chr(92) + '*', '[^.]*')})(?=\.|$)"), bucket)
            for entry in vocabulary.entries
            for word, bucket in ((word, entry.bucket) for word in entry.words)
            if entry.kind == "attribute" and "::" not in word
        ]
        # The part of each chain that the byte stage looks for.
        self.last_names = frozenset(word.rpartition(".")[2] for word in words("attribute").all if "*" not in word)
        self._has_globs = any("*" in word for word in words("attribute").all)
        self.roots = frozenset(word.partition(".")[0] for word in words("attribute").all if "." in word)

    def chain(self, text: str) -> tuple[str, str] | None:
        """(bucket, the chain from the word on) of the first word that is a run of components of `text`."""
        if self.last_names.isdisjoint(text.split(".")) and not self._has_globs:
            return None
        for pattern, bucket in self._chains:
            found = pattern.search(text)
            if found:
                return bucket, text[found.start(1) :]
        return None

    def module(self, module: str) -> str | None:
        """The bucket of a device module or a module below one."""
        parts = module.split(".")
        for size in range(1, len(parts) + 1):
            bucket = self.imports.bucket(".".join(parts[:size]))
            if bucket:
                return bucket
        found = self.chain(module)
        return found[0] if found else None

    def may_be_room(self, module: str) -> bool:
        return any(self._rooms.bucket(part) is not None for part in module.split("."))

    def device_string(self, text: str) -> str | None:
        """The bucket of a device string such as `cuda`, `cuda:0`, or `cuda:` before a replacement field."""
        bucket = self.literals.bucket(text)
        if bucket is None and ":" in text:
            name, _, index = text.partition(":")
            if INDEX.fullmatch(index):
                bucket = self.literals.bucket(name)
        return bucket


@lru_cache(maxsize=16)
def lexicon(vocabulary: Vocabulary) -> Lexicon:
    return Lexicon(vocabulary)
