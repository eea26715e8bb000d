"""Reads of the process environment in Python source, by `ast`.

Blind spots, each pinned by a test: an alias of `os.environ` made in another file, an environment stored
in an attribute from outside its class, iteration over all of the environment, `exec`, settings libraries
that derive names from field names and are given no prefix.
"""

import ast
import re
from collections.abc import Iterator

import msgspec

from gatewright.extractors.env_read import Constant, Entry, EnvFacts, Export, Options, Read, Value
from gatewright.extractors.env_values import ENVIRON, clean, evaluate
from gatewright.extractors.env_visit import ReadVisitor
from gatewright.readers.python import parse

PREFILTER = re.compile(rb"environ|getenv|envvar|env_prefix|expandvars")
WILDCARD = rb"import[ \t]*\*"
NEWLINE = re.compile(rb"\r\n|\r|\n")
# What a file that does not parse still shows: a call or a subscript that is not assigned to.
LEXICAL = re.compile(
    rb"(?:getenvb?|environb?\s*\.\s*(?:get|pop|setdefault))\s*\(\s*([\"'])(\w+)\1"
    rb"|environb?\s*\[\s*([\"'])(\w+)\3\s*\](?!\s*=[^=])"
)


def extract(data: bytes, options: Options) -> list[EnvFacts]:
    """The environment facts of one Python file. Never raises; see `EnvFacts.unparsed`."""
    names = frozenset(options.names)
    words = b"|".join(re.escape(name.encode()) for name in sorted(names))
    wanted = re.compile(rb"\b(?:" + words + rb")\b|" + WILDCARD) if names else PREFILTER
    if wanted.search(data) is None:
        return []
    source = parse(data)
    if source.tree is None:
        return [_lexical(data, source.error)]
    visitor = ReadVisitor(names, source)
    try:
        visitor.walk(source.tree)
    except RecursionError:
        return [_lexical(data, "nested too deeply")]
    facts = EnvFacts(
        reads=tuple(visitor.reads),
        calls=tuple(visitor.calls),
        constants=tuple(_constants(visitor)),
        exports=tuple(_exports(visitor)),
        bases=tuple(visitor.bases),
        entries=tuple(_entries(visitor, source.tree)),
        defines=tuple(visitor.defines),
    )
    return [facts] if facts != EnvFacts() else []


def _lexical(data: bytes, reason: str) -> EnvFacts:
    """Literal reads found in the text alone; comments and strings are not told from code."""
    reads = []
    line, seen = 1, 0
    for match in LEXICAL.finditer(data):
        line += len(NEWLINE.findall(data, seen, match.start()))
        seen = match.start()
        name = (match[2] or match[4]).decode("utf-8", "replace")
        reads.append(Read(line, 1, "text", Value(repr(name), literal=name), name))
    return EnvFacts(reads=tuple(reads), unparsed=clean(reason))


def _constants(visitor: ReadVisitor) -> Iterator[Constant]:
    """The wanted names that the module or a class body binds to something else than a symbol."""
    for scope in (visitor.scope, *visitor.scope.file.classes.values()):
        for name in sorted(visitor.names & scope.bindings.keys()):
            values = evaluate(ast.Name(name), scope)
            if not any(value.reference for value in values):
                qualified = f"{scope.qualname}.{name}" if scope.qualname else name
                text = values[0].literal if len(values) == 1 else None
                yield Constant(qualified, text, scope.lines.get(name, 0))


def _exports(visitor: ReadVisitor) -> Iterator[Export]:
    """The wanted names that stand for other symbols: imports, aliases, instances."""
    scope = visitor.scope
    if visitor.names:
        yield from (Export("*", module) for module in scope.file.stars)
    for name in sorted(visitor.names & scope.bindings.keys()):
        for value in evaluate(ast.Name(name), scope):
            if value.reference and value.reference not in (f":{name}", *ENVIRON):
                yield Export(name, value.reference.removesuffix("()"))


def _entries(visitor: ReadVisitor, tree: ast.Module) -> Iterator[Entry]:
    """The registry entries, each with whether the file uses its key outside the entry."""
    if not visitor.entries:
        return
    spans = {key: range(e.line, (node.end_lineno or e.line) + 1) for key, (e, node) in visitor.entries.items()}
    used: set[str] = set()
    for node in ast.walk(tree):
        name = _symbol(node)
        if name in spans and getattr(node, "lineno", 0) not in spans[name]:
            used.add(name)
    for key, (entry, _) in visitor.entries.items():
        yield msgspec.structs.replace(entry, used=key in used)


def _symbol(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        return node.id
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
