"""The words of words.toml, as sets."""

import tomllib
from importlib import resources

import msgspec

Words = frozenset[str]


class Folders(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tests: Words
    vendored: Words
    examples: Words
    side: Words
    containers: Words
    layers: Words
    backends: Words
    portable: Words


class Variables(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    foreign: Words
    generic: Words


class Tables(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    folders: Folders
    devices: dict[str, tuple[str, ...]]
    device_source: dict[str, str]
    variables: Variables


_DATA = tomllib.loads(resources.files("gatewright.init").joinpath("words.toml").read_text("utf-8"))
WORDS = msgspec.convert(_DATA, Tables)
