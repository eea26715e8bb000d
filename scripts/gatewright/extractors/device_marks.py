"""Test marks and guards that skip a test everywhere but on a device."""

import ast
from collections.abc import Sequence

from gatewright.readers.python import dotted

_SKIPPERS = frozenset({"skip", "skipTest", "SkipTest"})


def is_skip_mark(node: ast.AST) -> bool:
    """A skip mark whose condition may hold everywhere but on a device."""
    if isinstance(node, ast.List | ast.Tuple):
        return any(is_skip_mark(item) for item in node.elts)
    if not isinstance(node, ast.Call):
        return False
    last = (dotted(node.func) or "").rpartition(".")[2]
    if last == "skipUnless":
        return True
    if last not in ("skipif", "skipIf"):
        return False
    condition = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "condition"), None)
    return condition is not None and not is_positive(condition)


def is_positive(condition: ast.expr) -> bool:
    """A condition that is true on the device, so that what it skips runs elsewhere."""
    if isinstance(condition, ast.Compare):
        return isinstance(condition.ops[0], ast.Eq)
    return isinstance(condition, ast.Call | ast.Attribute | ast.Name)


def skips(body: Sequence[ast.stmt]) -> bool:
    for node in body:
        call = node.value if isinstance(node, ast.Expr) else node.exc if isinstance(node, ast.Raise) else None
        if isinstance(call, ast.Call) and (dotted(call.func) or "").rpartition(".")[2] in _SKIPPERS:
            return True
    return False
