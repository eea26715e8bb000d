"""`policy/env-doc.toml`."""

import re
from typing import Literal

import msgspec

from gatewright.core.errors import PolicyError


class Code(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[code]`: globs of the shipped source of each language, and what of them is not shipped."""

    python: tuple[str, ...] = ()
    cfamily: tuple[str, ...] = ()
    rust: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ("**/tests/**", "**/test_*.py", "**/conftest.py", "**/third_party/**", "**/vendor/**")
    why: str = ""


class Columns(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[columns]`: the titles that a page's tables may use, whatever their case."""

    name: tuple[str, ...] = (
        "Variable",
        "Variables",
        "Name",
        "Environment variable",
        "Environment variables",
        "Env var",
    )
    default: tuple[str, ...] = ("Default", "Default value")
    replacement: tuple[str, ...] = ("Replacement", "Replaced by", "Use instead")


class Include(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[include]]`: a page shows a source file, or the part of it between two markers, as it is."""

    page: str
    registry: str
    begin: str = ""
    end: str = ""


class Dynamic(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[dynamic]]`: the names that are put together at run time, in the files of `path` if given."""

    pattern: str
    why: str
    path: str = ""


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`prefixes` and `names` say which variables are this project's; without either, all are.

    `documented_by` "table" wants each name in a table row, "mention" anywhere on a page.
    `internal` maps a name that needs no documentation to the reason. `minimum` is the least number
    of names that the code must be seen to read, `minimum_reason` counts characters.
    """

    code: Code
    prefixes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    pages: tuple[str, ...] = ("docs/ENVIRONMENT.md",)
    documented_by: Literal["table", "mention"] = "table"
    columns: Columns = Columns()
    removed_heading: str = "removed"
    env_files: tuple[str, ...] = ()
    include: tuple[Include, ...] = ()
    dynamic: tuple[Dynamic, ...] = ()
    internal: dict[str, str] = {}
    minimum: int = 1
    minimum_reason: int = 10
    why: str = ""

    def __post_init__(self) -> None:
        for prefix in self.prefixes:
            if not re.fullmatch(r"\w+", prefix):
                raise PolicyError(
                    f"policy/env-doc.toml: the prefix {prefix!r} is not the beginning of a name",
                    "write it without a star, such as ENGINE_",
                )
        for entry in self.dynamic:
            if entry.pattern.startswith("*") and not entry.path:
                raise PolicyError(
                    f"policy/env-doc.toml: the dynamic pattern {entry.pattern!r} would cover every name",
                    "begin it with what the names have in common, or give the file it is for in `path`",
                )

    def owns(self, name: str) -> bool:
        """Whether a variable is this project's."""
        return name in self.names or name.startswith(self.prefixes) or not (self.prefixes or self.names)

    def may_own(self, pattern: str) -> bool:
        """Whether a name of this shape could be this project's."""
        head = pattern.partition("*")[0]
        return self.owns(head) or any(known.startswith(head) for known in (*self.prefixes, *self.names))
