"""What a Python expression stands for, as far as one file tells: a text, a symbol, a parameter.

Only what names of environment variables are made of is followed: constants, imports, aliases,
string building, loops over literal collections, fields that a constructor fills. Whatever else
becomes the pattern "*", which the judge reports rather than skips.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from gatewright.extractors.env_read import Parameter, Value
from gatewright.readers.python import imported_modules

ENVIRON = frozenset({"os.environ", "os.environb"})
UNKNOWN = Value("", pattern="*")
# Longer chains of names, calls and concatenations than this are not followed.
MAX_DEPTH = 24
MAX_CHOICES = 256
# Values of `Parameter.index` that are no position.
ASSIGNED_NAME = -1
KEYWORD_ONLY = -2

Values = tuple[Value, ...]
Function = ast.FunctionDef | ast.AsyncFunctionDef
Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


class File:
    """What the scopes of one file share.

    `stars` are the modules of wildcard imports, `classes` the bodies of classes, and `fields` which
    constructor parameter fills an attribute of a class (class -> attribute -> parameter).
    """

    def __init__(self) -> None:
        self.stars: list[str] = []
        self.classes: dict[str, Scope] = {}
        self.fields: dict[str, dict[str, Parameter]] = {}


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


def bind_parameters(node: Function | ast.Lambda, scope: Scope, owner: str) -> None:
    """Bind a function's parameters. `owner` is the class that a method belongs to, else empty."""
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    if owner and positional and not _is_static(node):
        scope.bind(positional.pop(0).arg, (Value("", reference=":" + owner),))
        defaults.pop(0)
    for index, (argument, default) in enumerate(zip(positional, defaults, strict=True)):
        _bind_parameter(argument, default, index, scope)
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        _bind_parameter(argument, default, KEYWORD_ONLY, scope)
    for spread in (arguments.vararg, arguments.kwarg):
        if spread is not None:
            scope.bind(spread.arg, (UNKNOWN,))


def _bind_parameter(argument: ast.arg, default: ast.expr | None, index: int, scope: Scope) -> None:
    outer = scope.parent
    assert outer is not None
    values = evaluate(default, outer) if default is not None else ()
    if any(value.reference in ENVIRON for value in values):
        scope.bind(argument.arg, values)
        return
    annotated = evaluate(argument.annotation, outer)[0].reference if argument.annotation is not None else ""
    if annotated[1:] in scope.file.fields and annotated.startswith(":"):
        scope.bind(argument.arg, (Value("", reference=annotated),))
        return
    # A constructor is called by the name of its class.
    function = scope.qualname.removesuffix(".__init__")
    scope.bind(argument.arg, (Value("", parameter=parameter(function, index, argument.arg, default, values)),))


def parameter(function: str, index: int, keyword: str, default: ast.expr | None, values: Values) -> Parameter:
    literal = values[0].literal if len(values) == 1 else None
    return Parameter(function, index, keyword, source_text(default) if default is not None else None, literal)


def _is_static(node: Function | ast.Lambda) -> bool:
    return isinstance(node, ast.Lambda) or any(
        isinstance(decorator, ast.Name) and decorator.id == "staticmethod" for decorator in node.decorator_list
    )


def class_fields(node: ast.ClassDef, qualname: str) -> dict[str, Parameter]:
    """Attributes that a constructor's parameter, or the name of the assigned attribute, fills."""
    fields: dict[str, Parameter] = {}
    methods = {item.name: item for item in node.body if isinstance(item, Function)}
    if "__init__" not in methods:
        declared = [item for item in node.body if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)]
        for index, item in enumerate(declared):
            assert isinstance(item.target, ast.Name)
            fields[item.target.id] = Parameter(qualname, index, item.target.id)
    for name, method in methods.items():
        if name not in ("__init__", "__set_name__"):
            continue
        places = _constructor_parameters(method, qualname)
        for attribute, source in _self_assignments(method):
            if source not in places:
                continue
            if name == "__init__":
                fields[attribute] = places[source]
            elif places[source].index == 1:
                fields[attribute] = Parameter(qualname, ASSIGNED_NAME, "")
    return fields


def _constructor_parameters(method: Function, qualname: str) -> dict[str, Parameter]:
    """The parameters of a method, self left out, with literal defaults."""
    positional = [*method.args.posonlyargs, *method.args.args]
    defaults = [None] * (len(positional) - len(method.args.defaults)) + list(method.args.defaults)
    places = [(index - 1, *pair) for index, pair in enumerate(zip(positional, defaults, strict=True))][1:]
    places += [(KEYWORD_ONLY, *pair) for pair in zip(method.args.kwonlyargs, method.args.kw_defaults, strict=True)]
    empty = Scope("", None, File())
    return {
        argument.arg: parameter(qualname, index, argument.arg, default, evaluate(default, empty) if default else ())
        for index, argument, default in places
    }


