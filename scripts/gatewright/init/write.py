"""Writes the first policy files, and puts together what was guessed for each."""

import tomllib
from pathlib import Path

from gatewright.checks._device_policy import Policy as DevicePolicy
from gatewright.core.cache import NAME, Cache
from gatewright.core.change import find_remote
from gatewright.core.contract import load_check
from gatewright.core.errors import CannotJudge
from gatewright.core.finding import Finding
from gatewright.core.git import Repository
from gatewright.core.policy import parse_policy
from gatewright.core.snapshot import work_tree_snapshot
from gatewright.core.tree import Tree
from gatewright.init import notes, text
from gatewright.init.environment import guess_environment
from gatewright.init.layout import guess_layout
from gatewright.init.rooms import Rooms, guess_rooms

CORE = "policy/policy.toml"
DEVICE = "policy/device-leakage.toml"
ENV = "policy/env-doc.toml"


def write_policy(folder: Path, *, force: bool = False) -> list[str]:
    """Write `policy/` at the root of the repository around `folder`; returns what to tell the user.

    A file that exists is kept unless `force`. Nothing of the repository is executed. Raises
    CannotJudge where the tree cannot be read or a file cannot be written.
    """
    repository = Repository(folder.resolve())
    snapshot = work_tree_snapshot(repository)
    assert repository.root is not None
    cache = Cache(repository.common_dir / NAME)
    files = _guess(Tree(snapshot, cache))
    cache.close()
    lines: list[str] = []
    for path, (content, said) in files.items():
        parse_policy(load_check(Path(path).stem), tomllib.loads(content), path, content)
        if _write(repository.root / path, content, force=force):
            lines += [f"wrote {path}", *(f"  {path} {note}" for note in said)]
        else:
            lines.append(f"kept {path}: it exists (gate init --force replaces it)")
    if len(files) == 1:
        lines.append("no package with Python, C, C++ or Rust sources was found: there is nothing to enforce yet")
    if find_remote(repository).default:
        there = "gate run --show-inherited lists what is there already, and fails only for what comes"
    else:
        there = "gate run lists what is there; once a remote's default branch has it, it fails only for what comes"
    return [*lines, f"next: {there}; gate install adds the hook"]


def _guess(tree: Tree) -> dict[str, tuple[str, list[str]]]:
    """Policy file -> (its content, what to say about it)."""
    layout, packages = guess_layout(tree.paths)
    files = {CORE: (text.CORE, notes.CORE)}
    if layout.python or layout.cfamily:
        rooms = guess_rooms(packages)
        shared = packages.globs_outside(rooms.paths)
        sites = _sites(tree, text.device(layout, rooms, shared))
        blind = any(finding.rule == "device-leakage/blind" for finding in sites)
        if blind:
            shared = packages.globs_outside(())
            sites = _sites(tree, text.device(layout, Rooms({}, [], []), shared))
        kept = Rooms({}, [], []) if blind else rooms
        said = notes.devices(layout, kept, shared, sites, doubted=rooms.globs if blind else {})
        files[DEVICE] = (text.device(layout, kept, shared), said)
    if layout.python or layout.cfamily or layout.rust:
        environment = guess_environment(tree, layout)
        files[ENV] = (text.environment(layout, environment), notes.environment(environment))
    return files


def _sites(tree: Tree, content: str) -> list[Finding]:
    """What the check finds under this policy. Its facts are cached, so the first run after this is warm."""
    check = load_check("device-leakage")
    policy: DevicePolicy = parse_policy(check, tomllib.loads(content), DEVICE, content).policy
    advisory = {rule.id for rule in check.rules if rule.advisory}
    return [finding for finding in check.judge(tree, policy).findings if finding.rule not in advisory]


def _write(path: Path, content: str, *, force: bool) -> bool:
    """False where the file exists and is kept. A link is never written through."""
    for place, is_kind, kind in ((path.parent, Path.is_dir, "folder"), (path, Path.is_file, "file")):
        if place.is_symlink() or (place.exists() and not is_kind(place)):
            raise CannotJudge(f"{place} is in the way: it is no regular {kind}", "move it")
    if path.exists() and not force:
        return False
    try:
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8", newline="\n")
    except OSError as error:
        raise CannotJudge(f"cannot write {path}: {error.strerror}", "make the folder writable") from None
    return True
