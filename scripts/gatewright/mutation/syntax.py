"""Questions about nodes of a syntax tree that the planner asks."""

import ast
from collections import Counter

from gatewright.mutation.operators import Replacement

# Replacements of these bind at least as tightly as anything around them; a tuple is spelled in brackets.
_ATOMS = (
    ast.Constant,
    ast.Name,
    ast.Call,
    ast.Attribute,
    ast.List,
    ast.Set,
    ast.Dict,
    ast.JoinedStr,
    ast.Slice,
    ast.Tuple,
)


def needs_brackets(node: ast.AST, replacement: Replacement) -> bool:
    """Whether the replacement may bind less tightly than what it replaces."""
    if not isinstance(replacement, ast.expr) or isinstance(replacement, _ATOMS):
        return False
    return not (isinstance(node, ast.Compare) and isinstance(replacement, ast.Compare))


def header(node: ast.stmt) -> tuple[int, int]:
    """The lines of a statement without its blocks."""
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    body = getattr(node, "body", None)
    if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
        return first, max(first, body[0].lineno - 1)
    return first, node.end_lineno or first


def table_name(node: ast.stmt) -> str:
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    return target.id if isinstance(target, ast.Name) else ""


def is_guard(test: ast.expr) -> bool:
    """`if TYPE_CHECKING` and `if __name__ == "__main__"`: no test can see inside."""
    return any(isinstance(n, ast.Name) and n.id in ("TYPE_CHECKING", "__name__") for n in ast.walk(test))


def does_nothing(node: ast.stmt) -> bool:
    """`...`, `pass` and assertions, which are for the type checker."""
    return isinstance(node, ast.Pass | ast.Assert) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def unpacks(node: ast.stmt, value: ast.expr) -> bool:
    """`a, b = x, y`: a dropped entry fails at once and says nothing; its entries are still mutated elsewhere."""
    return isinstance(node, ast.Assign) and isinstance(value, ast.Tuple) and isinstance(node.targets[0], ast.Tuple)


def bound_twice(function: ast.AST) -> frozenset[str]:
    names = [n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    names += [n.arg for n in ast.walk(function) if isinstance(n, ast.arg)]
    return frozenset(name for name, count in Counter(names).items() if count > 1)
