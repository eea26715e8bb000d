"""device-leakage: the device-agnostic layers name no device."""

from collections.abc import Iterator, Mapping, Sequence

from gatewright.checks._device_policy import CFAMILY, POLICY, PYTHON, Policy
from gatewright.checks._device_rooms import Modules
from gatewright.core.contract import Check, Judgement, Rule
from gatewright.core.facts import Extractor
from gatewright.core.finding import Finding
from gatewright.core.globs import PathSet
from gatewright.core.tree import Tree
from gatewright.extractors.device_site import Site

# What fails at import and not only when it is reached. An import that fails is `device-leakage/import` already.
_PROBES = frozenset({"attribute", "predicate", "call", "dynamic"})
_CFAMILY_KINDS = frozenset({"include", "preprocessor", "enumerator", "cast"})
# Of the kinds of site: what the code does with the word.
_VERBS = {
    "attribute": "names a device",
    "predicate": "asks for a device",
    "literal": "spells a device",
    "call": "moves data to a device",
    "import": "imports device code",
    "include": "includes a device header outside a guard",
    "preprocessor": "is a gate on a device",
    "enumerator": "names a device",
    "cast": "makes a device type of a number",
    "word": "is a vendor's word",
    "dynamic": "reaches a device through a string",
}


class DeviceLeakage(Check[Policy]):
    name = "device-leakage"
    summary = "the device-agnostic layers name no device"
    policy = Policy
    globs = ("shared", "tests", "exclude", "rooms.*")
    rules = (
        Rule("device-leakage/attribute", "shared code uses no attribute of a device package", unit="shared files"),
        Rule("device-leakage/predicate", "shared code asks for capabilities, not which device it runs on"),
        Rule("device-leakage/literal", "shared code spells no device in a string"),
        Rule("device-leakage/call", "shared code calls no method that moves data to one device"),
        Rule("device-leakage/import", "shared code imports no device package and nothing from a device room"),
        Rule("device-leakage/import-time", "shared code probes no device while it is imported"),
        Rule("device-leakage/dynamic", "shared code reaches no device through getattr, vars or a module's name"),
        Rule("device-leakage/word", "shared code has no vendor's words in its names"),
        Rule("device-leakage/include", "shared C-family code includes device headers under a guard", empty_ok=True),
        Rule("device-leakage/preprocessor", "shared C-family code has no #if on a device", empty_ok=True),
        Rule("device-leakage/enumerator", "shared C-family code uses no enumerator of a device", empty_ok=True),
        Rule("device-leakage/cast", "shared C-family code makes no device type of a number", empty_ok=True),
        Rule("device-leakage/unparsable", "shared Python files can be parsed", empty_ok=True),
        Rule(
            "device-leakage/blind",
            "the scanner sees the device words of the device rooms",
            empty_ok=True,
            unit="files in device rooms",
        ),
        Rule(
            "device-leakage/device-only-test",
            "tests that pass without running where a device is missing",
            empty_ok=True,
            advisory=True,
        ),
    )

    def extractors(self, policy: Policy) -> Sequence[Extractor]:
        """Both read the whole tree: the rooms prove that the words are seen, other files may be moved in."""
        return [
            Extractor(
                name=f"device-{language}",
                paths=PathSet(paths, policy.exclude),
                function=f"gatewright.extractors.device_{language}:extract",
                fact=Site,
                options=policy.vocabulary,
            )
            for language, paths in (("python", PYTHON), ("cfamily", CFAMILY))
        ]

    def judge(self, tree: Tree, policy: Policy) -> Judgement:
        sites = self._sites(tree, policy)
        shared = tree.select(policy.shared_files)
        rooms = tree.select(policy.room_files)
        tests = tree.select(PathSet(policy.tests, policy.exclude))
        findings = [
            *_leaks(tree, policy, sites, shared),
            *_blind(sites, rooms),
            *_device_only_tests(sites, tests),
        ]
        return Judgement(findings, self._examined(shared, rooms, tests))

    def outside(self, tree: Tree, policy: Policy, paths: Sequence[str]) -> list[Finding]:
        shared = policy.shared_files
        return list(_leaks(tree, policy, self._sites(tree, policy), [path for path in paths if path not in shared]))

    def _sites(self, tree: Tree, policy: Policy) -> dict[str, list[Site]]:
        extractors = self.extractors(policy)
        tree.prefetch(extractors)
        return {path: sites for extractor in extractors for path, sites in tree.facts(extractor).items()}

    def _examined(self, shared: list[str], rooms: list[str], tests: list[str]) -> dict[str, int]:
        python, cfamily = PathSet(PYTHON).select(shared), PathSet(CFAMILY).select(shared)
        source = PathSet((*PYTHON, *CFAMILY))
        counts = {rule.id: len(python) + len(cfamily) for rule in self.rules}
        counts |= {f"device-leakage/{kind}": len(cfamily) for kind in _CFAMILY_KINDS}
        counts["device-leakage/unparsable"] = len(python)
        counts["device-leakage/blind"] = len(source.select(rooms))
        counts["device-leakage/device-only-test"] = len(source.select(tests))
        return counts


