"""The one registry of ENGINE_* environment variables: name, default, type and meaning."""

import difflib
import os
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from engine.errors import ConfigError

PREFIX = "ENGINE_"

# A name that the engine once read -> what to use instead.
REMOVED: dict[str, str] = {}


class Variable(msgspec.Struct, frozen=True):
    """One variable. `read` gives its raw text (the default when unset), `parse` its typed value."""

    name: str
    default: str
    meaning: str
    parse: Callable[[str], Any]
    read: Callable[[], str]

    def value(self) -> Any:
        """The effective value. Raises ConfigError naming the variable and its text."""
        text = self.read()
        try:
            return self.parse(text)
        except ValueError as error:
            raise ConfigError(f"{self.name}={text!r}: {error}. {self.meaning}") from None


REGISTRY: dict[str, Variable] = {}


def _declare(name: str, default: str, parse: Callable[[str], Any], meaning: str) -> Variable:
    variable = Variable(name, default, meaning, parse, lambda: os.environ.get(name, default))
    REGISTRY[name] = variable
    return variable


def _flag(text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError("expected 0 or 1")
    return text == "1"


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError("expected a number that is not negative")
    return number


def _level(text: str) -> str:
    levels = ("debug", "info", "warning", "error")
    if text not in levels:
        raise ValueError(f"expected one of {', '.join(levels)}")
    return text


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


CACHE_DIR = _declare(
    "ENGINE_CACHE_DIR",
    "~/.cache/gatewright-engine",
    str,
    "Folder for checkpoints that were converted once, for example from GGUF.",
)
DISABLE_OPS = _declare(
    "ENGINE_DISABLE_OPS",
    "",
    _names,
    "Comma-separated op providers that must not be chosen; the portable implementation takes their place.",
)
LOG_LEVEL = _declare("ENGINE_LOG_LEVEL", "warning", _level, "Least severe log line shown by the command line.")
NUM_THREADS = _declare("ENGINE_NUM_THREADS", "0", _count, "Threads for one operator; 0 leaves the choice to torch.")
PLATFORM = _declare("ENGINE_PLATFORM", "auto", str, "Platform to run on when no --platform is given.")
STRICT_ENV = _declare("ENGINE_STRICT_ENV", "0", _flag, "1 refuses to start while an unknown ENGINE_* name is set.")


def complaints(environ: Mapping[str, str] | None = None, removed: Mapping[str, str] | None = None) -> list[str]:
    """One sentence for each ENGINE_* name that is set but not read, with what to use instead."""
    environ = os.environ if environ is None else environ
    removed = REMOVED if removed is None else removed
    sentences = []
    for name in sorted(environ):
        if not name.startswith(PREFIX) or name in REGISTRY:
            continue
        if name in removed:
            sentences.append(f"{name} was removed and has no effect; use {removed[name]}")
            continue
        near = difflib.get_close_matches(name, REGISTRY, n=1, cutoff=0.8)
        hint = f"; did you mean {near[0]}?" if near else "; `engine doctor` lists the names that are read"
        sentences.append(f"{name} is not a variable of the engine and has no effect{hint}")
    return sentences


def check(strict: bool, warn: Callable[[str], None]) -> None:
    """Warn of names that have no effect. Raises ConfigError instead when `strict`."""
    found = complaints()
    if strict and found:
        raise ConfigError("; ".join(found) + ". Unset what is not meant, or start without --strict-env")
    for sentence in found:
        warn(sentence)


def effective() -> dict[str, Any]:
    """Every variable's effective value, by name."""
    return {name: variable.value() for name, variable in sorted(REGISTRY.items())}
