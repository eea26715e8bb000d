"""A walk over a Python file that knows at each node which scope it is in."""

import ast

from gatewright.extractors.env_functions import bind_parameters, class_fields, environment_fields, returns_environment
from gatewright.extractors.env_loops import Comprehension, bind_loop, comprehension_scope
from gatewright.extractors.env_read import Base
from gatewright.extractors.env_scope import File, Function, Scope, bind_target, collect
from gatewright.extractors.env_values import evaluate


class ScopeVisitor(ast.NodeVisitor):
    """Keeps `scope`, the class that directly encloses (`owner`), and the name being assigned to
    (`target`); records definitions and bases of the classes in `names`."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        self.scope = Scope("", None, File())
        self.owner = ""
        self.target = ""
        self.body: list[ast.stmt] = []
        self.base_references: list[str] = []
        self.bases: list[Base] = []
        self.defines: list[str] = []

    def walk(self, tree: ast.Module) -> None:
        """Visit a whole file."""
        self.body = tree.body
        collect(tree.body, self.scope)
        for node in tree.body:
            self._declare(node, "")
        for node in tree.body:
            self.visit(node)

    def _declare(self, node: ast.AST, prefix: str) -> None:
        if isinstance(node, ast.ClassDef):
            qualname = f"{prefix}.{node.name}" if prefix else node.name
            body = Scope(qualname, self.scope, self.scope.file, of_class=True)
            collect(node.body, body)
            self.scope.file.classes[qualname] = body
            self.scope.file.fields[qualname] = class_fields(node, qualname)
            self.scope.file.environments.update((qualname, name) for name in environment_fields(node, body))
            for item in node.body:
                self._declare(item, qualname)
        elif isinstance(node, Function) and returns_environment(node, self.scope):
            self.scope.file.environments.add(("", node.name))

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._function(node, node.name)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._function(node, self.target)

    def _function(self, node: Function | ast.Lambda, name: str) -> None:
        for part in (*node.args.defaults, *filter(None, node.args.kw_defaults), *getattr(node, "decorator_list", ())):
            self.visit(part)
        outer, owner, body = self.scope, self.owner, self.body
        self.scope = outer.child(name)
        self.owner = self.target = ""
        if name in self.names:
            self.defines.append(self.scope.qualname)
        bind_parameters(node, self.scope, owner)
        if isinstance(node, ast.Lambda):
            self.visit(node.body)
        else:
            self.body = node.body
            collect(node.body, self.scope)
            for statement in node.body:
                self.visit(statement)
        self.scope, self.owner, self.body = outer, owner, body

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for part in (*node.bases, *node.keywords, *node.decorator_list):
            self.visit(part)
        outer = (self.scope, self.owner, self.base_references)
        self.base_references = [v.reference for base in node.bases for v in evaluate(base, self.scope) if v.reference]
        self.scope = self.scope.child(node.name, of_class=True)
        self.owner = self.scope.qualname
        collect(node.body, self.scope)
        if node.name in self.names:
            self.defines.append(self.owner)
        constructor = any(isinstance(item, Function) and item.name == "__init__" for item in node.body)
        for reference in self.base_references:
            if bare(reference) in self.names or node.name in self.names:
                self.bases.append(Base(self.owner, reference, constructor))
        for statement in node.body:
            self.visit(statement)
        self.scope, self.owner, self.base_references = outer

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        outer = self.scope
        self.scope = outer.block()
        bind_loop(node.target, node.iter, self.scope)
        for statement in node.body:
            self.visit(statement)
        self.scope = outer
        for statement in node.orelse:
            self.visit(statement)

    visit_AsyncFor = visit_For

    def _comprehension(self, node: Comprehension) -> None:
        outer = self.scope
        self.scope = comprehension_scope(node, outer)
        self.generic_visit(node)
        self.scope = outer

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension

    def visit_Assign(self, node: ast.Assign) -> None:
        self._assigned(node.targets[0], node.value)
        for target in node.targets:
            self.visit(target)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assigned(node.target, node.value)
        self.visit(node.target)

    def _assigned(self, target: ast.expr, value: ast.expr) -> None:
        named = isinstance(value, ast.Call | ast.Lambda) and isinstance(target, ast.Name)
        self.target = target.id if named and isinstance(target, ast.Name) else ""
        self.visit(value)
        self.target = ""

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        bind_target(node.target, node.value, self.scope)
        self.visit(node.value)


def bare(reference: str) -> str:
    """The last part of a reference."""
    return reference.rpartition(".")[2].removeprefix(":")
