"""What a Python expression stands for, as far as one file tells: a text, a symbol, a parameter.

Only what names of environment variables are made of is followed: constants, imports, aliases,
string building, fields that a constructor fills; `env_loops` adds what loops run over. Whatever else
becomes the pattern "*", which the judge reports rather than skips.
"""

import ast
import re
from collections.abc import Iterable, Sequence

from gatewright.extractors.env_read import Value
from gatewright.extractors.env_scope import UNKNOWN, Scope, Values

ENVIRON = frozenset({"os.environ", "os.environb"})
# Longer chains of names, calls and concatenations than this are not followed.
MAX_DEPTH = 24
MAX_CHOICES = 256

# What gives its arguments back, or a mapping that reads like them.
COPIES = frozenset(
    {":dict", ":str", "collections.ChainMap", "types.MappingProxyType", "copy.copy", "copy.deepcopy", "typing.cast"}
)

# What gives the module that is named by the argument.
IMPORTERS = frozenset({":__import__", "importlib.import_module"})
PERCENT = re.compile(r"%(?:\([^)]*\))?[-#0-9+ .]*[a-zA-Z]")
FIELD = re.compile(r"\{[^{}]*\}")


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
            return named(node.id, scope, depth)
        case ast.Attribute():
            return limited(_attribute(base, node.attr, scope, depth) for base in evaluate(node.value, scope, depth))
        case ast.JoinedStr():
            return (_joined([_piece(part, scope, depth) for part in node.values]),)
        case ast.BinOp(op=ast.Add()):
            sides = (evaluate(node.left, scope, depth), evaluate(node.right, scope, depth))
            return limited((_joined([left, right]),) for left in sides[0] for right in sides[1])
        case ast.BinOp(op=ast.Mod()):
            return limited(_percent(v, node.right, scope, depth) for v in evaluate(node.left, scope, depth))
        case ast.BinOp(op=ast.BitOr()):
            return tuple(v for v in evaluate(node.left, scope, depth) if v.reference in ENVIRON) or (UNKNOWN,)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return (Value("", literal=str(-number)),)
        case ast.IfExp():
            return limited((evaluate(node.body, scope, depth), evaluate(node.orelse, scope, depth)))
        case ast.BoolOp(op=ast.Or()):
            return limited(evaluate(value, scope, depth) for value in node.values)
        case ast.NamedExpr():
            return evaluate(node.value, scope, depth)
        case ast.Dict():
            spread = [v for k, v in zip(node.keys, node.values, strict=True) if k is None]
            return limited(evaluate(value, scope, depth) for value in spread) if spread else (UNKNOWN,)
        case ast.Subscript():
            return _item(node.value, node.slice, scope, depth)
        case ast.Call():
            return _call(node, scope, depth)
    return (UNKNOWN,)


def _item(node: ast.expr, index: ast.expr, scope: Scope, depth: int) -> Values:
    """What a literal dict or tuple, maybe held in a constant, has at a literal place."""
    if isinstance(node, ast.Name) and (source := single_source(node.id, scope)):
        node, scope = source
    match node, index:
        case ast.Dict(), ast.Constant(value=place):
            pairs = zip(node.keys, node.values, strict=True)
            held = [value for key, value in pairs if isinstance(key, ast.Constant) and key.value == place]
            return evaluate(held[-1], scope, depth) if held else (UNKNOWN,)
        case ((ast.Tuple() | ast.List()), ast.Constant(value=int() as place)) if 0 <= place < len(node.elts):
            return evaluate(node.elts[place], scope, depth)
    return (UNKNOWN,)


def limited(groups: Iterable[Values]) -> Values:
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


def named(name: str, scope: Scope, depth: int) -> Values:
    home = scope.find(name)
    if home is None:
        return (Value("", reference="os." + name if "os" in scope.file.stars else ":" + name),)
    if name not in home.cache:
        home.cache[name] = (UNKNOWN,)
        home.cache[name] = _bound(home.bindings[name], home, depth)
    return home.cache[name]


