"""The facts of pages, .env files and source text, apart from the code that takes them: a warm run needs only these."""

import msgspec


class PageOptions(msgspec.Struct, frozen=True):
    """Column titles of each kind, the word that marks tables of removed names, texts to look for."""

    name_columns: tuple[str, ...]
    default_columns: tuple[str, ...]
    replacement_columns: tuple[str, ...]
    removed_heading: str
    mentions: bool = False
    texts: tuple[str, ...] = ()


class DocumentedName(msgspec.Struct, frozen=True, array_like=True):
    """One name in one table row. `default` is None in a table without such a column."""

    name: str
    line: int
    default: str | None = None
    removed: bool = False
    replacement: str = ""


class PageFacts(msgspec.Struct, frozen=True, array_like=True):
    """`header` is that of the first table with a column of names; `texts` are those options found."""

    rows: tuple[DocumentedName, ...] = ()
    mentions: tuple[DocumentedName, ...] = ()
    header: tuple[str, ...] = ()
    unclosed: tuple[int, ...] = ()
    texts: tuple[str, ...] = ()


class EnvLine(msgspec.Struct, frozen=True, array_like=True):
    """One variable of the file, or one line that is none of the four forms (`problem` says why).

    `commented`: the line only shows the assignment.
    """

    line: int
    name: str
    value: str = ""
    problem: str = ""
    statement: str = ""
    commented: bool = False


class Mentions(msgspec.Struct, frozen=True, array_like=True):
    """The distinct words of a file that are written like environment variables."""

    names: tuple[str, ...]


class RegionOptions(msgspec.Struct, frozen=True):
    """The two lines between which a page includes a source file; both empty: all of it."""

    begin: str = ""
    end: str = ""


class Region(msgspec.Struct, frozen=True, array_like=True):
    """Lines of a source file, exclusive of the markers; both 0 when a marker is missing."""

    first: int = 0
    last: int = 0
