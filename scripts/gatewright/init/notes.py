"""What is said about each policy file: the key, what was guessed, and where the guess is weak."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from gatewright.core.finding import Finding
from gatewright.init.environment import Environment
from gatewright.init.layout import Layout
from gatewright.init.rooms import Rooms

CORE = ["owner_pattern: any name; set it to how you name people or records"]
_SHOWN = 8


def devices(
    layout: Layout,
    rooms: Rooms,
    shared: Sequence[str],
    sites: Sequence[Finding],
    doubted: Mapping[str, Sequence[str]],
) -> list[str]:
    """`doubted`: rooms that were named after a device, and dropped because no code in them names one."""
    known, other = (
        [folder for folder in folders if not rooms.hold(folder)] for folders in (layout.known, layout.other)
    )
    said = [f"shared: {_some(shared)}"]
    if known:
        said.append(f"shared: known by the names of layers: {_some(known)}")
    if other:
        said.append(f"shared: not sure, these are no names of layers: {_some(other)}")
    if layout.aside:
        said.append(f"shared: left out as no part of the product: {_some(layout.aside)}")
    said += [f"rooms.{device}: {_some(globs)}" for device, globs in rooms.globs.items()]
    if rooms.unsure:
        said.append(f"rooms: not sure, taken for rooms because they lie beside others: {_some(rooms.unsure)}")
    if doubted:
        globs = [glob for room in doubted.values() for glob in room]
        said.append(f"rooms: not sure, named after a device but free of device words, so none: {_some(globs)}")
    elif not rooms.globs:
        said.append("rooms: not sure, no folder or file is named after a device; each use of one counts as a finding")
    if layout.exclude or layout.vendored:
        said.append(f"exclude: {_some([*layout.exclude, *layout.vendored])}")
    counts = Counter(finding.bucket or finding.rule for finding in sites)
    if counts:
        words = ", ".join(f"{bucket} {count}" for bucket, count in counts.most_common())
        said.append(f"bucket: {len(sites)} sites in the shared layers today ({words})")
    return said


def environment(found: Environment) -> list[str]:
    said = []
    if found.own:
        said.append(f"prefixes: {', '.join(found.prefixes)} ({len(found.own)} variables)")
    elif found.prefixes:
        said.append(f"prefixes: not sure, no variable that is read begins with {' or '.join(found.prefixes)}")
    else:
        said.append("prefixes: not sure, the code reads no variable")
    if found.others:
        said.append(f"prefixes: not judged are {len(found.others)} with other ones: {_some(found.others)}")
    if found.page:
        how = "in its tables" if found.table else "in its text; a table would let defaults be compared"
        said.append(f"pages: {found.page} documents {found.documented} of {len(found.own)} variables {how}")
    if shown := found.inclusion:
        said.append(f"include: {shown.page} shows {shown.registry}, which documents what it defines")
    elif not found.page:
        said.append(
            "pages: not sure, no page names the variables, so each new one is refused and those of today are "
            "inherited. Write docs/ENVIRONMENT.md with a table (Variable, Default, Meaning) of all and name it here"
        )
    return said


def _some(items: Iterable[str]) -> str:
    items = list(items)
    more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return ", ".join(items[:_SHOWN]) + more
