"""The scopes of a Python file: which expression or symbol each name is bound to."""

import ast
from collections.abc import Iterable, Iterator

from gatewright.extractors.env_read import Parameter, Value
from gatewright.readers.python import imported_modules

UNKNOWN = Value("", pattern="*")

Values = tuple[Value, ...]
Function = ast.FunctionDef | ast.AsyncFunctionDef


class File:
    """What the scopes of one file share.

    `stars` are the modules of wildcard imports, `classes` the bodies of classes, and `fields` which
    constructor parameter fills an attribute of a class (class -> attribute -> parameter). `environments` are
    the attributes that hold the environment (class, attribute), and the functions that return it ("", name).
    """

    def __init__(self) -> None:
        self.stars: list[str] = []
        self.classes: dict[str, Scope] = {}
        self.fields: dict[str, dict[str, Parameter]] = {}
        self.environments: set[tuple[str, str]] = set()


class Scope:
    """Names bound in a module, class, function, loop or comprehension, in the order of assignment."""

    def __init__(self, qualname: str, parent: "Scope | None", file: File, *, of_class: bool = False) -> None:
        self.qualname = qualname
        self.parent = parent
        self.file = file
        self.of_class = of_class
        self.bindings: dict[str, list[ast.expr | Values]] = {}
        self.lines: dict[str, int] = {}
        self.cache: dict[str, Values] = {}

    def child(self, name: str, *, of_class: bool = False) -> "Scope":
        return Scope(f"{self.qualname}.{name}" if self.qualname else name, self, self.file, of_class=of_class)

    def block(self) -> "Scope":
        """A scope for loop variables: the same function, so the same qualified name."""
        return Scope(self.qualname, self, self.file)

    def bind(self, name: str, source: ast.expr | Values, line: int = 0) -> None:
        self.bindings.setdefault(name, []).append(source)
        self.lines.setdefault(name, line)

    def find(self, name: str) -> "Scope | None":
        scope: Scope | None = self
        while scope is not None:
            if name in scope.bindings and (scope is self or not scope.of_class):
                return scope
            scope = scope.parent
        return None

    def module(self) -> "Scope":
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope


def collect(body: Iterable[ast.stmt], scope: Scope) -> None:
    """Bind what the statements of one scope assign, nested blocks included, nested scopes not."""
    for statement in statements(body):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            bind_import(statement, scope)
        elif isinstance(statement, Function | ast.ClassDef):
            own = scope.child(statement.name).qualname
            scope.bind(statement.name, (Value("", reference=":" + own),), statement.lineno)
        elif isinstance(statement, ast.Assign):
            for target_node in statement.targets:
                bind_target(target_node, statement.value, scope)
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            bind_target(statement.target, statement.value, scope)
        elif isinstance(statement, ast.AugAssign):
            bind_target(statement.target, None, scope)
        elif isinstance(statement, ast.With | ast.AsyncWith):
            for item in statement.items:
                if item.optional_vars is not None:
                    bind_target(item.optional_vars, None, scope)
        elif isinstance(statement, ast.Global):
            for name in statement.names:
                scope.module().bind(name, (UNKNOWN,))


def bind_import(statement: ast.Import | ast.ImportFrom, scope: Scope) -> None:
    for alias, target in zip(statement.names, imported_modules(statement), strict=True):
        if alias.name == "*":
            scope.file.stars.append(target)
        elif isinstance(statement, ast.ImportFrom) or alias.asname:
            scope.bind(alias.asname or alias.name, (Value("", reference=target),), statement.lineno)
        else:
            root = target.partition(".")[0]
            scope.bind(root, (Value("", reference=root),), statement.lineno)


def statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    stack = list(body)[::-1]
    while stack:
        statement = stack.pop()
        yield statement
        if isinstance(statement, Function | ast.ClassDef):
            continue
        for field in ("finalbody", "orelse", "body"):
            stack.extend(getattr(statement, field, ())[::-1])
        for block in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            stack.extend(block.body[::-1])


def bind_target(target: ast.expr, value: ast.expr | None, scope: Scope) -> None:
    if isinstance(target, ast.Name):
        if isinstance(value, ast.Lambda):
            scope.bind(target.id, (Value("", reference=":" + scope.child(target.id).qualname),), target.lineno)
        else:
            scope.bind(target.id, (UNKNOWN,) if value is None else value, target.lineno)
    elif isinstance(target, ast.Tuple | ast.List):
        parts = value.elts if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts) else None
        for index, part in enumerate(target.elts):
            bind_target(part, parts[index] if parts else None, scope)
    elif isinstance(target, ast.Starred):
        bind_target(target.value, None, scope)
