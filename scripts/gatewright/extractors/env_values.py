"""What a Python expression stands for, as far as one file tells: a text, a symbol, a parameter.

Only what names of environment variables are made of is followed: constants, imports, aliases,
string building, loops over literal collections, fields that a constructor fills. Whatever else
becomes the pattern "*", which the judge reports rather than skips.
"""

import ast
import re
from collections.abc import Iterable, Sequence

from gatewright.extractors.env_read import Value
from gatewright.extractors.env_scope import UNKNOWN, Scope, Values, bind_target

ENVIRON = frozenset({"os.environ", "os.environb"})
# Longer chains of names, calls and concatenations than this are not followed.
MAX_DEPTH = 24
MAX_CHOICES = 256

# What gives its arguments back, or a mapping that reads like them.
COPIES = frozenset(
    {":dict", ":str", "collections.ChainMap", "types.MappingProxyType", "copy.copy", "copy.deepcopy", "typing.cast"}
)

Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


def evaluate(node: ast.expr, scope: Scope, depth: int = 0) -> Values:
    """All that `node` may stand for; never empty. `text` is left empty.

    What a call of a symbol gives has the symbol's reference followed by "()".
    """
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
    reference = base.reference.removesuffix("()")
    if reference.startswith(":"):
        owner = reference[1:]
        field = scope.file.fields.get(owner, {}).get(attribute)
        if field is not None:
            return (Value("", parameter=field),)
        constant = _class_constant(owner, attribute, scope, depth)
        if constant is not None:
            return constant
    return (Value("", reference=f"{reference}.{attribute}"),)


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
    made = [value.reference for value in evaluate(function, scope, depth)]
    if COPIES.intersection(made):
        return _limited(evaluate(argument, scope, depth) for argument in node.args) or (UNKNOWN,)
    # The attributes of an instance are looked up in its class; results of functions have none.
    return tuple(Value("", reference=f"{reference}()") if reference else UNKNOWN for reference in made)


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
