"""Finds reads of the environment, and calls of wrappers, in the syntax tree of a Python file."""

import ast
import builtins
import re
import sys

import msgspec

from gatewright.extractors.env_read import Argument, Call, Entry, Parameter, Read, Value
from gatewright.extractors.env_scope import UNKNOWN, Values
from gatewright.extractors.env_tested import tested_expressions, tested_names
from gatewright.extractors.env_values import ENVIRON, clean, evaluate, source_text
from gatewright.extractors.env_walk import ScopeVisitor, bare
from gatewright.readers.python import Source

METHODS = frozenset({"get", "pop", "setdefault"})
GETTERS = {"os.getenv": "getenv", "os.getenvb": "getenv"} | {
    f"{mapping}.{method}": method for mapping in ENVIRON for method in (*METHODS, "__getitem__", "__contains__")
}
# Names of the parameter that a wrapper falls back to.
DEFAULTS = ("default", "default_value", "fallback")
EXPANDING = "os.path.expandvars"
VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
# Arguments that give libraries (click, pydantic) the beginning of the names they read.
PREFIXES = frozenset({"auto_envvar_prefix", "env_prefix"})
# Builtins that call what they are given; others, such as isinstance, only look at it.
CALLING = frozenset({":map", ":filter"})

Given = list[tuple[str, ast.expr, Values]]


