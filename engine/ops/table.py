"""The op table: every op has a portable implementation, and platforms may provide faster ones."""

from collections.abc import Callable, Collection, Iterable
from typing import Any

import msgspec

from engine.errors import ConfigError

PORTABLE = "portable"


class OpSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a model will ask of its ops, for providers to judge before they are chosen."""

    dtype: str
    block_size: int
    head_dims: frozenset[int] = frozenset()
    windows: frozenset[int] = frozenset()
    softcaps: frozenset[float] = frozenset()


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """A faster implementation of one op.

    `unsupported` gives every reason against it for a spec (empty: usable); `load` returns the
    implementation, with the portable one's signature, and is called only when it was chosen.
    """

    op: str
    name: str
    unsupported: Callable[[OpSpec], list[str]]
    load: Callable[[], Callable[..., Any]]


class Choice(msgspec.Struct, frozen=True):
    """Which implementation an op got, and why providers before it did not."""

    provider: str
    rejected: dict[str, list[str]]


_PORTABLE: dict[str, Callable[..., Any]] = {}
# A fused op -> the portable ops whose composition it equals.
COMPOSITIONS: dict[str, tuple[str, ...]] = {}


def portable(name: str, fuses: tuple[str, ...] = ()) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the reference implementation of an op, in plain torch."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        if name in _PORTABLE:
            raise ValueError(f"op {name!r} has a portable implementation already")
        _PORTABLE[name] = function
        if fuses:
            COMPOSITIONS[name] = fuses
        return function

    return register


class Ops:
    """The chosen implementation of each op as an attribute: dispatch is one attribute look-up."""

    def __init__(self, implementations: dict[str, Callable[..., Any]], choices: dict[str, Choice]) -> None:
        self.__dict__.update(implementations)
        self.choices = choices

    def __getattr__(self, name: str) -> Callable[..., Any]:
        raise AttributeError(f"there is no op {name!r}; register a portable implementation first")


def names() -> list[str]:
    """Every op."""
    import engine.ops.portable  # noqa: F401  (registers)

    return sorted(_PORTABLE)


def select(
    providers: Iterable[Provider],
    spec: OpSpec,
    disabled: Collection[str] = (),
    required: dict[str, str] | None = None,
) -> Ops:
    """The first usable provider of each op, the portable implementation where there is none.

    `required` names the provider that an op must get. Raises ConfigError with the reasons when it
    cannot, and when a provider is for an op that has no portable implementation.
    """
    known = names()
    by_op: dict[str, list[Provider]] = {name: [] for name in known}
    for provider in providers:
        if provider.op not in by_op:
            raise ConfigError(f"provider {provider.name!r} is for op {provider.op!r}, which has no portable one")
        by_op[provider.op].append(provider)
    implementations: dict[str, Callable[..., Any]] = {}
    choices: dict[str, Choice] = {}
    for name in known:
        implementations[name], choices[name] = _select_one(
            name, by_op[name], spec, disabled, (required or {}).get(name)
        )
    return Ops(implementations, choices)


def _select_one(
    name: str, providers: list[Provider], spec: OpSpec, disabled: Collection[str], required: str | None
) -> tuple[Callable[..., Any], Choice]:
    rejected: dict[str, list[str]] = {}
    for provider in providers:
        if required not in (None, provider.name):
            continue
        reasons = ["disabled by setting"] if provider.name in disabled else provider.unsupported(spec)
        if not reasons:
            return provider.load(), Choice(provider.name, rejected)
        rejected[provider.name] = reasons
    if required not in (None, PORTABLE):
        offered = ", ".join([*(provider.name for provider in providers), PORTABLE])
        why = "; ".join(rejected[required]) if required in rejected else "no such provider on this platform"
        raise ConfigError(f"op {name!r} cannot use {required!r}: {why}. Offered here: {offered}")
    return _PORTABLE[name], Choice(PORTABLE, rejected)