def _leaks(tree: Tree, policy: Policy, sites: Mapping[str, Sequence[Site]], paths: Sequence[str]) -> Iterator[Finding]:
    modules: Modules | None = None
    for path in paths:
        for site in sites.get(path, ()):
            if site.kind == "unparsable":
                yield _unparsable(path, site)
            elif site.kind == "device_test":
                continue
            elif site.bucket:
                yield _leak(policy, path, site)
            else:
                modules = modules or Modules(tree.paths, policy)
                room = (modules.included if site.kind == "include" else modules.imported)(path, site.token)
                if room:
                    yield _leak(policy, path, site, room)


def _leak(policy: Policy, path: str, site: Site, room: str = "") -> Finding:
    at_import = site.import_time and site.kind in _PROBES
    rule = f"device-leakage/{'import-time' if at_import else site.kind}"
    what = f"leads into the device room {room!r}" if room else _VERBS[site.kind]
    bucket = "room" if room else site.bucket
    layer = policy.layer(path)
    where = f"in the shared layer {layer}" if layer else "in a file of no shared layer"
    when = " and runs at import time, so the module cannot be imported without the device" if at_import else ""
    instead = policy.bucket[bucket].instead if not room else "a platform interface that the room implements"
    comment = f"{'//' if path in PathSet(CFAMILY) else '#'} gate: allow {rule} (OWNER): reason"
    return Finding(
        rule=rule,
        path=path,
        line=site.line,
        column=site.column,
        message=f"{site.token} {what} {where} (bucket {bucket}){when}",
        help=f"{f'use {instead}, or' if instead else ''} move the code into a device room; "
        f"where it must stay, say why on the line or the line above: `{comment}`".lstrip(),
        token=site.token,
        statement=site.statement,
        bucket=bucket,
    )


def _unparsable(path: str, site: Site) -> Finding:
    return Finding(
        rule="device-leakage/unparsable",
        path=path,
        line=site.line,
        column=site.column,
        message=f"cannot be parsed as Python ({site.token}), so its device words were looked for by pattern only",
        help="mend the syntax, or add the file to `exclude` of policy/device-leakage.toml with a `why`",
        token="unparsable",
    )


def _blind(sites: Mapping[str, Sequence[Site]], rooms: Sequence[str]) -> Iterator[Finding]:
    """A scanner that sees nothing where devices must be named would pass everything."""
    if rooms and not any(site.bucket for path in rooms for site in sites.get(path, ())):
        yield Finding(
            rule="device-leakage/blind",
            path=POLICY,
            message=f"no device word is seen in the {len(rooms)} files of the device rooms: the scan proves nothing",
            help="correct the words of [bucket.*], or the globs of [rooms]",
            token="blind",
        )


def _device_only_tests(sites: Mapping[str, Sequence[Site]], tests: Sequence[str]) -> Iterator[Finding]:
    for path in tests:
        for site in sites.get(path, ()):
            if site.kind == "device_test":
                yield Finding(
                    rule="device-leakage/device-only-test",
                    path=path,
                    line=site.line,
                    column=site.column,
                    message=f"{site.token} runs only on one device (bucket {site.bucket}) "
                    "and passes without running elsewhere",
                    help="see that a lane runs it on that device, or test the same through the platform interface",
                    token=site.token,
                    statement=site.statement,
                    bucket=site.bucket,
                )


CHECK = DeviceLeakage()
