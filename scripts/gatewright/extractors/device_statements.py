"""The exact stage of the Python extractor: device sites of a syntax tree.

Statements are walked in full, expressions only where a hit of the byte stage lies in them.
"""

import ast
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

import msgspec

from gatewright.extractors.device_expressions import ExpressionVisitor
from gatewright.extractors.device_lexicon import lexicon
from gatewright.extractors.device_marks import is_positive, is_skip_mark, skips
from gatewright.extractors.device_site import Site, Vocabulary
from gatewright.readers.python import Scope, Source, arguments_of, dotted
from gatewright.readers.python_lexer import line_numbers

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Definition = _Function | ast.ClassDef


def sites(
    source: Source, vocabulary: Vocabulary, hit_lines: list[int] | None, is_part: bool = False
) -> list[Site] | None:
    """All sites of a parsed file, in order. `hit_lines` None: look everywhere.

    `is_part`: the tree lacks what holds no hit. None where that may hold a site all the same, under a
    name that an alias or a test mark gives it.
    """
    visitor = _Visitor(source, vocabulary, hit_lines)
    if visitor.run() and is_part:
        return None
    return sorted(visitor.expressions.sites, key=lambda site: (site.line, site.column, site.kind, site.token))


class _Body(msgspec.Struct):
    """One module, class or function body still to be visited; `name` is qualified."""

    nodes: Sequence[ast.stmt]
    scope: Scope
    at_import: bool
    name: str


