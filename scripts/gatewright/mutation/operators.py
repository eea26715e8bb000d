"""Typed edits of expressions and statements: what can stand in place of one node of a syntax tree.

An operator is a function from a node to replacements, registered by the node's type. A replacement
is a node or source text; the operator's name is what reports and the list of equivalents use.
"""

import ast
import copy
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gatewright.mutation.patterns import MARK, is_message, message_edits, regex_edits

Replacement = ast.AST | str
Operator = Callable[[Any], Iterator[tuple[str, Replacement]]]

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.BitXor: ast.BitAnd,
}
# Calls that are easily taken for each other.
_CALLS = {
    "all": "any",
    "min": "max",
    "startswith": "endswith",
    "removeprefix": "removesuffix",
    "lstrip": "rstrip",
    "partition": "rpartition",
    "find": "rfind",
    "lower": "upper",
    "match": "search",
    "fullmatch": "match",
}
_CALLS |= {after: before for before, after in _CALLS.items() if after not in _CALLS}
_REGEX_CALLS = frozenset({"compile", "match", "search", "fullmatch", "findall", "finditer", "split", "sub", "subn"})
_NUMBERS = (int, float)


def _changed(node: ast.AST, **fields: Any) -> ast.AST:
    """A copy with other fields; unchanged children are shared, as nothing here edits in place."""
    twin = copy.copy(node)
    for name, value in fields.items():
        setattr(twin, name, value)
    return twin


def _without(items: Sequence[Any], number: int) -> list[Any]:
    return [*items[:number], *items[number + 1 :]]


def _with(items: Sequence[Any], number: int, item: Any) -> list[Any]:
    return [*items[:number], item, *items[number + 1 :]]


def compare(node: ast.Compare) -> Iterator[tuple[str, Replacement]]:
    for number, operator in enumerate(node.ops):
        for other in _COMPARISONS[type(operator)]:
            yield "comparison", _changed(node, ops=_with(node.ops, number, other()))


def boolean(node: ast.BoolOp) -> Iterator[tuple[str, Replacement]]:
    yield "boolean", _changed(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    for number in range(len(node.values)):
        rest = _without(node.values, number)
        yield "operand", rest[0] if len(rest) == 1 else _changed(node, values=rest)


def unary(node: ast.UnaryOp) -> Iterator[tuple[str, Replacement]]:
    if isinstance(node.op, ast.Not):
        yield "condition", node.operand
    elif not isinstance(node.operand, ast.Constant):
        yield "arithmetic", node.operand


def binary(node: ast.BinOp) -> Iterator[tuple[str, Replacement]]:
    other = _ARITHMETIC.get(type(node.op))
    if other is not None and not isinstance(node.left, ast.JoinedStr):
        yield "arithmetic", _changed(node, op=other())


def constant(node: ast.Constant) -> Iterator[tuple[str, Replacement]]:
    value = node.value
    if isinstance(value, bool):
        yield "constant", ast.Constant(not value)
    elif isinstance(value, _NUMBERS):
        yield "constant", ast.Constant(value + 1)
        if value:
            yield "constant", ast.Constant(value - 1)
    elif isinstance(value, bytes):
        yield "string", ast.Constant(MARK.encode() + value)
    elif isinstance(value, str):
        if getattr(node, "kind", None) == "regex":
            yield from (("regex", ast.Constant(edited)) for edited in regex_edits(value))
        elif is_message(value):
            yield from (("message", ast.Constant(edited)) for edited in message_edits(value))
        else:
            yield "string", ast.Constant(MARK + value)


def joined(node: ast.JoinedStr) -> Iterator[tuple[str, Replacement]]:
    """The literal parts of an f-string, and each of its values left out."""
    for number, part in enumerate(node.values):
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and re.search(r"\w", part.value):
            if getattr(node, "kind", None) == "regex":
                for edited in regex_edits(part.value):
                    yield "regex", _changed(node, values=_with(node.values, number, ast.Constant(edited)))
            else:
                marked = ast.Constant(MARK + part.value)
                yield "message", _changed(node, values=_with(node.values, number, marked))
        elif isinstance(part, ast.FormattedValue):
            yield "message", _changed(node, values=_without(node.values, number))


def call(node: ast.Call) -> Iterator[tuple[str, Replacement]]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in _CALLS:
        other = _CALLS[name]
        function = _changed(node.func, **{"attr" if isinstance(node.func, ast.Attribute) else "id": other})
        yield "call", _changed(node, func=function)
    for number, (left, right) in enumerate(zip(node.args, node.args[1:], strict=False)):
        if (
            not isinstance(left, ast.Starred)
            and not isinstance(right, ast.Starred)
            and ast.dump(left) != ast.dump(right)
        ):
            yield "arguments", _changed(node, args=[*node.args[:number], right, left, *node.args[number + 2 :]])
    for number, keyword in enumerate(node.keywords):
        if keyword.arg is not None and not is_strict_zip(node, keyword):
            yield "keyword", _changed(node, keywords=_without(node.keywords, number))


def is_strict_zip(node: ast.Call, keyword: ast.keyword) -> bool:
    """`zip(..., strict=True)` guards against misuse, as an assertion does."""
    return keyword.arg == "strict" and isinstance(node.func, ast.Name) and node.func.id == "zip"


def ternary(node: ast.IfExp) -> Iterator[tuple[str, Replacement]]:
    yield from negated(node.test)


def negated(test: ast.expr) -> Iterator[tuple[str, Replacement]]:
    """The opposite of a condition, where no operator of the condition itself gives that already."""
    simple = isinstance(test, ast.Compare) and len(test.ops) == 1 and len(_COMPARISONS[type(test.ops[0])]) == 1
    if not simple and not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)):
        yield "condition", ast.UnaryOp(ast.Not(), test)


