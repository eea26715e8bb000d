"""The policy files as TOML, with a comment for each key."""

import json
from collections.abc import Iterable, Sequence

from gatewright.checks._device_policy import default_vocabulary
from gatewright.init.environment import Environment
from gatewright.init.layout import Layout
from gatewright.init.rooms import Rooms

CORE = """\
# What holds for all checks.

# The form of an exemption's owner, a regular expression: `gate: allow RULE (OWNER): reason`.
owner_pattern = "[A-Za-z][A-Za-z0-9_.@/-]*"
# The least length of an exemption's reason, in characters.
minimum_reason = 12
"""


def device(layout: Layout, rooms: Rooms, shared: Sequence[str]) -> str:
    """`policy/device-leakage.toml`: the guessed globs and the default vocabulary."""
    guards, bucket, buckets = default_vocabulary().partition("\n[bucket.")
    keys = [
        _key("shared", shared, "Layers that must run on any device; the rooms are taken out."),
        _key("tests", layout.tests, "Tests: those that run on one device only are listed, never refused."),
        _key("exclude", [*layout.exclude, *layout.vendored], "Not read at all: tests inside packages, vendored code."),
    ]
    paths = "".join(f"{device} = {_list(globs)}\n" for device, globs in rooms.globs.items())
    head = "# device-leakage: shared layers ask the platform, never the device. A first guess by gate init.\n"
    about = f"# What may name a device: by device, the globs of its files.\n[rooms]\n{paths}"
    return "\n".join([head, "".join(keys), guards.strip() + "\n", about if paths else "", bucket[1:] + buckets])


def environment(layout: Layout, found: Environment) -> str:
    """`policy/env-doc.toml`."""
    pages = [found.page] if found.page else []
    keys = [
        _key("prefixes", found.prefixes, "Variables of this project begin with one of these; others are not judged."),
        _key(
            "pages", pages, "Pages that document them. Without one, each variable counts as undocumented.", empty=True
        ),
        _key("documented_by", "table" if found.table or not pages else "mention", '"table": a row each, or "mention".'),
        _key("env_files", found.env_files, "Example .env files, read strictly."),
        _key("minimum", len(found.own) // 2, "The scan must see at least this many variables, or it is blind."),
    ]
    code = [
        _key("python", layout.python),
        _key("cfamily", layout.cfamily),
        _key("rust", layout.rust),
        _key("exclude", layout.exclude, empty=True),
    ]
    tables = [f"# The shipped source by language, and what of it is left out.\n[code]\n{''.join(code)}"]
    if shown := found.inclusion:
        fields = {"page": shown.page, "registry": shown.registry, "begin": shown.begin, "end": shown.end}
        entry = "".join(f"{key} = {_string(value)}\n" for key, value in fields.items() if value)
        tables.append(f"# This page shows that source file, which documents the variables in it.\n[[include]]\n{entry}")
    head = "# env-doc: each variable that is read is documented, and the reverse. A first guess by gate init.\n"
    return "\n".join([head, "".join(keys), *tables])


def _key(key: str, value: str | int | Sequence[str], comment: str = "", *, empty: bool = False) -> str:
    """One key below its comment; nothing for an empty list unless it says something (`empty`)."""
    if not isinstance(value, int) and not value and not empty:
        return ""
    text = value if isinstance(value, int) else _string(value) if isinstance(value, str) else _list(value)
    return f"# {comment}\n{key} = {text}\n" if comment else f"{key} = {text}\n"


def _list(values: Iterable[str]) -> str:
    items = [_string(value) for value in values]
    line = f"[{', '.join(items)}]"
    return line if len(line) < 100 else "[\n" + "".join(f"    {item},\n" for item in items) + "]"


def _string(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