def _self_assignments(method: Function) -> Iterator[tuple[str, str]]:
    for statement in statements(method.body):
        if isinstance(statement, ast.Assign):
            targets, value = statement.targets, statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets, value = [statement.target], statement.value
        else:
            continue
        if isinstance(value, ast.Name):
            for target in targets:
                if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                    yield target.attr, value.id


def evaluate(node: ast.expr, scope: Scope, depth: int = 0) -> Values:
    """All that `node` may stand for; never empty. `text` is left empty, see `described`."""
    if depth > MAX_DEPTH:
        return (UNKNOWN,)
    depth += 1
    match node:
        case ast.Constant():
            return (_constant(node.value),)
        case ast.Name():
            return _name(node.id, scope, depth)
        case ast.Attribute():
            return _limited(_attribute(base, node.attr, scope, depth) for base in evaluate(node.value, scope, depth))
        case ast.JoinedStr():
            return (_joined([_piece(part, scope, depth) for part in node.values]),)
        case ast.BinOp(op=ast.Add()):
            sides = (evaluate(node.left, scope, depth), evaluate(node.right, scope, depth))
            return _limited((_joined([left, right]),) for left in sides[0] for right in sides[1])
        case ast.BinOp(op=ast.Mod(), left=ast.Constant(value=str() as template)):
            return (Value("", pattern=_percent_pattern(template)),)
        case ast.BinOp(op=ast.BitOr()):
            return tuple(v for v in evaluate(node.left, scope, depth) if v.reference in ENVIRON) or (UNKNOWN,)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return (Value("", literal=str(-number)),)
        case ast.IfExp():
            return _limited((evaluate(node.body, scope, depth), evaluate(node.orelse, scope, depth)))
        case ast.BoolOp(op=ast.Or()):
            return _limited(evaluate(value, scope, depth) for value in node.values)
        case ast.NamedExpr():
            return evaluate(node.value, scope, depth)
        case ast.Dict():
            spread = [v for k, v in zip(node.keys, node.values, strict=True) if k is None]
            return _limited(evaluate(value, scope, depth) for value in spread) if spread else (UNKNOWN,)
        case ast.Call():
            return _call(node, scope, depth)
    return (UNKNOWN,)


def _limited(groups: Iterable[Values]) -> Values:
    values = tuple(dict.fromkeys(value for group in groups for value in group))
    return values if len(values) <= MAX_CHOICES else (UNKNOWN,)


def _constant(value: object) -> Value:
    if isinstance(value, bytes):
        return Value("", literal=clean(value.decode("utf-8", "replace")))
    if isinstance(value, str | int | float):
        return Value("", literal=clean(str(value)))
    return UNKNOWN


def clean(text: str) -> str:
    """Text that can be encoded: lone surrogates of an escape become question marks."""
    return text.encode("utf-8", "replace").decode()


def _name(name: str, scope: Scope, depth: int) -> Values:
    home = scope.find(name)
    if home is None:
        return (Value("", reference="os." + name if "os" in scope.file.stars else ":" + name),)
    if name not in home.cache:
        home.cache[name] = (UNKNOWN,)
        home.cache[name] = _bound(home.bindings[name], home, depth)
    return home.cache[name]


def _bound(sources: Sequence[ast.expr | Values], scope: Scope, depth: int) -> Values:
    values = _limited(s if isinstance(s, tuple) else evaluate(s, scope, depth) for s in sources)
    if len(sources) == 1 or len(values) == 1 or all(value.reference for value in values):
        return values
    return (*(value for value in values if value.reference in ENVIRON), UNKNOWN)


def _attribute(base: Value, attribute: str, scope: Scope, depth: int) -> Values:
    if not base.reference:
        return (UNKNOWN,)
    if base.reference.startswith(":"):
        owner = base.reference[1:]
        field = scope.file.fields.get(owner, {}).get(attribute)
        if field is not None:
            return (Value("", parameter=field),)
        constant = _class_constant(owner, attribute, scope, depth)
        if constant is not None:
            return constant
    return (Value("", reference=f"{base.reference}.{attribute}"),)


def _class_constant(owner: str, attribute: str, scope: Scope, depth: int) -> Values | None:
    body = scope.file.classes.get(owner)
    if body is None or attribute not in body.bindings:
        return None
    values = _name(attribute, body, depth)
    return values if all(value.literal is not None for value in values) else None


def _piece(part: ast.expr, scope: Scope, depth: int) -> Value:
    if isinstance(part, ast.FormattedValue):
        values = evaluate(part.value, scope, depth)
        plain = part.format_spec is None and part.conversion in (-1, ord("s"))
        return values[0] if len(values) == 1 and plain else UNKNOWN
    return evaluate(part, scope, depth)[0]


