"""What a loop or comprehension runs over: the items of literal collections, the members of classes."""

import ast

from gatewright.extractors.env_scope import UNKNOWN, Scope, Values, bind_target
from gatewright.extractors.env_values import MAX_DEPTH, evaluate, limited, named, single_source

Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


def elements(node: ast.expr, scope: Scope, depth: int = 0) -> Values:
    """What iterating over `node` gives: the items of a literal collection, the keys of a dict."""
    if depth > MAX_DEPTH:
        return (UNKNOWN,)
    depth += 1
    match node:
        case ast.Tuple() | ast.List() | ast.Set():
            return limited(_element(item, scope, depth) for item in node.elts) or (UNKNOWN,)
        case ast.Dict():
            keys = [key for key in node.keys if key is not None]
            return limited(evaluate(key, scope, depth) for key in keys) or (UNKNOWN,)
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
            return elements(source[0], source[1], depth) if source else _members(node, scope, depth)
    return (UNKNOWN,)


def _members(node: ast.Name, scope: Scope, depth: int) -> Values:
    """The texts of an enumeration, or of another class of constants."""
    body = scope.file.classes.get(evaluate(node, scope, depth)[0].reference.removeprefix(":"))
    if body is None:
        return (UNKNOWN,)
    return limited(named(name, body, depth) for name in body.bindings) or (UNKNOWN,)


def _element(item: ast.expr, scope: Scope, depth: int) -> Values:
    return elements(item.value, scope, depth) if isinstance(item, ast.Starred) else evaluate(item, scope, depth)


def _dict_values(node: ast.expr, scope: Scope, depth: int) -> Values:
    if isinstance(node, ast.Name) and (source := single_source(node.id, scope)):
        node, scope = source
    if isinstance(node, ast.Dict):
        return limited(evaluate(value, scope, depth) for value in node.values) or (UNKNOWN,)
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
    if isinstance(target, ast.Tuple):
        for index, part in enumerate(target.elts):
            if isinstance(part, ast.Name):
                scope.bind(part.id, _column(iterated, index, len(target.elts), scope, depth))
            else:
                bind_target(part, None, scope)
        return
    bind_target(target, None, scope)


def _column(node: ast.expr, index: int, width: int, scope: Scope, depth: int) -> Values:
    """What the variable at one place of `for a, b in ...` runs over."""
    match node:
        case ast.Name() if source := single_source(node.id, scope):
            return _column(source[0], index, width, source[1], depth + 1) if depth < MAX_DEPTH else (UNKNOWN,)
        case ast.Call(func=ast.Name(id="enumerate"), args=[inner, *_]):
            return elements(inner, scope, depth) if index == 1 else (UNKNOWN,)
        case ast.Call(func=ast.Name(id="zip"), args=columns) if index < len(columns):
            return elements(columns[index], scope, depth)
        case ast.Tuple() | ast.List() | ast.Set():
            rows = [row.elts for row in node.elts if isinstance(row, ast.Tuple | ast.List) and len(row.elts) == width]
            if len(rows) == len(node.elts):
                return limited(evaluate(row[index], scope, depth) for row in rows) or (UNKNOWN,)
    return (UNKNOWN,)
