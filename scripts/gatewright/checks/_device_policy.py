"""`policy/device-leakage.toml`, and the vocabulary that a new policy starts from."""

import re
from functools import cached_property

import msgspec

from gatewright.core.globs import PathSet, compile_globs
from gatewright.extractors.device_site import Entry, Vocabulary, WordKind

POLICY = "policy/device-leakage.toml"
PYTHON = ("**/*.py", "**/*.pyi")
CFAMILY = ("**/*.{c,h,cc,hh,cpp,hpp,cxx,hxx,cu,cuh,hip,inl,inc,ipp,tpp,m,mm}",)
_WORD = re.compile(r"[\w.:/*+-]*")
_NAME = re.compile(r"[\w*]*\w[\w*]*")


class Bucket(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[bucket.NAME]`: device words of one kind; `*` in a word is any run of characters.

    `instead` says what neutral code uses in their place. The kinds are those of `WordKind`.
    """

    kind: WordKind
    words: tuple[str, ...]
    instead: str = ""
    why: str = ""

    def __post_init__(self) -> None:
        if not self.words:
            raise ValueError("`words` is empty: a bucket without words finds nothing")
        for word in self.words:
            if not _WORD.fullmatch(word):
                raise ValueError(f"the word {word!r} is no name, path or glob: `*` is the only pattern")
            if len(max(re.split(r"\W+", word), key=len)) < 2:
                raise ValueError(f"the word {word!r} is too short to be looked for: it needs two letters in a row")


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, dict=True):
    """Which files are device-agnostic (`shared`), which may name a device (`rooms`), which are `tests`.

    `rooms` maps a device to the globs of its files, beside a `why`; a file in a room is in no shared
    layer. `exclude` is not read at all. `guards` are preprocessor macros (globs) whose `#if` makes an
    include of a device header legitimate.
    """

    shared: tuple[str, ...]
    bucket: dict[str, Bucket]
    rooms: dict[str, tuple[str, ...] | str] = {}
    tests: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    why: str = ""

    def __post_init__(self) -> None:
        if not self.bucket:
            raise ValueError("no [bucket.NAME] is given: without device words nothing is found")
        for name, globs in self.rooms.items():
            if isinstance(globs, str) and name != "why":
                raise ValueError(f"`rooms.{name}` must be a list of globs")

    @cached_property
    def globs_by_room(self) -> dict[str, tuple[str, ...]]:
        return {name: globs for name, globs in self.rooms.items() if not isinstance(globs, str)}

    @cached_property
    def room_globs(self) -> tuple[str, ...]:
        return tuple(glob for globs in self.globs_by_room.values() for glob in globs)

    @cached_property
    def shared_files(self) -> PathSet:
        return PathSet(self.shared, (*self.room_globs, *self.exclude))

    @property
    def room_files(self) -> PathSet:
        return PathSet(self.room_globs, self.exclude)

    def layer(self, path: str) -> str:
        """The pattern that makes a file shared, or nothing."""
        if path not in self._layers:
            globs = self.shared if path in self.shared_files else ()
            self._layers[path] = next((glob for glob in globs if compile_globs((glob,)).fullmatch(path)), "")
        return self._layers[path]

    @cached_property
    def _layers(self) -> dict[str, str]:
        return {}

    def room_of(self, path: str) -> str:
        """The room that a path lies in, or nothing."""
        rooms = self.globs_by_room.items()
        return next((name for name, globs in rooms if compile_globs(globs).fullmatch(path)), "")

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(
            entries=tuple(Entry(bucket.kind, name, bucket.words) for name, bucket in sorted(self.bucket.items())),
            guards=self.guards,
            rooms=tuple(sorted({name for glob in self.room_globs for name in _room_names(glob)})),
        )


def _room_names(glob: str) -> list[str]:
    """The folder or module names by which an import or include would reach the files of a room.

    The last component that says something, its alternatives apart: `a/{cuda,rocm}/**` gives both.
    A room of one suffix (`a/**/*.cu`) has none: its files are no modules, and `a` is not all room.
    """
    *folders, last = glob.split("/")
    stem, _, suffix = last.rpartition(".")
    if stem == "*" and suffix not in ("py", "pyi") and folders[-1:] == ["**"]:
        return []
    for component in (stem or last, *reversed(folders)):
        names = _alternatives(component)
        if all(_NAME.fullmatch(name) for name in names):
            return names
    return []


def _alternatives(component: str) -> list[str]:
    braces = re.search(r"\{([^{}]*)\}", component)
    if braces is None:
        return [component]
    before, after = component[: braces.start()], component[braces.end() :]
    return [name for choice in braces[1].split(",") for name in _alternatives(before + choice + after)]


def default_vocabulary() -> str:
    """TOML of `guards` and `[bucket.*]` tables that fit most inference codebases."""
    from importlib import resources

    return resources.files("gatewright.checks").joinpath("_device_vocabulary.toml").read_text("utf-8")
