"""The rules of env-doc about the code and the policy's own entries."""

from collections.abc import Iterator
from fnmatch import fnmatchcase

from gatewright.checks._env_evidence import POLICY, Evidence
from gatewright.checks._env_policy import Dynamic
from gatewright.checks._env_resolution import Unresolved
from gatewright.core.finding import Finding
from gatewright.core.globs import compile_globs
from gatewright.extractors.env_read import Entry


def dynamic(evidence: Evidence) -> Iterator[Finding]:
    for site in evidence.resolution.unresolved:
        if not evidence.policy.may_own(site.pattern) or any(covers(d, site) for d in evidence.policy.dynamic):
            continue
        shape = "" if site.pattern == "*" else f" of the form {site.pattern}"
        pattern = site.pattern if not site.pattern.startswith("*") else "PREFIX_*"
        yield Finding(
            rule="env-doc/dynamic",
            path=site.path,
            line=site.line,
            column=site.column,
            message=f"a variable{shape} is read here whose name cannot be told: {site.reason} ({site.text})",
            help=f'read it by a literal or a constant, or declare in {POLICY}: [[dynamic]] pattern = "{pattern}", '
            f'path = "{site.path}", why = "..."',
            token=site.text,
            statement=site.statement,
        )


def stale_patterns(evidence: Evidence) -> Iterator[Finding]:
    for entry in evidence.policy.dynamic:
        if len(entry.why.strip()) < evidence.policy.minimum_reason:
            fault = f"gives the reason {entry.why!r}, which is too short"
            help = "say which names exist and where they are documented"
        elif not any(covers(entry, site) for site in evidence.resolution.unresolved):
            fault, help = "covers no read", "delete it"
        else:
            continue
        message = f"the dynamic entry {entry.pattern} {fault}"
        yield Finding(rule="env-doc/dynamic", path=POLICY, message=message, help=help, token=entry.pattern)


def registry_key(evidence: Evidence) -> Iterator[Finding]:
    read_by: dict[tuple[str, str], list[str]] = {}
    for use in evidence.resolution.uses:
        if use.entry:
            read_by.setdefault((use.path, use.entry), []).append(use.name)
    for path, entry in evidence.resolution.entries:
        names = read_by.get((path, entry.key), [])
        if names and entry.key not in names and evidence.policy.owns(entry.key):
            message = f"the entry {entry.key} reads {', '.join(dict.fromkeys(names))}"
            yield _entry("registry-key", path, entry, message, "make the key and the name it reads the same")


def dead_entry(evidence: Evidence) -> Iterator[Finding]:
    for path, entry in evidence.resolution.entries:
        elsewhere = evidence.mentioned.get(entry.key, set()) - {path}
        if not entry.used and not elsewhere and evidence.policy.owns(entry.key):
            message = f"nothing uses the entry {entry.key}: setting the variable changes nothing"
            yield _entry("dead-entry", path, entry, message, "delete the entry and its documentation, or use it")


def internal(evidence: Evidence) -> Iterator[Finding]:
    for name, reason in evidence.policy.internal.items():
        if len(reason.strip()) < evidence.policy.minimum_reason:
            yield _internal(name, f"gives the reason {reason!r}, which is too short", "say why users must not set it")
        if name in evidence.documented:
            yield _internal(name, "is also documented", "keep the row or the entry, not both")
        if not evidence.is_read(name):
            yield _internal(name, "is read by no code", "delete the entry")


def covers(entry: Dynamic, site: Unresolved) -> bool:
    """A pattern declared for a file covers what is read there; else it must cover the site's shape."""
    if entry.path:
        return bool(compile_globs((entry.path,)).fullmatch(site.path))
    return fnmatchcase(site.pattern, entry.pattern)


def unparsable(evidence: Evidence) -> Iterator[Finding]:
    for path, reason in evidence.resolution.unparsed.items():
        yield Finding(
            rule="env-doc/unparsable",
            path=path,
            message=f"the file cannot be parsed ({reason}); only names that its text shows were seen",
            help="mend the syntax, or exclude the file under [code] of " + POLICY,
            token=path,
        )


def blind(evidence: Evidence) -> Iterator[Finding]:
    count, minimum = len(evidence.uses), evidence.policy.minimum
    if evidence.files and count < minimum:
        yield Finding(
            rule="env-doc/blind",
            path=POLICY,
            message=f"{evidence.files} source files were read and {count} variables found, fewer than the {minimum} "
            "that the policy expects",
            help=f"mend the prefixes or the [code] globs; lower `minimum` of {POLICY} only if variables are gone",
            token="minimum",
        )


def _entry(rule: str, path: str, entry: Entry, message: str, help: str) -> Finding:
    return Finding(
        rule=f"env-doc/{rule}",
        path=path,
        line=entry.line,
        column=entry.column,
        message=message,
        help=help,
        token=entry.key,
    )


def _internal(name: str, fault: str, help: str) -> Finding:
    message = f"the internal variable {name} {fault}"
    return Finding(rule="env-doc/internal", path=POLICY, message=message, help=help, token=name, statement=fault)
