"""Parameters of Python functions, and the attributes that a constructor fills from them."""

import ast
from collections.abc import Iterator

from gatewright.extractors.env_read import Parameter, Value
from gatewright.extractors.env_scope import UNKNOWN, File, Function, Scope, Values, collect, statements
from gatewright.extractors.env_values import ENVIRON, evaluate, source_text

# Values of `Parameter.index` that are no position.
ASSIGNED_NAME = -1
KEYWORD_ONLY = -2


def bind_parameters(node: Function | ast.Lambda, scope: Scope, owner: str) -> None:
    """Bind a function's parameters. `owner` is the class that a method belongs to, else empty."""
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    if owner and positional and not _is_static(node):
        scope.bind(positional.pop(0).arg, (Value("", reference=f":{owner}()"),))
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
        scope.bind(argument.arg, (Value("", reference=annotated + "()"),))
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


def environment_fields(node: ast.ClassDef, scope: Scope) -> Iterator[str]:
    """Attributes that the methods of a class fill with the environment."""
    for method in (item for item in node.body if isinstance(item, Function)):
        for statement in statements(method.body):
            match statement:
                case (
                    ast.Assign(targets=[ast.Attribute(value=ast.Name(), attr=name)], value=value)
                    | ast.AnnAssign(target=ast.Attribute(value=ast.Name(), attr=name), value=ast.expr() as value)
                ) if any(given.reference in ENVIRON for given in evaluate(value, scope)):
                    yield name


def returns_environment(node: Function, scope: Scope) -> bool:
    """Whether a function hands out the environment or a copy of it. `scope` is the one around it."""
    returned = [item.value for item in statements(node.body) if isinstance(item, ast.Return) and item.value is not None]
    if not returned:
        return False
    body = scope.child(node.name)
    collect(node.body, body)
    return any(value.reference in ENVIRON for item in returned for value in evaluate(item, body))


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
