"""Where Python code looks at a value and decides: tests, comparisons, handlers."""

import ast
from collections.abc import Iterable, Iterator


def tested_expressions(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions directly below `node` whose truth, presence or value it asks for."""
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.Assert(test=test):
            yield test
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.Compare(left=left, comparators=comparators):
            yield left
            yield from comparators
        case ast.BoolOp(values=values):
            yield from values[:-1]
        case ast.Call(func=ast.Name(id="bool"), args=[argument]):
            yield argument
        case ast.Try(body=body):
            yield from (expression for statement in body for expression in _subscripts(statement))


def _subscripts(statement: ast.stmt) -> Iterator[ast.expr]:
    """What may raise KeyError in a statement whose handler then decides."""
    return (node for node in ast.walk(statement) if isinstance(node, ast.Subscript))


def tested_names(body: Iterable[ast.stmt]) -> frozenset[str]:
    """The variables that the statements of a function test."""
    return frozenset(
        expression.id
        for statement in body
        for node in ast.walk(statement)
        if not isinstance(node, ast.Try)
        for expression in tested_expressions(node)
        if isinstance(expression, ast.Name)
    )
