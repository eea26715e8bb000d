"""All rules of env-doc, applied to the evidence of one tree."""

from collections.abc import Iterator

from gatewright.checks import _env_code_rules as code
from gatewright.checks import _env_page_rules as pages
from gatewright.checks._env_evidence import Evidence
from gatewright.core.finding import Finding

RULES = (
    pages.undocumented, pages.unread, pages.duplicate, pages.default, pages.removed, pages.env_file,
    code.dynamic, code.stale_patterns, code.registry_key, code.dead_entry, code.internal, code.unparsable, code.blind,
)  # fmt: skip


def findings(evidence: Evidence) -> Iterator[Finding]:
    """All findings of one tree."""
    yield from evidence.page_problems
    for rule in RULES:
        yield from rule(evidence)


def notes(evidence: Evidence) -> list[str]:
    """What was seen and is no finding, one sentence each."""
    computed = {row.name for _, row, _, agrees in pages.compared_defaults(evidence) if agrees is None}
    said = []
    if evidence.foreign:
        said.append(f"env-doc: {len(evidence.foreign)} names outside the project's prefixes are read")
    if computed:
        said.append(f"env-doc: cannot compare the defaults of {', '.join(sorted(computed))}")
    return said