class ReadVisitor(ScopeVisitor):
    """With `names` empty the direct reads, else what the second pass asks for; see `env_read`."""

    def __init__(self, names: frozenset[str], source: Source) -> None:
        super().__init__(names)
        self.source = source
        self.entry = ""
        self.fallback: dict[ast.expr, ast.expr] = {}
        self.tested: set[ast.expr] = set()
        self.tested_in: dict[int, frozenset[str]] = {}
        self.reads: list[Read] = []
        self.calls: list[Call] = []
        self.entries: dict[str, tuple[Entry, ast.expr]] = {}
        self.statements: dict[int, str] = {}

    def _testing(self, node: ast.AST) -> None:
        self.tested.update(tested_expressions(node))
        self.generic_visit(node)

    visit_If = visit_While = visit_IfExp = visit_Assert = visit_UnaryOp = visit_Try = _testing

    def visit_Dict(self, node: ast.Dict) -> None:
        # Calls next to lambdas make the function that reads; without one they may be values for a child process.
        lazy = any(isinstance(value, ast.Lambda) for value in node.values)
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None:
                self.visit(key)
            name = "" if key is None or self.entry else self._key(key)
            if name in PREFIXES:
                self._prefix(value, value)
            if key is not None and name and lazy and isinstance(value, ast.Lambda | ast.Call):
                self._entry(key, name, value)
            else:
                self.visit(value)

    def _key(self, node: ast.expr) -> str:
        """The text of a key of a registry, maybe held in a constant."""
        values = evaluate(node, self.scope) if isinstance(node, ast.Constant | ast.Name | ast.Attribute) else ()
        return values[0].literal or "" if len(values) == 1 else ""

    def visit_Assign(self, node: ast.Assign) -> None:
        """`REGISTRY["NAME"] = lambda: ...` is an entry like one of the dict display."""
        match node:
            case ast.Assign(targets=[ast.Subscript(slice=key)], value=ast.Lambda()) if name := self._key(key):
                self._entry(key, name, node.value)
            case ast.Assign(targets=[ast.Name(id="env_prefix")]):
                self._prefix(node.value, node.value)
            case _:
                super().visit_Assign(node)

    def _entry(self, key: ast.expr, name: str, value: ast.expr) -> None:
        self.entry = name
        before = len(self.reads) + len(self.calls)
        self.visit(value)
        if len(self.reads) + len(self.calls) > before:
            line, column, _ = self._place(key)
            self.entries.setdefault(self.entry, (Entry(self.entry, line, column), value))
        self.entry = ""

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg in PREFIXES:
            self._prefix(node.value, node.value)
        if node.arg and node.arg.isupper() and isinstance(node.value, ast.Lambda) and not self.entry:
            self._entry(node.value, node.arg, node.value)
        else:
            self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.ctx, ast.Load):
            self._mapping_read(node, node.value, node.slice, "subscript")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Subscript):
            self._mapping_read(node.target, node.target.value, node.target.slice, "subscript")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(operator, ast.In | ast.NotIn):
                match right:
                    case ast.Call(func=ast.Attribute(value=mapping, attr="keys")):
                        self._mapping_read(node, mapping, left, "in")
                    case _:
                        self._mapping_read(node, right, left, "in")
            left = right
        self._testing(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        if isinstance(node.op, ast.Or):
            self.fallback[node.values[0]] = node.values[1]
        self._testing(node)

    def visit_Call(self, node: ast.Call) -> None:
        target, self.target = self.target, ""
        callees = evaluate(node.func, self.scope)
        getter = next((GETTERS[value.reference] for value in callees if value.reference in GETTERS), "")
        if getter:
            self._note_test(node, target)
            self._read(node, argument(node, 0, "key"), getter, argument(node, 1, "default"))
        elif any(value.reference == EXPANDING for value in callees) and node.args and not self.names:
            self._expanded(node, node.args[0])
        else:
            if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS and node.args:
                self._note_test(node, target)
                self._mapping_read(node, node.func.value, node.args[0], node.func.attr, argument(node, 1, "default"))
            self._call(node, callees, target)
        self._settings(node)
        self._testing(node)

    def _expanded(self, node: ast.Call, text: ast.expr) -> None:
        line, column, statement = self._place(node)
        for value in evaluate(text, self.scope):
            for match in VARIABLE.finditer(value.literal or ""):
                name = Value(match[0], literal=match[1] or match[2])
                self.reads.append(Read(line, column, "expandvars", name, statement, None, self.entry))

    def _settings(self, node: ast.Call) -> None:
        """The variables of a command's option."""
        for keyword in node.keywords:
            if keyword.arg == "envvar" and not _is_none(keyword.value):
                names = keyword.value.elts if isinstance(keyword.value, ast.List | ast.Tuple) else [keyword.value]
                for name in names:
                    self._read(node, name, "envvar", argument(node, -1, "default"))

    def _prefix(self, node: ast.expr, prefix: ast.expr) -> None:
        known = prefix.value if isinstance(prefix, ast.Constant) else None
        if isinstance(known, str) and known and not self.names:
            line, column, statement = self._place(node)
            name = Value(source_text(prefix), pattern=clean(known) + "*")
            self.reads.append(Read(line, column, "prefix", name, statement))

    def _mapping_read(
        self, node: ast.expr, mapping: ast.expr, name: ast.expr, form: str, default: ast.expr | None = None
    ) -> None:
        values = evaluate(mapping, self.scope)
        if any(value.reference in ENVIRON for value in values):
            self._read(node, name, form, default)
            return
        for value in values:
            if value.parameter is not None and bare(value.parameter.function) in self.names:
                self._read(node, name, form, default, value.parameter)

    def _read(
        self,
        node: ast.expr,
        name: ast.expr | None,
        form: str,
        default: ast.expr | None,
        mapping: Parameter | None = None,
    ) -> None:
        if self.names and mapping is None:
            return
        default = default or self.fallback.get(node)
        line, column, statement = self._place(node)
        values = self._described(name) if name is not None else (UNKNOWN,)
        given = None if default is None or _is_none(default) else self._described(default)[0]
        tested = form == "in" or node in self.tested
        for value in values:
            shown = given or self._parameter_default(value)
            self.reads.append(Read(line, column, form, value, statement, shown, self.entry, mapping, tested))

    def _parameter_default(self, name: Value) -> Value | None:
        """In a wrapper that gives no default at the read, its parameter of that meaning."""
        for word in DEFAULTS if name.parameter is not None else ():
            for value in evaluate(ast.Name(word), self.scope):
                if value.parameter and name.parameter and value.parameter.function == name.parameter.function:
                    return msgspec.structs.replace(value, text=word)
        return None

    def _note_test(self, node: ast.Call, target: str) -> None:
        """A value that is assigned to a variable which its function tests is tested."""
        if not target:
            return
        key = id(self.body)
        if key not in self.tested_in:
            self.tested_in[key] = tested_names(self.body)
        if target in self.tested_in[key]:
            self.tested.add(node)

    def _call(self, node: ast.Call, callees: Values, target: str) -> None:
        references = [value.reference for value in callees if value.reference]
        if _is_super(node.func):
            references = self.base_references
        elif not references and isinstance(node.func, ast.Attribute):
            references = ["?." + node.func.attr]
        if "functools.partial" in references and len(node.args) > 1:
            self.target = target
            self.visit_Call(ast.copy_location(ast.Call(node.args[0], node.args[1:], node.keywords), node))
            return
        arguments = [("", item) for item in node.args] + [(item.arg or "", item.value) for item in node.keywords]
        given = [(keyword, item, evaluate(_spread(item), self.scope)) for keyword, item in arguments]
        if not all(_is_foreign(reference) for reference in references) or CALLING.intersection(references):
            self._escapes(node, given)
        for reference in dict.fromkeys(references):
            if self._is_wanted(reference, given):
                self._emit_calls(node, reference, given, target)

    def _is_wanted(self, callee: str, given: Given) -> bool:
        passed = [value for _, _, values in given for value in values]
        if not self.names:
            return any(value.reference in ENVIRON for value in passed) and not _is_foreign(callee)
        if bare(callee) in self.names:
            # Any method of that name: only what looks like a variable is told from other calls.
            return not callee.startswith("?.") or any(v.literal and v.literal.isupper() for v in passed)
        passed_on = any(value.parameter and bare(value.parameter.function) in self.names for value in passed)
        return passed_on and not _is_foreign(callee)

    def _emit_calls(self, node: ast.Call, reference: str, given: Given, target: str) -> None:
        """One call for each choice of the argument that has the most choices."""
        line, column, statement = self._place(node)
        texts = [source_text(item) for _, item, _ in given]
        spread = any(isinstance(item, ast.Starred) for item in node.args) or any(k.arg is None for k in node.keywords)
        for number in range(max((len(values) for _, _, values in given), default=1)):
            arguments = tuple(
                Argument(keyword, msgspec.structs.replace(values[min(number, len(values) - 1)], text=text))
                for (keyword, _, values), text in zip(given, texts, strict=True)
            )
            self.calls.append(Call(line, column, reference, arguments, statement, self.entry, target, spread))

    def _escapes(self, node: ast.Call, given: Given) -> None:
        """Note the functions that a call is handed and may call with any name."""
        for _, item, values in given:
            for value in values:
                line, column, statement = self._place(node)
                if value.reference in GETTERS and not self.names:
                    unknown = msgspec.structs.replace(UNKNOWN, text=source_text(item))
                    self.reads.append(Read(line, column, "escape", unknown, statement, None, self.entry))
                elif value.reference and bare(value.reference) in self.names:
                    self.calls.append(Call(line, column, value.reference, (), statement, self.entry, form="escape"))

    def _described(self, node: ast.expr) -> Values:
        text = source_text(node)
        return tuple(msgspec.structs.replace(value, text=text) for value in evaluate(_spread(node), self.scope))

    def _place(self, node: ast.expr) -> tuple[int, int, str]:
        line = node.lineno
        if line not in self.statements:
            self.statements[line] = clean(" ".join(self.source.lines[line - 1][:1000].split())[:160])
        return line, self.source.column(line, node.col_offset), self.statements[line]


def argument(node: ast.Call, index: int, keyword: str) -> ast.expr | None:
    """The argument at a position or of a keyword; None when it is not given."""
    if 0 <= index < len(node.args):
        return node.args[index]
    return next((item.value for item in node.keywords if item.arg == keyword), None)


def _spread(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Starred) else node


def _is_foreign(reference: str) -> bool:
    """A builtin or a module of the standard library: what it does with an environment is known."""
    head = reference.removeprefix(":").partition(".")[0].removesuffix("()")
    return hasattr(builtins, head) or head in sys.stdlib_module_names


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_super(function: ast.expr) -> bool:
    match function:
        case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr="__init__"):
            return True
    return False