def _bound(sources: Sequence[ast.expr | Values], scope: Scope, depth: int) -> Values:
    values = limited(s if isinstance(s, tuple) else evaluate(s, scope, depth) for s in sources)
    if len(sources) == 1 or len(values) == 1 or all(value.reference for value in values):
        return values
    return (*(value for value in values if value.reference in ENVIRON), UNKNOWN)


def _attribute(base: Value, attribute: str, scope: Scope, depth: int) -> Values:
    if attribute == "value" and (base.literal is not None or "." in base.reference):
        # A member of an enumeration; a text itself has no such attribute.
        return (base,)
    if not base.reference:
        return (UNKNOWN,)
    reference = base.reference.removesuffix("()")
    if reference.startswith(":"):
        owner = reference[1:]
        if (owner, attribute) in scope.file.environments:
            return (Value("", reference="os.environ"),)
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
    values = named(attribute, body, depth)
    return values if all(value.literal is not None or value.reference in ENVIRON for value in values) else None


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


def _percent(template: Value, given: ast.expr, scope: Scope, depth: int) -> Values:
    if template.literal is None:
        return (UNKNOWN,)
    items = given.elts if isinstance(given, ast.Tuple) else [given]
    return _filled(PERCENT.split(template.literal), PERCENT.findall(template.literal), ("%s",), items, scope, depth)


def _formatted(template: Value, node: ast.Call, scope: Scope, depth: int) -> Values:
    if template.literal is None:
        return (UNKNOWN,)
    return _filled(FIELD.split(template.literal), FIELD.findall(template.literal), ("{}",), node.args, scope, depth)


def _filled(
    texts: list[str], fields: list[str], plain: tuple[str, ...], items: Sequence[ast.expr], scope: Scope, depth: int
) -> Values:
    """A template's texts with the items between them: known where all fields are plain and in order."""
    known = len(items) == len(fields) and all(field in plain for field in fields)
    parts = [Value("", literal=clean(texts[0]))]
    for index, text in enumerate(texts[1:]):
        values = evaluate(items[index], scope, depth) if known else (UNKNOWN,)
        parts += [values[0] if len(values) == 1 else UNKNOWN, Value("", literal=clean(text))]
    return (_joined(parts),)


def _call(node: ast.Call, scope: Scope, depth: int) -> Values:
    function = node.func
    if isinstance(function, ast.Attribute) and function.attr == "copy":
        return evaluate(function.value, scope, depth)
    if isinstance(function, ast.Attribute) and function.attr == "format":
        return limited(_formatted(v, node, scope, depth) for v in evaluate(function.value, scope, depth))
    made = [value.reference for value in evaluate(function, scope, depth)]
    if IMPORTERS.intersection(made) and node.args:
        return tuple(
            Value("", reference=module.literal) if module.literal else UNKNOWN
            for module in evaluate(node.args[0], scope, depth)
        )
    if made == [":getattr"] and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
        return evaluate(ast.Attribute(node.args[0], str(node.args[1].value)), scope, depth)
    if made == ["functools.partial"] and len(node.args) == 1:
        return evaluate(node.args[0], scope, depth)
    if COPIES.intersection(made):
        return limited(evaluate(argument, scope, depth) for argument in node.args) or (UNKNOWN,)
    if any(reference.startswith(":") and ("", reference[1:]) in scope.file.environments for reference in made):
        return (Value("", reference="os.environ"),)
    # The attributes of an instance are looked up in its class; results of functions have none.
    return tuple(Value("", reference=f"{reference}()") if reference else UNKNOWN for reference in made)


def single_source(name: str, scope: Scope) -> tuple[ast.expr, Scope] | None:
    """The expression that a name is bound to for good, with the scope to read it in."""
    home = scope.find(name)
    sources = home.bindings[name] if home else []
    if home is None or len(sources) != 1 or isinstance(sources[0], tuple):
        return None
    return sources[0], home


def source_text(node: ast.expr) -> str:
    text = clean(ast.unparse(node))
    return text if len(text) <= 120 else text[:117] + "..."
