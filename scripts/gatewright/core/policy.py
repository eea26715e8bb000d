"""Policy files: `policy/<check>.toml`, validated on load, and what a change of them loosens."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import msgspec

from gatewright.core.contract import Check, check_names, load_check
from gatewright.core.errors import PolicyError
from gatewright.core.finding import Finding
from gatewright.core.snapshot import Snapshot

FOLDER = "policy/"
CORE = "policy"


class Allow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An exemption of findings that have no line: `[[allow]]` in the check's policy file."""

    rule: str
    owner: str
    reason: str
    path: str = ""
    token: str = ""


class PolicyFile(msgspec.Struct):
    """One check under one policy."""

    check: Check[Any]
    path: str
    raw: dict[str, Any]
    policy: Any
    allow: list[Allow]


class Policies(msgspec.Struct):
    """All policy files of a tree; that of the check `policy` always, with its defaults where it is absent.

    `only`: names of the checks that a person asked for; empty, all are judged.
    """

    files: dict[str, PolicyFile]
    unreadable: dict[str, str] = {}
    only: Sequence[str] = ()

    @property
    def judged(self) -> dict[str, PolicyFile]:
        """The files whose checks run. To judge the check `policy`, which is about the others, all must."""
        if not self.only or CORE in self.only:
            return self.files
        return {name: file for name, file in self.files.items() if name in (*self.only, CORE)}

    @property
    def reported(self) -> list[str]:
        """The checks whose rules are reported."""
        return [name for name in self.files if not self.only or name in (*self.only, CORE)]

    @property
    def core(self) -> Any:
        return self.files[CORE].policy


def policy_names(snapshot: Snapshot) -> list[str]:
    """Names of the checks that the tree's policy folder switches on."""
    names = [p[len(FOLDER) : -len(".toml")] for p in snapshot.entries if p.startswith(FOLDER) and p.endswith(".toml")]
    return sorted({CORE, *(name for name in names if "/" not in name)})


def is_linked(snapshot: Snapshot) -> bool:
    """Whether the policy folder is a link or a submodule: its files are then none of this tree."""
    folder = snapshot.entries.get(FOLDER.rstrip("/"))
    return folder is not None and folder.kind != "file"


def default_branch(snapshot: Snapshot) -> str:
    """What policy/policy.toml says the remote's default branch is, or nothing."""
    if FOLDER + CORE + ".toml" not in snapshot.entries:
        return ""
    name: str = load_policy(snapshot, CORE).policy.default_branch
    return name


def load_policies(snapshot: Snapshot, only: Sequence[str] = ()) -> Policies:
    """Every policy file of a tree. Raises PolicyError for the first that is not valid."""
    if is_linked(snapshot):
        raise PolicyError(f"{FOLDER} is not a folder of this tree", "put the folder itself there, not a link")
    return Policies({name: load_policy(snapshot, name) for name in policy_names(snapshot)}, only=only)


def load_base_policies(snapshot: Snapshot, only: Sequence[str] = ()) -> Policies:
    """As `load_policies`, but a file that today's schema cannot read is named, not fatal."""
    policies = Policies({}, {}, only)
    for name in policy_names(snapshot):
        try:
            policies.files[name] = load_policy(snapshot, name)
        except PolicyError as error:
            policies.unreadable[name] = error.message
    if CORE not in policies.files:
        policies.files[CORE] = parse_policy(load_check(CORE), {}, FOLDER + CORE + ".toml")
    return policies


def load_policy(snapshot: Snapshot, name: str) -> PolicyFile:
    path = f"{FOLDER}{name}.toml"
    # The name comes from the tree: only what is on disk here may be imported for it.
    known = check_names()
    if name not in known:
        raise PolicyError(f"{path}: there is no check named {name!r}", f"the checks are: {', '.join(known)}")
    check = load_check(name)
    if name == CORE and path not in snapshot.entries:
        return parse_policy(check, {}, path)
    raw, text = read_toml(snapshot, path)
    return parse_policy(check, raw, path, text)


def parse_policy(check: Check[Any], raw: dict[str, Any], path: str, text: str = "") -> PolicyFile:
    """Validate the parsed TOML of one policy file."""
    own = {key: value for key, value in raw.items() if key != "allow"}
    allow = convert(raw.get("allow", []), list[Allow], path, text)
    return PolicyFile(check, path, raw, convert(own, check.policy, path, text), allow)


def read_toml(snapshot: Snapshot, path: str) -> tuple[dict[str, Any], str]:
    if snapshot.entries[path].kind != "file":
        raise PolicyError(f"{path} is not a regular file", "put the file itself there, not a link")
    data = snapshot.read(path)
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
        return tomllib.loads(text), text
    except UnicodeDecodeError as error:
        raise PolicyError(f"{path} is not UTF-8: {error.reason} at byte {error.start}", "save it as UTF-8") from None
    except ValueError as error:
        raise PolicyError(f"{path} is not TOML: {error}", "mend the line that is named") from None
    except RecursionError:
        raise PolicyError(f"{path} is nested too deeply to be read", "write it flat") from None