def _joined(parts: list[Value]) -> Value:
    """One text out of pieces; a single parameter among literals stays known, at the "*"."""
    if all(part.literal is not None for part in parts):
        return Value("", literal="".join(part.literal or "" for part in parts))
    open_parts = [part for part in parts if part.literal is None]
    pattern = "".join(part.literal if part.literal is not None else part.pattern or "*" for part in parts)
    while "**" in pattern:
        pattern = pattern.replace("**", "*")
    holder = open_parts[0].parameter if len(open_parts) == 1 else None
    return Value("", parameter=holder, pattern=pattern)


def _percent_pattern(template: str) -> str:
    return clean(re.sub(r"%(?:\([^)]*\))?[-#0-9+ .]*[a-zA-Z]", "*", template).replace("%%", "%"))


def _call(node: ast.Call, scope: Scope, depth: int) -> Values:
    function = node.func
    if isinstance(function, ast.Attribute) and function.attr == "copy":
        return evaluate(function.value, scope, depth)
    if isinstance(function, ast.Attribute) and function.attr == "format":
        return tuple(
            Value("", pattern=clean(_format_pattern(v.literal))) if v.literal is not None else UNKNOWN
            for v in evaluate(function.value, scope, depth)
        )
    if isinstance(function, ast.Name) and function.id in ("dict", "str") and len(node.args) >= 1:
        return evaluate(node.args[0], scope, depth)
    # The instance of a class is looked up like the class itself; results of functions match nothing.
    return tuple(Value("", reference=v.reference) if v.reference else UNKNOWN for v in evaluate(function, scope, depth))


def _format_pattern(template: str) -> str:
    return re.sub(r"\{[^{}]*\}", "*", template)


def elements(node: ast.expr, scope: Scope, depth: int = 0) -> Values:
    """What iterating over `node` gives: the items of a literal collection, the keys of a dict."""
    if depth > MAX_DEPTH:
        return (UNKNOWN,)
    depth += 1
    match node:
        case ast.Tuple() | ast.List() | ast.Set():
            return _limited(_element(item, scope, depth) for item in node.elts) or (UNKNOWN,)
        case ast.Dict():
            keys = [key for key in node.keys if key is not None]
            return _limited(evaluate(key, scope, depth) for key in keys) or (UNKNOWN,)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
            return evaluate(node.elt, comprehension_scope(node, scope, depth), depth)
        case ast.DictComp():
            return evaluate(node.key, comprehension_scope(node, scope, depth), depth)
        case ast.Call(func=ast.Attribute(value=inner, attr="values")):
            return _dict_values(inner, scope, depth)
        case ast.Call(func=ast.Attribute(value=inner, attr="keys")):
            return elements(inner, scope, depth)
        case ast.Call(
            func=ast.Name(id="sorted" | "tuple" | "list" | "set" | "frozenset" | "reversed"), args=[inner, *_]
        ):
            return elements(inner, scope, depth)
        case ast.Name():
            source = single_source(node.id, scope)
            return elements(source[0], source[1], depth) if source else (UNKNOWN,)
    return (UNKNOWN,)


def single_source(name: str, scope: Scope) -> tuple[ast.expr, Scope] | None:
    """The expression that a name is bound to for good, with the scope to read it in."""
    home = scope.find(name)
    sources = home.bindings[name] if home else []
    if home is None or len(sources) != 1 or isinstance(sources[0], tuple):
        return None
    return sources[0], home


def _element(item: ast.expr, scope: Scope, depth: int) -> Values:
    return elements(item.value, scope, depth) if isinstance(item, ast.Starred) else evaluate(item, scope, depth)


def _dict_values(node: ast.expr, scope: Scope, depth: int) -> Values:
    if isinstance(node, ast.Name) and (source := single_source(node.id, scope)):
        node, scope = source
    if isinstance(node, ast.Dict):
        return _limited(evaluate(value, scope, depth) for value in node.values) or (UNKNOWN,)
    if isinstance(node, ast.DictComp):
        return evaluate(node.value, comprehension_scope(node, scope, depth), depth)
    return (UNKNOWN,)


def comprehension_scope(node: Comprehension, scope: Scope, depth: int = 0) -> Scope:
    inner = scope.block()
    for generator in node.generators:
        bind_loop(generator.target, generator.iter, inner, depth)
    return inner


def bind_loop(target: ast.expr, iterated: ast.expr, scope: Scope, depth: int = 0) -> None:
    """Bind a loop variable to what it runs over; `for key, value in x.items()` binds both."""
    if isinstance(target, ast.Name):
        scope.bind(target.id, elements(iterated, scope, depth))
        return
    items = (
        isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Attribute) and iterated.func.attr == "items"
    )
    if items and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        assert isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Attribute)
        key, value = target.elts
        if isinstance(key, ast.Name):
            scope.bind(key.id, elements(iterated.func.value, scope, depth))
        if isinstance(value, ast.Name):
            scope.bind(value.id, _dict_values(iterated.func.value, scope, depth))
        return
    bind_target(target, None, scope)


def source_text(node: ast.expr) -> str:
    text = clean(ast.unparse(node))
    return text if len(text) <= 120 else text[:117] + "..."
