"""Reads of the process environment in Python source, by `ast`.

Blind spots, each pinned by a test: a function that returns `os.environ`, an environment stored in an
attribute, iteration over all of the environment, `exec`, settings libraries that derive names
from field names.
"""

import ast
import builtins
import re
import sys

import msgspec

from gatewright.extractors.env_read import (
    Argument,
    Base,
    Call,
    Constant,
    Entry,
    EnvFacts,
    Export,
    Options,
    Parameter,
    Read,
    Value,
)
from gatewright.extractors.env_values import (
    ENVIRON,
    UNKNOWN,
    Comprehension,
    File,
    Function,
    Scope,
    Values,
    bind_loop,
    bind_parameters,
    bind_target,
    class_fields,
    clean,
    collect,
    comprehension_scope,
    evaluate,
    source_text,
)
from gatewright.readers.python import Source, parse

PREFILTER = re.compile(rb"environ|getenv|envvar")
GETTERS = {"os.getenv": "getenv", "os.getenvb": "getenv"} | {
    f"{mapping}.{method}": method.strip("_").removesuffix("item")
    for mapping in ENVIRON
    for method in ("get", "pop", "setdefault", "__getitem__", "__contains__")
}
METHODS = frozenset({"get", "pop", "setdefault"})
NEWLINE = re.compile(rb"\r\n|\r|\n")
# What a file that does not parse still shows.
LEXICAL = re.compile(
    rb"(?:getenvb?|environb?\s*\.\s*(?:get|pop|setdefault))\s*\(\s*([\"'])(\w+)\1|environb?\s*\[\s*([\"'])(\w+)\3\s*\](?!\s*=[^=])"
)


def extract(data: bytes, options: Options) -> list[EnvFacts]:
    """The environment facts of one Python file. Never raises; see `EnvFacts.unparsed`."""
    names = frozenset(options.names)
    if not (_mentions(data, names) if names else PREFILTER.search(data)):
        return []
    source = parse(data)
    if source.tree is None:
        return [_lexical(data, source.error)]
    visitor = _Visitor(names, source, source.tree)
    try:
        visitor.run()
    except RecursionError:
        return [_lexical(data, "nested too deeply")]
    facts = visitor.facts()
    return [facts] if facts != EnvFacts() else []


def _mentions(data: bytes, names: frozenset[str]) -> bool:
    return b"import *" in data or any(name.encode() in data for name in names)


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