def convert(raw: Any, type: Any, path: str, text: str) -> Any:
    """Build a typed policy. Raises PolicyError with file, line where it can be had, and key path."""
    try:
        return msgspec.convert(raw, type)
    except msgspec.ValidationError as error:
        words = str(error)
        named = re.findall(r"[`.]([A-Za-z_][\w-]*)", words)
        line = _line_of(text, named[0] if "unknown field" in words else named[-1]) if named else 0
        where = f"{path}:{line}" if line else path
        raise PolicyError(
            f"{where}: {words}", f"gate explain {PurePosixPath(path).stem} says what {path} may hold"
        ) from None


def _line_of(text: str, key: str) -> int:
    match = re.search(
        rf"^[ \t]*(?:\[+[^\]\n]*\b{re.escape(key)}\b|[\"']?{re.escape(key)}[\"']?[ \t]*[=.])", text, re.MULTILINE
    )
    return text.count("\n", 0, match.start()) + 1 if match else 0


def walk(data: Any, parts: list[str]) -> Iterator[tuple[str, Any]]:
    """The values under a dotted path with `*` for any key; yields (key path, value)."""
    if not parts:
        yield "", data
    elif isinstance(data, Mapping):
        for key in data if parts[0] == "*" else [parts[0]]:
            if key in data:
                for path, value in walk(data[key], parts[1:]):
                    yield f"{key}.{path}".rstrip("."), value
    elif isinstance(data, list):
        for number, item in enumerate(data):
            for path, value in walk(item, parts):
                yield f"{number}.{path}", value


def policy_globs(file: PolicyFile) -> Iterator[tuple[str, str]]:
    """(key path, glob) of every path pattern that a policy file holds."""
    for dotted in file.check.globs:
        for path, value in walk(file.raw, dotted.split(".")):
            if path.rpartition(".")[2] != "why":
                for glob in [value] if isinstance(value, str) else value:
                    yield path, glob


def with_ordinary(base: PolicyFile, head: PolicyFile) -> PolicyFile:
    """The base's policy with the head's ordinary entries, which are data and no loosening."""
    raw: dict[str, Any] = msgspec.to_builtins(base.raw)
    for dotted in ("allow", *base.check.ordinary):
        *parents, last = dotted.split(".")
        targets = dict(walk(raw, parents))
        for path, source in walk(head.raw, parents):
            target = targets.get(path)
            if isinstance(target, dict) and isinstance(source, Mapping):
                target.pop(last, None)
                target |= {last: source[last]} if last in source else {}
    return _parsed(base, raw) or base


def with_explained(base: PolicyFile, head: PolicyFile, minimum: int) -> tuple[PolicyFile, list[str]]:
    """The base's policy with what the head may change: ordinary entries, and tables that say why.

    A table says why with a `why` that is new and has at least `minimum` characters. Also returns
    the names of the tables in which a `why` is missing.
    """
    base = with_ordinary(base, head)
    raw: dict[str, Any] = msgspec.to_builtins(base.raw)
    missing: dict[str, None] = {}
    for keys in list(_changed_tables(base.raw, head.raw)):
        place = _place_of_why(head, keys)
        why = str(_table(head.raw, place).get("why", "")).strip()
        if len(why) < max(minimum, 1) or why == str(_table(base.raw, place).get("why", "")).strip():
            missing[".".join(place) or "the top of the file"] = None
            continue
        ours, theirs = _table(raw, keys), _table(head.raw, keys)
        for key in [*ours, *(key for key in theirs if key not in ours)]:
            if not (isinstance(ours.get(key), Mapping) and isinstance(theirs.get(key), Mapping)):
                ours.pop(key, None)
                ours.update({key: theirs[key]} if key in theirs else {})
    return _parsed(base, raw) or base, list(missing)


def _parsed(file: PolicyFile, raw: dict[str, Any]) -> PolicyFile | None:
    try:
        return parse_policy(file.check, raw, file.path)
    except PolicyError:
        return None


def _table(raw: Any, keys: Sequence[str]) -> Any:
    """The table under some keys; an empty one where there is none."""
    for key in keys:
        raw = raw.get(key)
        if not isinstance(raw, Mapping):
            return {}
    return raw


def _place_of_why(file: PolicyFile, keys: tuple[str, ...]) -> tuple[str, ...]:
    """The table itself or, where its schema has no `why`, the nearest one around it."""
    while keys:
        raw: dict[str, Any] = msgspec.to_builtins(file.raw)
        table = _table(raw, keys)
        table["why"] = "a reason"
        if table is _table(raw, keys) and _parsed(file, raw):
            break
        keys = keys[:-1]
    return keys


def _changed_tables(base: Any, head: Any, keys: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The keys of each innermost table whose own values differ."""
    own = False
    for key in dict.fromkeys([*base, *head]):
        before, after = base.get(key), head.get(key)
        if key == "why" or before == after:
            continue
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            yield from _changed_tables(before, after, (*keys, key))
        else:
            own = True
    if own:
        yield keys


def loosened(name: str, lost: list[Finding], where: list[str], path: str) -> Finding:
    """The finding for a policy that no longer finds what the base's policy finds in the same tree."""
    first = lost[0]
    place = f"{first.path}:{first.line}" if first.line else first.path or "the tree"
    return Finding(
        rule="policy/loosened",
        path=path,
        message=f"the {name} policy lets go of {len(lost)} findings that the base's policy has here, "
        f"first {first.rule} at {place}",
        help=f'restore it, or say why: add or change `why = "..."` in the same table of {path} ({", ".join(where)})',
        token=f"{name}:{first.rule}",
    )
