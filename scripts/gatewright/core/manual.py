"""Executed manuals: `docs/checks/<check>.md` explains each rule and states the findings of small trees.

Under a heading that names a rule, a fenced block `tree` (or `base` and `head`) holds files, each
after a line `-- path --`; a block `finds` lists one `rule path:line` per line (empty: clean); a
block `policy` overrides the default, which is the `policy` block before the first rule.
"""

import re
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from gatewright.core.cache import Cache
from gatewright.core.change import Change
from gatewright.core.errors import PolicyError
from gatewright.core.policy import CORE
from gatewright.core.report import Report
from gatewright.core.snapshot import DictSnapshot
from gatewright.readers.markdown import parse

_FILE = re.compile(r"^-- (\S.*) --$", re.MULTILINE)
_RULE = re.compile(r"`?([a-z][\w-]*/[a-z][\w-]*)`?\Z")


class Case(msgspec.Struct):
    """One example: a tree, maybe its base, a policy, and what a run must find."""

    page: str
    line: int
    rule: str
    policy: str
    head: dict[str, str]
    base: dict[str, str] | None
    finds: list[str]


class Section(msgspec.Struct):
    rule: str
    line: int
    text: str


def page_path(check: str) -> Path:
    """The manual of a check: in the installed package, else beside the sources."""
    packaged = Path(str(resources.files("gatewright"))) / "manuals" / f"{check}.md"
    if packaged.is_file():
        return packaged
    return Path(__file__).resolve().parents[3] / "docs" / "checks" / f"{check}.md"


def sections(text: str) -> list[Section]:
    """The page's parts: the one before the first rule (its rule is empty), then one for each rule."""
    document = parse(text)
    rules = [(h.line, m[1]) for h in document.headings if (m := _RULE.match(h.text))]
    starts = [(1, ""), *rules]
    ends = [line for line, _ in starts[1:]] + [len(document.lines) + 1]
    lines = document.lines
    return [
        Section(rule, line, "\n".join(lines[line - 1 : end - 1]))
        for (line, rule), end in zip(starts, ends, strict=True)
    ]


def cases(text: str, page: str = "") -> list[Case]:
    """All examples of a page, in order. Raises PolicyError where a block has no partner."""
    document = parse(text)
    headings = [(h.line, m[1] if (m := _RULE.match(h.text)) else None) for h in document.headings]
    found: list[Case] = []
    default = ""
    rule, policy, trees = "", "", dict[str, dict[str, str]]()
    for fence in document.fences:
        current = next((name for line, name in reversed(headings) if line < fence.line and name), "")
        if current != rule:
            _no_leftover(trees, page, fence.line)
            rule, policy = current, default
        kind = fence.info.split(" ")[0]
        if kind == "policy":
            policy = fence.content
            if not rule:
                default = policy
        elif kind in ("tree", "base", "head"):
            trees[kind] = split_files(fence.content)
        elif kind == "finds":
            head = trees.pop("tree" if "tree" in trees else "head", None)
            if head is None:
                raise PolicyError(
                    f"{page}:{fence.line}: a `finds` block without a tree before it", "put a `tree` block above it"
                )
            finds = sorted(line.strip() for line in fence.content.splitlines() if line.strip())
            found.append(Case(page, fence.line, rule, policy or default, head, trees.pop("base", None), finds))
            policy = default
    _no_leftover(trees, page, len(document.lines))
    return found


def _no_leftover(trees: dict[str, Any], page: str, line: int) -> None:
    if trees:
        raise PolicyError(
            f"{page}:{line}: a `{next(iter(trees))}` block without `finds`", "add a `finds` block after it"
        )


def split_files(content: str) -> dict[str, str]:
    """The files of a `tree` block."""
    parts = _FILE.split(content)
    return {path: body.removeprefix("\n") for path, body in zip(parts[1::2], parts[2::2], strict=True)}


def judge_case(case: Case, check: str) -> Report:
    """Run one example, the check's policy being the case's unless its tree brings one."""
    from gatewright.core.runner import run

    policy = {f"policy/{check}.toml": case.policy}
    tomllib.loads(case.policy)
    head = DictSnapshot({**policy, **case.head}, "head")
    base = None if case.base is None else DictSnapshot({**policy, **case.base}, "base")
    return run([Change(None, head, base)], Cache(None), only=[check])


def found(report: Report, check: str) -> list[str]:
    """Findings in the form of a `finds` block: `rule path:line`, without line where there is none.

    A small tree need not hold a file for each pattern of its page's policy.
    """
    findings = [f for f in [*report.new, *report.advisory] if check == CORE or f.rule != "policy/empty-glob"]
    return sorted(f"{f.rule} {f.path}:{f.line}" if f.line else f"{f.rule} {f.path}".strip() for f in findings)
