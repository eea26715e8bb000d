"""Device sites of Python expressions and imports, exact against the syntax tree."""

import ast
import re

from gatewright.extractors.device_lexicon import FIELD, Lexicon
from gatewright.extractors.device_site import STATEMENT_LIMIT, Site, SiteKind, one_line
from gatewright.readers.python import Scope, Source, dotted, imported_modules

_ACCESSORS = frozenset({"getattr", "hasattr", "setattr", "delattr"})
_IMPORTERS = frozenset({"import_module", "__import__", "find_spec", "importorskip"})
_RUNNERS = frozenset({"eval", "exec", "compile"})
_DOTTED = re.compile(r"[^\W\d][\w.]*")
_NAME_IN_STRING = re.compile(r"[\w.:,/\-\0]+")
_IDENTIFIER = re.compile(r"[^\W\d]\w*")


class ExpressionVisitor:
    """Collects `sites`. The caller sets the first four attributes before it visits what is in a statement."""

    def __init__(self, source: Source, words: Lexicon) -> None:
        self.scope = Scope()
        # The qualified name of the function or class around the statement.
        self.body = ""
        self.statement = ""
        # Whether what is being visited runs when the module is imported.
        self.at_import = False
        self.sites: list[Site] = []
        self._source, self._words = source, words
        # Whether what is being visited is an annotation, whose strings are source.
        self.in_annotation = False
        # The f-string around what is being visited.
        self._field: ast.AST | None = None

    def start_statement(self, first: ast.AST, last: ast.AST) -> None:
        self.statement = one_line(self._source.segment(first, last, 2 * STATEMENT_LIMIT))

    def visit_import(self, node: ast.Import | ast.ImportFrom, at_import: bool) -> None:
        self.at_import = at_import
        for module, alias in zip(imported_modules(node), node.names, strict=True):
            bucket = self._words.module(module)
            if bucket is not None:
                self.add(alias, "import", bucket, module)
                continue
            if self._words.may_be_room(module):
                self.add(alias, "import", "", module)
            for name in {alias.name.rpartition(".")[2], alias.asname or ""}:
                self.identifier(alias, name)

    def visit(self, root: ast.AST, at_import: bool) -> None:
        """Everything below `root`."""
        stack: list[tuple[ast.AST, bool, ast.AST | None]] = [(root, at_import, None)]
        while stack:
            node, self.at_import, self._field = stack.pop()
            if isinstance(node, ast.Lambda):
                stack.append((node.body, False, self._field))
                children: list[ast.AST] = [node.args]
            else:
                children = self._node(node)
            stack += [(child, self.at_import, self._field) for child in children]
        self.at_import, self._field = False, None

    def _node(self, node: ast.AST) -> list[ast.AST]:
        """The sites of one node; returns the nodes that are still to be visited."""
        match node:
            case ast.Attribute() | ast.Name() | ast.Call() | ast.Subscript():
                return self._reference(node)
            case ast.Constant():
                if isinstance(node.value, str):
                    self._string(node, node.value)
                return []
            case ast.JoinedStr():
                self._field = self._field or node
                self._string(node, "".join(_string_value(part) or FIELD for part in node.values))
                return _fields(node)
            case ast.FormattedValue():
                return [node.value, *(_fields(node.format_spec) if isinstance(node.format_spec, ast.JoinedStr) else ())]
            case ast.BinOp(op=ast.Add()) if (text := _concatenated(node)) is not None:
                self._string(node, text)
                return []
            case (
                ast.MatchAs(name=str() as name)
                | ast.MatchStar(name=str() as name)
                | ast.MatchMapping(rest=str() as name)
            ):
                self.identifier(node, name)
            case ast.MatchClass():
                for name in node.kwd_attrs:
                    self.identifier(node, name)
            case ast.keyword():
                self.identifier(node, node.arg or "")
            case ast.arg():
                self.identifier(node, node.arg)
                return []
        return list(ast.iter_child_nodes(node))

    def _reference(self, node: ast.Attribute | ast.Name | ast.Call | ast.Subscript) -> list[ast.AST]:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            self.identifier(node, node.id)
            return []
        names, dynamic = self._chain(node)
        found = self._words.chain(".".join(names)) if names else None
        if found is not None:
            self.add(node, "dynamic" if dynamic else "attribute", *found)
            return _beside_chain(node)
        match node:
            case ast.Call():
                return self._call(node, names, dynamic)
            case ast.Subscript():
                return self._subscript(node, names, dynamic)
            case ast.Name():
                self.identifier(node, names[-1] if self._words.predicates.bucket(names[-1]) else node.id)
                return []
        below: ast.AST = node
        while isinstance(below, ast.Attribute):
            self.identifier(below, below.attr)
            below = below.value
        return [below]

    def identifier(self, node: ast.AST, name: str) -> None:
        """A predicate where the name is read, else a vendor word."""
        if isinstance(getattr(node, "ctx", None), ast.Load):
            bucket = self._words.predicates.bucket(name)
            if bucket is not None:
                self.add(node, "predicate", bucket, name)
                return
        bucket = self._words.names.bucket(name)
        if bucket is not None:
            self.add(node, "word", bucket, name)

    def _call(self, node: ast.Call, names: list[str], dynamic: bool) -> list[ast.AST]:
        arguments: list[ast.AST] = [*node.args, *node.keywords]
        if dynamic:
            bucket = self._words.predicates.bucket(names[-1]) or self._words.calls.bucket(names[-1])
            if bucket is None:
                return arguments
            self.add(node, "dynamic", bucket, names[-1])
            return [arguments[0], *arguments[2:]]
        func = node.func
        called = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
        if isinstance(func, ast.Attribute):
            bucket = self._words.calls.bucket(called)
            if bucket is not None and self._words.chain(".".join(self._chain(func)[0])) is None:
                self.add(node, "call", bucket, f".{called}()")
                return [func.value, *arguments]
        if called in _RUNNERS and node.args:
            text = _string_value(node.args[0]) or ""
            if not _NAME_IN_STRING.fullmatch(text):
                self._program(node, text)
        if called in _IMPORTERS and node.args and self._named_module(node, *node.args[:2]):
            arguments = arguments[1:]
            if called == "importorskip":
                self.add(node, "device_test", self.sites[-1].bucket, self.body or "module")
        return [func, *arguments]

    def _subscript(self, node: ast.Subscript, names: list[str], dynamic: bool) -> list[ast.AST]:
        bucket = self._words.predicates.bucket(names[-1]) if dynamic else None
        if bucket is not None:
            self.add(node, "dynamic", bucket, names[-1])
            return [node.value]
        if dotted(node.value) in ("sys.modules", "modules") and self._named_module(node, node.slice):
            return [node.value]
        return [node.value, node.slice]

    def _program(self, node: ast.AST, text: str) -> None:
        """A device that source in a string names."""
        for name in _DOTTED.findall(text):
            found = self._words.chain(name)
            if found is not None:
                self.at_import &= not self.in_annotation
                self.add(node, "dynamic", *found)
                return

    def _named_module(self, node: ast.AST, name: ast.AST, package: ast.AST | None = None) -> bool:
        """Whether a device module is imported or looked up by its name in a string, maybe relative to a package."""
        module = _string_value(name)
        if module is None:
            return False
        if module.startswith(".") and package is not None:
            module = (_string_value(package) or "") + module
        bucket = self._words.module(module)
        if bucket is not None:
            self.add(node, "dynamic", bucket, module)
        elif self._words.may_be_room(module):
            self.add(node, "import", "", module)
        return bucket is not None

    def _chain(self, node: ast.AST) -> tuple[list[str], bool]:
        """The names of a chain, outermost last, and whether a string names one of them.

        A name at the start is resolved through imports and aliases.
        """
        names: list[str] = []
        dynamic = False
        while True:
            if isinstance(node, ast.Attribute):
                names.append(node.attr)
                node = node.value
                continue
            named = _dynamic_access(node)
            if named is None:
                break
            names.append(named[1])
            node = named[0]
            dynamic = True
        if isinstance(node, ast.Name):
            names += reversed(self.scope.resolve(node.id).split("."))
        names.reverse()
        return names, dynamic

    def _string(self, node: ast.AST, text: str) -> None:
        bucket = self._words.device_string(text)
        if bucket is not None:
            self.add(node, "literal", bucket, f'"{text.replace(FIELD, "{}")}"')
            return
        if not _NAME_IN_STRING.fullmatch(text):
            if self.in_annotation:
                self._program(node, text)
            return
        found = self._words.chain(text) if "." in text else None
        if found is not None:
            # Text runs nothing by itself.
            self.at_import = False
            self.add(node, "dynamic", found[0], found[1].replace(FIELD, "{}"))
            return
        for name in _IDENTIFIER.findall(text):
            bucket = self._words.names.bucket(name)
            if bucket is not None:
                self.add(node, "word", bucket, name)

    def add(self, node: ast.AST, kind: SiteKind, bucket: str, token: str) -> None:
        place = node if self._field is None or self._is_located(node) else self._field
        line = place.lineno  # type: ignore[attr-defined]
        column = self._source.column(line, place.col_offset)  # type: ignore[attr-defined]
        self.sites.append(Site(line, column, kind, bucket, token, self.statement, self.at_import))

    def _is_located(self, node: ast.AST) -> bool:
        """Whether the position of a node in an f-string is right; before Python 3.12 it may be off."""
        while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
            node = node.func if isinstance(node, ast.Call) else node.value
        lines = self._source.lines
        if not isinstance(node, ast.Name) or node.lineno > len(lines):
            return False
        column = self._source.column(node.lineno, node.col_offset)
        return lines[node.lineno - 1].startswith(node.id, column - 1)


