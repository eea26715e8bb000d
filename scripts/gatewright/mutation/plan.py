"""All mutants of one Python module: walks its tree and turns operators' replacements into edits of its text."""

import ast
from collections.abc import Iterator

from gatewright.mutation.mutant import Mutant, numbered
from gatewright.mutation.operators import EXPRESSIONS, Replacement, is_strict_zip, mark_regexes, negated, statement
from gatewright.mutation.syntax import (
    bound_twice,
    does_nothing,
    header,
    is_guard,
    needs_brackets,
    table_name,
    unpacks,
)

# Left alone: what only a type checker reads, and options of a class that only guard against misuse.
_TYPE_CALLS = frozenset({"TypeVar", "NewType", "ParamSpec", "cast"})
_TYPE_NAMES = frozenset(
    {"Literal", "Callable", "Union", "Optional", "Annotated", "tuple", "list", "dict", "type", "set"}
)
_GUARDS = frozenset({"frozen", "kw_only", "slots", "gc", "weakref"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*_FUNCTIONS, ast.ClassDef)


def plan_module(path: str, source: bytes) -> list[Mutant]:
    """Every mutant of the module at `path`, in the order of its text. Raises SyntaxError where it does not parse."""
    return numbered(list(_Planner(path, source).module()))


class _Planner:
    def __init__(self, path: str, source: bytes) -> None:
        self.path, self.source = path, source
        self.tree = ast.parse(source)
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        mark_regexes(self.tree, source, self.offset)
        # Where the walk is: the names of the scopes, the statement's lines, whether importing executes it.
        self.scope: list[str] = []
        self.lines = (0, 0)
        self.at_import = True
        self.joined: ast.JoinedStr | None = None

    def offset(self, node: "ast.expr | ast.stmt") -> int:
        return self.starts[node.lineno - 1] + node.col_offset

    def end(self, node: "ast.expr | ast.stmt") -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.starts[node.end_lineno - 1] + node.end_col_offset

    def module(self) -> Iterator[Mutant]:
        yield from self.body(self.tree.body, frozenset())

    def body(self, statements: list[ast.stmt], assigned: frozenset[str]) -> Iterator[Mutant]:
        for number, node in enumerate(statements):
            if not number and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                continue
            yield from self.statement(node, assigned)

    def statement(self, node: ast.stmt, assigned: frozenset[str]) -> Iterator[Mutant]:
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Assert | ast.Pass | ast.Global | ast.Nonlocal):
            return
        if isinstance(node, ast.If) and is_guard(node.test):
            return
        if isinstance(node, _SCOPES):
            yield from self.definition(node)
            return
        outer = self.scope, self.lines
        self.lines = header(node)
        target = table_name(node) if self.at_import and not isinstance(node, ast.If | ast.For | ast.While) else ""
        if target:
            self.scope = [*self.scope, target]
        if not self.at_import or isinstance(node, ast.Expr | ast.AugAssign):
            for operator, replacement in statement(node, assigned):
                yield self.edit(operator, node, replacement)
        if isinstance(node, ast.If | ast.While):
            for operator, replacement in negated(node.test):
                yield self.edit(operator, node.test, replacement)
        yield from self.children(node, assigned)
        self.scope, self.lines = outer

    def children(self, node: ast.stmt, assigned: frozenset[str]) -> Iterator[Mutant]:
        """Expressions and blocks of a statement; targets and annotations are left alone."""
        for name, value in ast.iter_fields(node):
            if name in ("target", "targets", "annotation", "type_comment", "pattern"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.stmt):
                    yield from self.statement(child, assigned)
                elif isinstance(child, ast.expr):
                    if not self.is_type(child, node) and not unpacks(node, child):
                        yield from self.expression(child)
                elif isinstance(child, ast.ExceptHandler):
                    if isinstance(child.type, ast.Tuple):
                        yield from self.expression(child.type)
                    yield from self.body(child.body, assigned)
                elif isinstance(child, ast.match_case):
                    if child.guard is not None:
                        yield from self.expression(child.guard)
                    yield from self.body(child.body, assigned)
                elif isinstance(child, ast.withitem):
                    yield from self.expression(child.context_expr)

    def is_type(self, value: ast.expr, node: ast.stmt) -> bool:
        """Whether a module's assignment only names a type."""
        if not self.at_import or not isinstance(node, ast.Assign | ast.AnnAssign):
            return False
        while isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr):
            value = value.left
        return isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name) and value.value.id in _TYPE_NAMES

    def definition(self, node: "ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef") -> Iterator[Mutant]:
        outer = self.scope, self.lines, self.at_import
        self.scope = [*self.scope, node.name]
        self.lines = header(node)
        for decorator in node.decorator_list:
            at = self.source.rindex(b"@", 0, self.offset(decorator))
            yield self.edit("decorator", decorator, "", start=at, source=f"@{ast.unparse(decorator)}")
            yield from self.expression(decorator)
        if isinstance(node, ast.ClassDef):
            for keyword in node.keywords:
                if keyword.arg not in _GUARDS:
                    yield from self.expression(keyword.value)
            yield from self.body(node.body, frozenset())
        else:
            for default in [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]:
                yield from self.expression(default)
            self.at_import = False
            yield from self.early_return(node)
            yield from self.body(node.body, bound_twice(node))
        self.scope, self.lines, self.at_import = outer

    def early_return(self, node: "ast.FunctionDef | ast.AsyncFunctionDef") -> Iterator[Mutant]:
        documented = ast.get_docstring(node, clean=False) is not None
        rest = node.body[1:] if documented else node.body
        if not rest or isinstance(rest[0], ast.Return | ast.Raise) or all(does_nothing(node) for node in rest):
            return
        first = rest[0]
        decorators = getattr(first, "decorator_list", [])
        line = min([first.lineno, *(d.lineno for d in decorators)])
        start = self.starts[line - 1] + (first.col_offset if not decorators else 0)
        indent = " " * first.col_offset
        self.lines = (node.body[0].lineno, node.end_lineno or node.lineno)
        text = f"{indent if decorators else ''}return None\n{'' if decorators else indent}"
        if first.lineno == node.lineno:
            text = "return None; "
        yield self.edit("return", first, text, start=start, end=start, source="body", becomes="return None")

    def expression(self, node: ast.expr) -> Iterator[Mutant]:
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in _TYPE_CALLS:
            return
        operator = EXPRESSIONS.get(type(node))
        if operator is not None and not (isinstance(node, ast.Tuple) and not isinstance(node.ctx, ast.Load)):
            for name, replacement in operator(node):
                target = node.test if isinstance(node, ast.IfExp) else node
                yield from self.within(name, target, replacement)
        outer = self.joined
        if isinstance(node, ast.JoinedStr) and self.joined is None:
            self.joined = node
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.comprehension):
                yield from self.expression(child.iter)
                for test in child.ifs:
                    yield from self.within("filter", test, ast.Constant(True))
                    yield from self.expression(test)
            elif isinstance(child, ast.keyword | ast.FormattedValue):
                if not (isinstance(node, ast.Call) and isinstance(child, ast.keyword) and is_strict_zip(node, child)):
                    yield from self.expression(child.value)
            elif isinstance(child, ast.arguments):
                for default in child.defaults:
                    yield from self.expression(default)
            elif isinstance(child, ast.expr) and not (isinstance(node, ast.JoinedStr)):
                yield from self.expression(child)
        self.joined = outer

    def within(self, operator: str, node: ast.expr, replacement: Replacement) -> Iterator[Mutant]:
        """An edit of an expression; inside an f-string, whose parts have no exact place, of the whole string."""
        if self.joined is None or self.joined is node:
            yield self.edit(operator, node, replacement)
            return
        import copy

        whole = copy.deepcopy(self.joined, {id(node): replacement})
        try:
            text = ast.unparse(whole)
        except ValueError:
            # The syntax of this Python has no spelling for it.
            return
        yield self.edit(
            operator,
            self.joined,
            text,
            source=ast.unparse(node),
            becomes=ast.unparse(replacement),  # type: ignore[arg-type]
        )

    def edit(
        self,
        operator: str,
        node: "ast.expr | ast.stmt",
        replacement: Replacement,
        *,
        start: int = -1,
        end: int = -1,
        source: str = "",
        becomes: str = "",
    ) -> Mutant:
        text = replacement if isinstance(replacement, str) else ast.unparse(replacement)
        spelled = f"({text})" if needs_brackets(node, replacement) else text
        start = self.offset(node) if start < 0 else start
        end = self.end(node) if end < 0 else end
        return Mutant(
            path=self.path,
            function=".".join(self.scope) or "<module>",
            operator=operator,
            source=source or ast.unparse(node),
            becomes=becomes or text,
            start=start,
            end=end,
            before=self.source[start:end],
            after=spelled.encode("utf-8", "surrogatepass"),
            line=self.source.count(b"\n", 0, start) + 1,
            first=self.lines[0],
            last=self.lines[1],
            at_import=self.at_import,
        )
