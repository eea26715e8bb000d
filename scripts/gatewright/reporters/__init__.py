"""Output formats: one module per `--output-format` name, imported only when it is asked for."""

import importlib
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from gatewright.core.report import Report

FORMATS = ("text", "json", "sarif", "github", "gitlab", "rdjson", "junit")


class Reporter(Protocol):
    """The module of one format."""

    def render(self, report: "Report") -> str:
        """The whole output, ending in one newline; encodable as UTF-8 whatever the report holds."""
        ...


def load(name: str) -> Reporter:
    """The reporter of one of `FORMATS`. Raises KeyError for any other name."""
    if name not in FORMATS:
        raise KeyError(name)
    reporter: Reporter = importlib.import_module(f"gatewright.reporters.{name}")
    return reporter
