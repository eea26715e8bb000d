"""Which environment variables are the project's own, and where they are documented, guessed from what is read."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from gatewright.checks._env_policy import Code, Columns
from gatewright.checks._env_policy import Policy as EnvPolicy
from gatewright.checks._env_resolution import Resolution, resolve
from gatewright.checks.env_doc import reading
from gatewright.core.tree import MAX_BYTES, Tree
from gatewright.extractors.env_documented import PageOptions
from gatewright.extractors.env_page import extract as page_facts
from gatewright.init.layout import Layout
from gatewright.init.words import WORDS

PAGES = (".md", ".markdown")
INCLUDERS = (".md", ".markdown", ".rst", ".txt")
ENV_FILES = re.compile(r"(?:.*/)?(?:\.env\.(?:example|sample|template|dist)|env\.example)")
_INCLUDE = re.compile(r"include|--8<--|start-after|begin")
_CHANGES = re.compile(r"(?i)change|release|news|history")
# Pages of examples, tests, vendored code and tools describe those.
_FOLDERS = WORDS.folders
_ASIDE = (_FOLDERS.side | _FOLDERS.tests | _FOLDERS.vendored | _FOLDERS.examples) - {"docs", "doc"}
_TITLE = re.compile(r"(?i)env|variable|config|setting|option")
# The least share of the variables on the page that documents them: where its name says so, and where not.
SHARE, SHARE_ELSEWHERE = 0.25, 0.5


class Inclusion(msgspec.Struct):
    page: str
    registry: str
    begin: str
    end: str


class Environment(msgspec.Struct):
    """What the code reads (`own`, and `others` outside the prefixes) and what was found about its documentation."""

    prefixes: list[str]
    own: list[str]
    others: list[str]
    page: str = ""
    documented: int = 0
    table: bool = False
    inclusion: Inclusion | None = None
    env_files: list[str] = []


def guess_environment(tree: Tree, layout: Layout) -> Environment:
    """Read the variables of the packages, and look for the page that documents most of them."""
    policy = EnvPolicy(
        code=Code(
            python=tuple(layout.python),
            cfamily=tuple(layout.cfamily),
            rust=tuple(layout.rust),
            exclude=tuple(layout.exclude),
        )
    )
    resolution = resolve(tree, lambda options: reading(policy, options))
    names = {use.name for use in resolution.uses}
    heads = {site.pattern.partition("*")[0] for site in resolution.unresolved}
    prefixes = guess_prefixes(names | heads, layout.names)
    own = sorted(name for name in names if name.startswith(tuple(prefixes)))
    found = Environment(prefixes, own, sorted(names - set(own)))
    found.env_files = [path for path in tree.paths if ENV_FILES.fullmatch(path)]
    if own:
        pages = _texts(tree, INCLUDERS)
        found.inclusion = _inclusion(tree, resolution, own, pages)
        _choose_page(found, pages)
    return found


def guess_prefixes(names: Iterable[str], packages: Sequence[str]) -> list[str]:
    """A package's own name, and first words that several names share and no other program is known by.

    Where there is neither, the prefix that a variable of the project would have.
    """
    names = list(names)
    own = [re.sub(r"\W", "_", package).upper() + "_" for package in packages]
    chosen = {prefix for prefix in own if any(name.startswith(prefix) for name in names)}
    first = Counter(
        name.partition("_")[0] for name in names if "_" in name.strip("_") and not name.startswith(tuple(chosen))
    )
    taken = WORDS.variables.foreign | WORDS.variables.generic
    candidates = {word: count for word, count in first.items() if word and word not in taken}
    enough = max(3, sum(candidates.values()) / 4)
    chosen |= {f"{word}_" for word, count in candidates.items() if count >= enough}
    return sorted(chosen) or own[:1]


def _texts(tree: Tree, suffixes: tuple[str, ...]) -> dict[str, bytes]:
    """The pages of the tree that can be read; a missing object is no page."""
    texts: dict[str, bytes] = {}
    reader = tree.snapshot.open()
    try:
        for path in tree.paths:
            if path.endswith(suffixes) and not _ASIDE.intersection(path.split("/")) and not path.startswith("."):
                data = reader.read(path, tree.snapshot.entries[path])
                if len(data) <= MAX_BYTES:
                    texts[path] = data
    finally:
        reader.close()
    return texts


def _choose_page(found: Environment, texts: Mapping[str, bytes]) -> None:
    """The page with most of the names in a table; else the one that mentions most."""
    word = re.compile(rb"(?<![A-Za-z0-9_])(?:" + b"|".join(map(str.encode, found.own)) + rb")(?![A-Za-z0-9_])")
    columns = Columns()
    options = PageOptions(columns.name, columns.default, columns.replacement, "removed")
    best = (0, 0)
    for path, data in texts.items():
        mentioned = set(word.findall(data))
        share = SHARE if _TITLE.search(path.rpartition("/")[2]) else SHARE_ELSEWHERE
        if not path.endswith(PAGES) or _CHANGES.search(path) or len(mentioned) < max(2, share * len(found.own)):
            continue
        rows = {row.name for row in page_facts(data, options)[0].rows} & set(found.own)
        in_table = len(rows) >= max(2, len(mentioned) / 2)
        score = (len(rows) if in_table else 0, len(mentioned))
        if score > best:
            best = score
            found.page, found.table, found.documented = path, in_table, len(rows) if in_table else len(mentioned)


def _inclusion(tree: Tree, resolution: Resolution, own: Sequence[str], texts: Mapping[str, bytes]) -> Inclusion | None:
    """The page that shows the file which reads most of the names, and the markers between which it is shown."""
    read_in = Counter(path for path, _ in {(use.path, use.name) for use in resolution.uses if use.name in own})
    for registry, count in read_in.most_common(3):
        if count < max(3, SHARE * len(own)):
            break
        name = registry.rpartition("/")[2].encode()
        tail = "/".join(registry.split("/")[-2:]).encode()
        for page, data in texts.items():
            shown = [n for n, line in enumerate(data.splitlines()) if (tail in line or name == line.strip())]
            lines = data.splitlines()
            if any(_INCLUDE.search(lines[n].decode("utf-8", "replace")) for n in shown):
                begin, end = _markers(tree.snapshot.read(registry))
                return Inclusion(page, registry, begin, end)
    return None


def _markers(data: bytes) -> tuple[str, str]:
    """The comment lines that begin and end the shown part of a registry; both empty where all of it is shown."""
    begin = re.search(rb"^\s*#\s*(\S*(?:begin|start)\S*(?: .*\S)?)\s*$", data, re.MULTILINE | re.IGNORECASE)
    end = begin and re.compile(rb"^\s*#\s*(\S*end\S*(?: .*\S)?)\s*$", re.MULTILINE | re.IGNORECASE).search(
        data, begin.end()
    )
    return (begin[1].decode("utf-8", "replace"), end[1].decode("utf-8", "replace")) if begin and end else ("", "")