def subscript(node: ast.Slice) -> Iterator[tuple[str, Replacement]]:
    for name in ("lower", "upper", "step"):
        if getattr(node, name) is not None:
            yield "slice", _changed(node, **{name: None})


def sequence(node: "ast.List | ast.Tuple | ast.Set") -> Iterator[tuple[str, Replacement]]:
    for number in range(len(node.elts)):
        if isinstance(node, ast.Set) and len(node.elts) == 1:
            yield "entry", ast.Call(ast.Name("set"), [], [])
        else:
            yield "entry", _changed(node, elts=_without(node.elts, number))


def table(node: ast.Dict) -> Iterator[tuple[str, Replacement]]:
    for number in range(len(node.keys)):
        yield "entry", _changed(node, keys=_without(node.keys, number), values=_without(node.values, number))


def lambda_body(node: ast.Lambda) -> Iterator[tuple[str, Replacement]]:
    if not (isinstance(node.body, ast.Constant) and node.body.value is None):
        yield "return", _changed(node, body=ast.Constant(None))


EXPRESSIONS: dict[type[ast.AST], Operator] = {
    ast.Compare: compare,
    ast.BoolOp: boolean,
    ast.UnaryOp: unary,
    ast.BinOp: binary,
    ast.Constant: constant,
    ast.JoinedStr: joined,
    ast.Call: call,
    ast.IfExp: ternary,
    ast.Slice: subscript,
    ast.List: sequence,
    ast.Tuple: sequence,
    ast.Set: sequence,
    ast.Dict: table,
    ast.Lambda: lambda_body,
}


def statement(node: ast.stmt, assigned: frozenset[str]) -> Iterator[tuple[str, Replacement]]:
    """Edits of a whole statement. `assigned`: names that the function binds more than once."""
    match node:
        case ast.Expr(value=ast.Constant()):
            return
        case ast.Expr() | ast.AugAssign() | ast.Delete() | ast.Raise():
            yield "statement", "pass"
        case ast.Continue():
            yield "statement", "break"
            yield "statement", "pass"
        case ast.Break():
            yield "statement", "continue"
        case ast.Assign(targets=[target]) | ast.AnnAssign(target=target, value=ast.expr()):
            rebinds = isinstance(target, ast.Name) and target.id in assigned
            if rebinds or isinstance(target, ast.Attribute | ast.Subscript):
                yield "statement", "pass"
        case ast.Return(value=ast.expr() as value):
            # Where True or False is returned the constant itself is turned.
            if not (isinstance(value, ast.Constant) and (value.value is None or isinstance(value.value, bool))):
                yield "return", "return None"
    if isinstance(node, ast.AugAssign) and type(node.op) in _ARITHMETIC:
        yield "arithmetic", _changed(node, op=_ARITHMETIC[type(node.op)]())


def mark_regexes(tree: ast.AST, source: bytes, offset: Callable[[ast.expr], int]) -> None:
    """Tell patterns from other text: the pattern of a call of `re`, and raw text with more than letters."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _REGEX_CALLS:
            if isinstance(node.func.value, ast.Name) and node.func.value.id == "re" and node.args:
                for part in ast.walk(node.args[0]):
                    if isinstance(part, ast.JoinedStr) or (isinstance(part, ast.Constant) and type(part.value) is str):
                        part.kind = "regex"  # type: ignore[union-attr]
        elif isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and type(node.value) is str):
            start = offset(node)
            if source[start : start + 2].lower() in (b'r"', b"r'", b"rf", b"fr"):
                node.kind = "regex"  # type: ignore[union-attr]