class _Visitor:
    def __init__(self, source: Source, vocabulary: Vocabulary, hit_lines: list[int] | None) -> None:
        assert source.tree is not None
        self.source, self.words, self.lines = source, lexicon(vocabulary), hit_lines
        self.expressions = ExpressionVisitor(source, self.words)
        self.body = _Body(source.tree.body, Scope(), True, "")
        self.bodies = [self.body]
        # `from __future__ import annotations` keeps them from being evaluated.
        self.eager_annotations = True
        # Skip marks that the module names for later use, each with its bucket.
        self.marks: dict[str, str] = {}
        self.lines_added = False
        self.has_walrus = ":=" in source.text

    def run(self) -> bool:
        """Visit everything; says whether lines without a hit had to be visited too."""
        while self.bodies:
            self.body = self.bodies.pop()
            self.expressions.scope, self.expressions.body = self.body.scope, self.body.name
            statements = list(_statements(self.body.nodes, self.body.at_import))
            self._bind([node for node, _ in statements])
            for node, at_import in statements:
                if self._hit(node):
                    self._statement(node, at_import)
        return self.lines_added

    def _bind(self, nodes: list[ast.stmt]) -> None:
        scope = self.body.scope
        marks: list[str] = []
        for node in nodes:
            if self.has_walrus and not isinstance(node, _Definition) and self._hit(node):
                self._bind_named(node)
            if isinstance(node, ast.Import | ast.ImportFrom):
                scope.bind_import(node)
                if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                    self.eager_annotations &= all(alias.name != "annotations" for alias in node.names)
            elif isinstance(node, ast.Assign):
                self._bind_assignment(node.targets, node.value)
                if not self.body.name and is_skip_mark(node.value) and self._hit(node):
                    marks += [target.id for target in node.targets if isinstance(target, ast.Name)]
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                self._bind_assignment([node.target], node.value)
            elif isinstance(node, ast.For | ast.AsyncFor):
                scope.bind_target(node.target)
            elif isinstance(node, ast.With | ast.AsyncWith):
                for item in node.items:
                    if item.optional_vars is not None:
                        scope.bind_target(item.optional_vars)
        hidden = [name for name, target in scope.aliases.items() if self._hides_word(name, target)]
        self._add_lines([*hidden, *marks])

    def _bind_named(self, statement: ast.stmt) -> None:
        for part in ast.iter_child_nodes(statement):
            for node in ast.walk(part) if isinstance(part, ast.expr) else ():
                if isinstance(node, ast.NamedExpr):
                    self._bind_assignment([node.target], node.value)

    def _bind_assignment(self, targets: Sequence[ast.expr], value: ast.expr) -> None:
        """`C = torch.cuda` makes an alias of a chain that a word may begin; anything else hides one."""
        for target in targets:
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                for part, given in zip(target.elts, value.elts, strict=True):
                    self._bind_assignment([part], given)
                return
        scope = self.body.scope
        chain = scope.resolve_chain(dotted(value) or "")
        aliased = chain.partition(".")[0] in self.words.roots or self.words.chain(chain) is not None
        for target in targets:
            if aliased and isinstance(target, ast.Name) and target.id not in self.words.roots:
                scope.aliases.setdefault(target.id, chain)
            else:
                scope.bind_target(target)

    def _hides_word(self, name: str, target: str) -> bool:
        """Whether a name stands for a device word without spelling the part of it that is looked for."""
        last = target.rpartition(".")[2]
        if self.words.predicates.bucket(last) is not None:
            return name != last
        return name not in self.words.last_names and self.words.chain(target) is not None

    def _add_lines(self, names: Sequence[str]) -> None:
        """Look also where these names are used: the device word that they stand for is not written there."""
        if self.lines is None or not names:
            return
        pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b".encode())
        data = self.source.text.encode("utf-8", "surrogatepass")
        found = {*self.lines, *line_numbers(data, [use.start() for use in pattern.finditer(data)])}
        self.lines_added |= len(found) > len(self.lines)
        self.lines = sorted(found)

    def _hit(self, node: ast.AST) -> bool:
        if self.lines is None:
            return True
        first, last = node.lineno, node.end_lineno  # type: ignore[attr-defined]
        if isinstance(node, _Definition) and node.decorator_list:
            first = node.decorator_list[0].lineno
        at = bisect_left(self.lines, first)
        return at < len(self.lines) and self.lines[at] <= last

    def _statement(self, node: ast.stmt, at_import: bool) -> None:
        match node:
            case ast.Import() | ast.ImportFrom():
                self.expressions.start_statement(node, node)
                self.expressions.visit_import(node, at_import)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._function(node, at_import)
            case ast.ClassDef():
                name = self._definition(node, at_import)
                self._header(node, [*node.bases, *node.keywords], at_import)
                self.bodies.append(_Body(node.body, Scope(parent=self.body.scope, is_class=True), at_import, name))
            case ast.If():
                before = len(self.expressions.sites)
                self._header(node, [node.test], at_import)
                if skips(node.body) and not is_positive(node.test):
                    self._device_test(node, self.body.name, before)
            case ast.While():
                self._header(node, [node.test], at_import)
            case ast.For() | ast.AsyncFor():
                self._header(node, [node.target, node.iter], at_import)
            case ast.With() | ast.AsyncWith():
                parts = [part for item in node.items for part in (item.context_expr, item.optional_vars)]
                self._header(node, [part for part in parts if part is not None], at_import)
            case ast.Match():
                self._header(node, [node.subject], at_import)
                for case in node.cases:
                    guard = [] if case.guard is None else [case.guard]
                    self._header(case.pattern, [case.pattern, *guard], at_import)
            case ast.Expr(value=ast.Constant(value=str())):
                pass
            case _ if hasattr(node, "handlers"):
                for handler in node.handlers:
                    if handler.type is not None:
                        self._header(handler, [handler.type], at_import)
                    if handler.name and self._hit(handler):
                        self.expressions.identifier(handler, handler.name)
            case _:
                self._simple(node, at_import)

    def _simple(self, node: ast.stmt, at_import: bool) -> None:
        self.expressions.start_statement(node, node)
        before = len(self.expressions.sites)
        if isinstance(node, ast.AnnAssign):
            self._annotations([node.annotation], at_import)
            for part in (node.target, node.value):
                if part is not None:
                    self.expressions.visit(part, at_import)
            return
        self.expressions.visit(node, at_import)
        if isinstance(node, ast.Assign) and is_skip_mark(node.value) and len(self.expressions.sites) > before:
            bucket = self.expressions.sites[before].bucket
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if "pytestmark" in names:
                self._device_test(node, self.body.name, before)
            elif not self.body.name:
                self.marks |= dict.fromkeys(names, bucket)

    def _function(self, node: _Function, at_import: bool) -> None:
        name = self._definition(node, at_import)
        defaults = [*node.args.defaults, *(default for default in node.args.kw_defaults if default is not None)]
        self._header(node, defaults, at_import)
        arguments = arguments_of(node.args)
        annotations = [arg.annotation for arg in arguments if arg.annotation is not None]
        if node.returns is not None:
            annotations.append(node.returns)
        self._annotations(annotations, at_import)
        scope = Scope(parent=self.body.scope)
        for arg in arguments:
            self.expressions.identifier(arg, arg.arg)
            scope.bound.add(arg.arg)
        self.bodies.append(_Body(node.body, scope, False, name))

    def _definition(self, node: _Definition, at_import: bool) -> str:
        """The decorators and the name of a function or class; returns the qualified name."""
        qualified = f"{self.body.name}.{node.name}" if self.body.name else node.name
        for decorator in filter(self._hit, node.decorator_list):
            before = len(self.expressions.sites)
            self.expressions.start_statement(decorator, decorator)
            self.expressions.visit(decorator, at_import)
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            mark = (dotted(called) or "").rpartition(".")[2]
            bucket = self.words.marks.bucket(mark) or self.marks.get(mark)
            if bucket:
                self.expressions.add(decorator, "device_test", bucket, qualified)
            elif is_skip_mark(decorator):
                self._device_test(decorator, qualified, before)
        self.expressions.statement = f"{'class' if isinstance(node, ast.ClassDef) else 'def'} {node.name}"
        self.expressions.identifier(node, node.name)
        return qualified

    def _header(self, node: ast.AST, parts: Sequence[ast.AST], at_import: bool) -> None:
        """The expressions of a compound statement; the statement is its source up to the last of them."""
        hits = [part for part in parts if self._hit(part)]
        if hits and not isinstance(node, _Definition):
            self.expressions.start_statement(node, parts[-1])
        for part in hits:
            self.expressions.visit(part, at_import)

    def _annotations(self, annotations: Sequence[ast.expr], at_import: bool) -> None:
        self.expressions.in_annotation = True
        for annotation in filter(self._hit, annotations):
            self.expressions.visit(annotation, at_import and self.eager_annotations)
        self.expressions.in_annotation = False

    def _device_test(self, node: ast.AST, name: str, before: int) -> None:
        if len(self.expressions.sites) > before:
            bucket = self.expressions.sites[before].bucket
            self.expressions.add(node, "device_test", bucket, name or "module")


def _statements(nodes: Sequence[ast.stmt], at_import: bool) -> Iterator[tuple[ast.stmt, bool]]:
    """The statements of one scope in order, blocks opened, each with whether it runs at import."""
    stack = [(node, at_import) for node in reversed(nodes)]
    while stack:
        node, runs = stack.pop()
        yield node, runs
        if isinstance(node, _Definition):
            continue
        body = getattr(node, "body", ())
        in_body = runs and not (isinstance(node, ast.If) and _never_at_import(node.test))
        inner = [(child, in_body) for child in body]
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            inner += [(child, runs) for child in part.body]
        inner += [(child, runs) for field in ("orelse", "finalbody") for child in getattr(node, field, ())]
        stack += reversed(inner)


def _never_at_import(test: ast.expr) -> bool:
    """`if TYPE_CHECKING:` and `if __name__ == "__main__":`."""
    if isinstance(test, ast.Compare):
        sides = [test.left, *test.comparators]
        return isinstance(test.ops[0], ast.Eq) and any(dotted(side) == "__name__" for side in sides)
    return (dotted(test) or "").rpartition(".")[2] == "TYPE_CHECKING"
