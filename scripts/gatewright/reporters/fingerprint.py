"""Names of findings that survive edits elsewhere in the file, for the formats that track them over time."""

from collections import Counter
from hashlib import blake2b
from typing import Literal

import msgspec

from gatewright.core.finding import Finding
from gatewright.core.report import Report, rank

Status = Literal["new", "inherited", "advisory"]


class Named(msgspec.Struct, frozen=True):
    """A finding of a report; no other finding of it has the same `fingerprint`."""

    finding: Finding
    status: Status
    fingerprint: str


def named(report: Report) -> list[Named]:
    """Every finding, in order. Its name is the site's identity and an ordinal among equal sites of one file.

    Lines and messages are no part of it, and new and inherited sites are counted together, so a
    site is called the same before and after it is merged.
    """
    lists: list[tuple[Status, list[Finding]]] = [
        ("new", report.new),
        ("inherited", report.inherited),
        ("advisory", report.advisory),
    ]
    listed = [(finding, status) for status, findings in lists for finding in findings]
    listed.sort(key=lambda item: rank(item[0]))
    seen: Counter[tuple[str, ...]] = Counter()
    result = []
    for finding, status in listed:
        statement = "" if finding.measure is not None else finding.statement
        site = (finding.rule, finding.path, finding.token, statement)
        result.append(Named(finding, status, _digest(site, seen[site])))
        seen[site] += 1
    return result


def _digest(site: tuple[str, ...], ordinal: int) -> str:
    # ascii() delimits the parts, whatever they hold, and spells surrogates out.
    return blake2b(ascii((site, ordinal)).encode("ascii"), digest_size=16).hexdigest()