class _Visitor(ast.NodeVisitor):
    def __init__(self, names: frozenset[str], source: Source, tree: ast.Module) -> None:
        self.names = names
        self.source = source
        self.tree = tree
        self.scope = Scope("", None, File())
        self.owner = ""
        self.entry = ""
        self.target = ""
        self.base_references: list[str] = []
        self.fallback: dict[ast.expr, ast.expr] = {}
        self.reads: list[Read] = []
        self.calls: list[Call] = []
        self.bases: list[Base] = []
        self.defines: list[str] = []
        self.entries: dict[str, tuple[Entry, ast.expr]] = {}
        self.statements: dict[int, str] = {}

    # -- results

    def run(self) -> None:
        collect(self.tree.body, self.scope)
        for node in self.tree.body:
            self._declare_classes(node, "")
        for node in self.tree.body:
            self.visit(node)

    def facts(self) -> EnvFacts:
        return EnvFacts(
            reads=tuple(self.reads),
            calls=tuple(self.calls),
            constants=tuple(self._constants()),
            exports=tuple(self._exports()),
            bases=tuple(self.bases),
            entries=tuple(self._used_entries()),
            defines=tuple(self.defines),
        )

    def _constants(self) -> list[Constant]:
        found = []
        for scope in (self.scope, *self.scope.file.classes.values()):
            for name in sorted(self.names & scope.bindings.keys()):
                values = evaluate(ast.Name(name), scope)
                if any(value.reference.startswith(":") for value in values):
                    continue
                text = values[0].literal if len(values) == 1 else None
                qualified = f"{scope.qualname}.{name}" if scope.qualname else name
                if not values[0].reference:
                    found.append(Constant(qualified, text, scope.lines.get(name, 0)))
        return found

    def _exports(self) -> list[Export]:
        if not self.names:
            return []
        found = [Export("*", module) for module in self.scope.file.stars]
        for name in sorted(self.names & self.scope.bindings.keys()):
            found += [
                Export(name, value.reference)
                for value in evaluate(ast.Name(name), self.scope)
                if value.reference and value.reference not in (":" + name, *ENVIRON)
            ]
        return found

    def _used_entries(self) -> list[Entry]:
        """Entries, with whether the file uses the key outside the entry itself."""
        if not self.entries:
            return []
        spans = {
            key: range(entry.line, (node.end_lineno or entry.line) + 1) for key, (entry, node) in self.entries.items()
        }
        used: set[str] = set()
        for node in ast.walk(self.tree):
            name = ""
            if isinstance(node, ast.Attribute):
                name = node.attr
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                name = node.id
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                name = node.value
            if name in spans and getattr(node, "lineno", 0) not in spans[name]:
                used.add(name)
        return [msgspec.structs.replace(entry, used=key in used) for key, (entry, _) in self.entries.items()]

    # -- scopes

    def _declare_classes(self, node: ast.AST, prefix: str) -> None:
        if isinstance(node, ast.ClassDef):
            qualname = f"{prefix}.{node.name}" if prefix else node.name
            body = Scope(qualname, self.scope, self.scope.file, of_class=True)
            collect(node.body, body)
            self.scope.file.classes[qualname] = body
            self.scope.file.fields[qualname] = class_fields(node, qualname)
            for item in node.body:
                self._declare_classes(item, qualname)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node, node.name)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node, node.name)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._function(node, self.target)

    def _function(self, node: Function | ast.Lambda, name: str) -> None:
        for part in (*node.args.defaults, *filter(None, node.args.kw_defaults), *getattr(node, "decorator_list", ())):
            self.visit(part)
        outer, owner = self.scope, self.owner
        self.scope = outer.child(name)
        self.owner = self.target = ""
        if name in self.names:
            self.defines.append(self.scope.qualname)
        bind_parameters(node, self.scope, owner)
        if isinstance(node, ast.Lambda):
            self.visit(node.body)
        else:
            collect(node.body, self.scope)
            for statement in node.body:
                self.visit(statement)
        self.scope, self.owner = outer, owner

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        outer, owner = self.scope, self.owner
        for part in (*node.bases, *(keyword.value for keyword in node.keywords), *node.decorator_list):
            self.visit(part)
        self.scope = outer.child(node.name, of_class=True)
        self.owner = self.scope.qualname
        collect(node.body, self.scope)
        own = any(isinstance(item, Function) and item.name == "__init__" for item in node.body)
        outer_bases, self.base_references = self.base_references, []
        for value in (value for base in node.bases for value in evaluate(base, outer) if value.reference):
            self.base_references.append(value.reference)
            if _bare(value.reference) in self.names or node.name in self.names:
                self.bases.append(Base(self.owner, value.reference, own))
        if node.name in self.names:
            self.defines.append(self.owner)
        for statement in node.body:
            self.visit(statement)
        self.scope, self.owner, self.base_references = outer, owner, outer_bases

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        outer = self.scope
        self.scope = outer.block()
        bind_loop(node.target, node.iter, self.scope)
        for statement in node.body:
            self.visit(statement)
        self.scope = outer
        for statement in node.orelse:
            self.visit(statement)

    visit_AsyncFor = visit_For

    def _comprehension(self, node: Comprehension) -> None:
        outer = self.scope
        self.scope = comprehension_scope(node, outer)
        self.generic_visit(node)
        self.scope = outer

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension

    # -- assignments

    def visit_Assign(self, node: ast.Assign) -> None:
        self._assigned(node.targets[0], node.value)
        for target in node.targets:
            self.visit(target)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assigned(node.target, node.value)
        self.visit(node.target)

    def _assigned(self, target: ast.expr, value: ast.expr) -> None:
        named = isinstance(value, ast.Call | ast.Lambda)
        self.target = target.id if named and isinstance(target, ast.Name) else ""
        self.visit(value)
        self.target = ""

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Subscript):
            self._mapping_read(node.target, node.target.value, node.target.slice, "subscript", None)
        self.generic_visit(node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        bind_target(node.target, node.value, self.scope)
        self.visit(node.value)

    def visit_Dict(self, node: ast.Dict) -> None:
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None:
                self.visit(key)
            lazy = isinstance(key, ast.Constant) and isinstance(key.value, str) and isinstance(value, ast.Lambda)
            if not lazy or self.entry:
                self.visit(value)
                continue
            assert isinstance(key, ast.Constant)
            self.entry = clean(str(key.value))
            before = len(self.reads) + len(self.calls)
            self.visit(value)
            if len(self.reads) + len(self.calls) > before:
                line, column = key.lineno, self.source.column(key.lineno, key.col_offset)
                self.entries.setdefault(self.entry, (Entry(self.entry, line, column), value))
            self.entry = ""

    # -- reads

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.ctx, ast.Load):
            self._mapping_read(node, node.value, node.slice, "subscript", None)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(operator, ast.In | ast.NotIn):
                keys = (
                    isinstance(right, ast.Call) and isinstance(right.func, ast.Attribute) and right.func.attr == "keys"
                )
                mapping = right.func.value if keys and isinstance(right, ast.Call) else right  # type: ignore[attr-defined]
                self._mapping_read(node, mapping, left, "in", None)
            left = right
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        if isinstance(node.op, ast.Or):
            self.fallback[node.values[0]] = node.values[1]
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        target, self.target = self.target, ""
        callees = evaluate(node.func, self.scope)
        getter = next((GETTERS[value.reference] for value in callees if value.reference in GETTERS), "")
        if getter:
            self._read(node, _argument(node, 0, "key"), getter, _argument(node, 1, "default"), None)
        elif isinstance(node.func, ast.Attribute) and node.func.attr in METHODS and node.args:
            self._mapping_read(node, node.func.value, node.args[0], node.func.attr, _argument(node, 1, "default"))
        if not getter:
            self._call(node, callees, target)
        for keyword in node.keywords:
            if (
                keyword.arg == "envvar"
                and isinstance(keyword.value, ast.Constant)
                and isinstance(keyword.value.value, str)
            ):
                self._read(node, keyword.value, "envvar", _argument(node, -1, "default"), None)
        self.generic_visit(node)

    def _mapping_read(
        self, node: ast.expr | ast.AugAssign, mapping: ast.expr, name: ast.expr, form: str, default: ast.expr | None
    ) -> None:
        for value in evaluate(mapping, self.scope):
            if value.reference in ENVIRON:
                self._read(node, name, form, default, None)
                return
        for value in evaluate(mapping, self.scope):
            if value.parameter is not None and _bare(value.parameter.function) in self.names:
                self._read(node, name, form, default, value.parameter)

    def _read(
        self, node: ast.AST, name: ast.expr | None, form: str, default: ast.expr | None, mapping: Parameter | None
    ) -> None:
        if self.names and mapping is None:
            return
        if default is None and isinstance(node, ast.expr):
            default = self.fallback.get(node)
        line, column, statement = self._place(node)
        values = self._described(name) if name is not None else (UNKNOWN,)
        fallback = None if default is None or _is_none(default) else self._described(default)[0]
        for value in values:
            self.reads.append(Read(line, column, form, value, statement, fallback, self.entry, mapping))

    def _call(self, node: ast.Call, callees: Values, target: str) -> None:
        references = [value.reference for value in callees if value.reference]
        if _is_super(node.func):
            references = self.base_references
        elif not references and isinstance(node.func, ast.Attribute):
            references = ["?." + node.func.attr]
        if any(reference == "functools.partial" for reference in references) and node.args:
            self._partial(node, target)
            return
        arguments = [("", item) for item in node.args] + [(item.arg or "", item.value) for item in node.keywords]
        given = [(keyword, self._described(value)) for keyword, value in arguments]
        self._escapes(node, [value for _, values in given for value in values])
        starred = any(isinstance(item, ast.Starred) for item in node.args) or any(k.arg is None for k in node.keywords)
        passed = [value for _, values in given for value in values]
        for reference in dict.fromkeys(references):
            if self._is_wanted(reference, passed):
                self._emit_calls(node, reference, given, target, starred)

    def _is_wanted(self, callee: str, passed: list[Value]) -> bool:
        if not self.names:
            return any(value.reference in ENVIRON for value in passed) and not _is_foreign(callee)
        passed_on = any(value.parameter and _bare(value.parameter.function) in self.names for value in passed)
        return _bare(callee) in self.names or (passed_on and not _is_foreign(callee))

    def _partial(self, node: ast.Call, target: str) -> None:
        inner = ast.copy_location(ast.Call(node.args[0], node.args[1:], node.keywords), node)
        self.target = target
        if len(node.args) > 1:
            self.visit_Call(inner)

    def _emit_calls(
        self, node: ast.Call, reference: str, given: list[tuple[str, Values]], target: str, starred: bool
    ) -> None:
        """One call for each choice of its argument with the most choices."""
        line, column, statement = self._place(node)
        for number in range(max((len(values) for _, values in given), default=1)):
            arguments = tuple(Argument(key, values[min(number, len(values) - 1)]) for key, values in given)
            self.calls.append(Call(line, column, reference, arguments, statement, self.entry, target, starred))

    def _escapes(self, node: ast.Call, values: list[Value]) -> None:
        line, column, statement = self._place(node)
        for value in values:
            if value.reference in GETTERS and not self.names:
                unknown = msgspec.structs.replace(UNKNOWN, text=value.text)
                self.reads.append(Read(line, column, "escape", unknown, statement, None, self.entry))
            elif self.names and value.reference and _bare(value.reference) in self.names:
                self.calls.append(Call(line, column, value.reference, (), statement, self.entry, form="escape"))

    def _described(self, node: ast.expr) -> Values:
        text = source_text(node)
        inner = node.value if isinstance(node, ast.Starred) else node
        return tuple(msgspec.structs.replace(value, text=text) for value in evaluate(inner, self.scope))

    def _place(self, node: ast.AST) -> tuple[int, int, str]:
        line, offset = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        if line not in self.statements:
            self.statements[line] = clean(" ".join(self.source.lines[line - 1][:1000].split())[:160])
        return line, self.source.column(line, offset), self.statements[line]


def _bare(reference: str) -> str:
    return reference.rpartition(".")[2].removeprefix(":")


def _is_foreign(reference: str) -> bool:
    """A builtin or a module of the standard library: what it does with an environment is known."""
    head = reference.removeprefix(":").partition(".")[0]
    return hasattr(builtins, head) or head in sys.stdlib_module_names


def _argument(node: ast.Call, index: int, keyword: str) -> ast.expr | None:
    """The argument at a position or of a keyword; None when it is not given."""
    if 0 <= index < len(node.args):
        return node.args[index]
    return next((item.value for item in node.keywords if item.arg == keyword), None)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_super(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and function.attr == "__init__"
        and isinstance(function.value, ast.Call)
        and isinstance(function.value.func, ast.Name)
        and function.value.func.id == "super"
    )
