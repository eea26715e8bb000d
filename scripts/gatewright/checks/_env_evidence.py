"""What one tree says about its environment variables, as the rules of env-doc ask for it."""

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

import msgspec

from gatewright.checks._env_policy import Policy
from gatewright.checks._env_resolution import Resolution, Use
from gatewright.core.finding import Finding
from gatewright.extractors.env_documented import DocumentedName, EnvLine, PageFacts
from gatewright.extractors.env_read import Value

POLICY = "policy/env-doc.toml"
NO_DEFAULT = frozenset({"", "-", "–", "—", "unset", "not set", "none", "null", "n/a", "empty", "(empty)", "required"})
BOOLEANS = {"true": "1", "on": "1", "yes": "1", "enabled": "1", "false": "0", "off": "0", "no": "0", "disabled": "0"}
FOOTNOTE = re.compile(r"\s*\[\^[^\]]+\]$")


class Evidence(msgspec.Struct):
    """What one tree says. `included` are names documented by inclusion, `mentioned` the files whose
    text holds a name, `files` the number of source files read."""

    policy: Policy
    resolution: Resolution
    pages: dict[str, PageFacts]
    included: dict[str, DocumentedName]
    env_lines: list[tuple[str, EnvLine]]
    mentioned: dict[str, set[str]]
    files: int
    page_problems: list[Finding]
    uses: dict[str, list[Use]] = {}
    foreign: set[str] = set()

    def __post_init__(self) -> None:
        self.uses, self.foreign = {}, set()
        for use in self.resolution.uses:
            if self.policy.owns(use.name):
                self.uses.setdefault(use.name, []).append(use)
            else:
                self.foreign.add(use.name)

    @property
    def rows(self) -> Iterator[tuple[str, DocumentedName]]:
        """The rows and, where they count, mentions of all pages, for this project's names."""
        for path, page in self.pages.items():
            own = page.rows if self.policy.documented_by == "table" else (*page.rows, *page.mentions)
            yield from ((path, row) for row in own if self.policy.owns(row.name))

    @property
    def documented(self) -> set[str]:
        return {row.name for _, row in self.rows if not row.removed} | self.included.keys()

    @property
    def removed(self) -> dict[str, DocumentedName]:
        return {row.name: row for _, row in self.rows if row.removed}

    def is_read(self, name: str) -> bool:
        return name in self.uses or any(fnmatchcase(name, entry.pattern) for entry in self.policy.dynamic)


def near(name: str, candidates: Iterable[str]) -> str:
    """A hint naming the candidate that looks most like `name`, or nothing."""
    from difflib import get_close_matches

    close = get_close_matches(name, sorted(candidates), n=1, cutoff=0.75)
    return f"; did you mean {close[0]}?" if close else ""


def literal(value: Value | None) -> str | None:
    """A default as text; None when it is computed."""
    return "" if value is None else value.literal


def agreement(page: str, code: str | None, *, tested: bool) -> bool | None:
    """Whether a documented default is the code's; None where it cannot be told.

    Where the code looks at the value (`tested`), unset means to it what it makes of it: all that is
    false is then one, and what the page says beyond that cannot be compared.
    """
    if code is None:
        return None
    if normal(page) == normal(code):
        return True
    if tested and not normal(code):
        return True if normal(page) == normal("0") else None
    return False


def normal(text: str) -> str:
    """Equal for equal values: `"1"`, 1, 1.0, true and on are one value; unset and none another."""
    text = FOOTNOTE.sub("", text.strip())
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1]
    folded = text.casefold()
    if folded in NO_DEFAULT:
        return ""
    folded = BOOLEANS.get(folded, folded)
    try:
        return repr(float(folded))
    except ValueError:
        return text if folded == text.casefold() else folded