def _fields(node: ast.JoinedStr) -> list[ast.AST]:
    return [part for part in node.values if not isinstance(part, ast.Constant)]


def _concatenated(node: ast.expr) -> str | None:
    """The text of string literals that `+` puts together."""
    pieces: list[str] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        right = _string_value(node.right)
        if right is None:
            return None
        pieces.append(right)
        node = node.left
    left = _string_value(node)
    return None if left is None else left + "".join(reversed(pieces))


def _dynamic_access(node: ast.AST) -> tuple[ast.AST, str] | None:
    """(object, name) of `getattr(object, "name")`, `vars(object)["name"]` and `object.__dict__["name"]`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _ACCESSORS:
        name = _string_value(node.args[1]) if len(node.args) > 1 else None
        return (node.args[0], name) if name is not None else None
    if isinstance(node, ast.Subscript):
        name = _string_value(node.slice)
        holder = node.value
        if name is None:
            return None
        if isinstance(holder, ast.Attribute) and holder.attr == "__dict__":
            return holder.value, name
        if isinstance(holder, ast.Call) and dotted(holder.func) == "vars" and len(holder.args) == 1:
            return holder.args[0], name
    return None


def _beside_chain(node: ast.AST) -> list[ast.AST]:
    """What is still to be visited next to a chain that is a site: later arguments, the object at its start."""
    beside: list[ast.AST] = []
    while True:
        if isinstance(node, ast.Attribute):
            node = node.value
        elif (named := _dynamic_access(node)) is not None:
            if isinstance(node, ast.Call):
                beside += [*node.args[2:], *node.keywords]
            node = named[0]
        else:
            return beside if isinstance(node, ast.Name) else [*beside, node]


def _string_value(node: ast.AST) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
