"""Tests that never run: written in a suite, but not collected, or not executed."""

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeGuard

from gatewright.core.finding import Finding
from gatewright.mutation.baseline import Baseline

RULE = "mutation/inert-test"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def inert_in_source(path: str, source: bytes) -> list[Finding]:
    """What the text alone shows: tests below the main guard, names defined twice, tests inside functions."""
    try:
        body = ast.parse(source).body
    except SyntaxError as error:
        return [_finding(path, error.lineno or 0, f"the suite does not parse: {error.msg}", "mend the syntax")]
    return [*_below_main_guard(path, body), *_shadowed(path, body, ""), *_nested(path, body)]


def inert_in_run(baseline: Baseline, source: bytes) -> list[Finding]:
    """What the run shows: tests that are written but were not collected, and suites of which nothing ran."""
    path = baseline.suite
    written = dict(_written(ast.parse(source).body, ""))
    collected = {_plain(name) for name in [*(test.name for test in baseline.tests), *baseline.slow]}
    findings = [
        _finding(path, line, f"{name} is written but not collected", "name it so that pytest collects it, or remove it")
        for name, line in written.items()
        if name not in collected
    ]
    if not baseline.slow and not any(not test.skipped for test in baseline.tests):
        skipped = f", {len(baseline.tests)} are skipped" if baseline.tests else ""
        findings.append(_finding(path, 0, f"no test of this suite ran{skipped}", "make it run, or remove it"))
    return findings


def _plain(node_id: str) -> str:
    """`path::Class::test[parameters]` without the path and the parameters."""
    return node_id.partition("[")[0].partition("::")[2]


def _is_test(node: ast.stmt) -> TypeGuard[ast.FunctionDef | ast.AsyncFunctionDef]:
    return isinstance(node, _FUNCTIONS) and node.name.startswith("test")


def _is_suite_class(node: ast.stmt) -> TypeGuard[ast.ClassDef]:
    return isinstance(node, ast.ClassDef) and (
        node.name.startswith("Test") or any("TestCase" in ast.unparse(base) for base in node.bases)
    )


def _tests(body: Sequence[ast.stmt]) -> "list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]":
    return [node for node in body if _is_test(node) or _is_suite_class(node)]


def _written(body: Sequence[ast.stmt], scope: str) -> Iterator[tuple[str, int]]:
    for node in _tests(body):
        if isinstance(node, ast.ClassDef):
            yield from _written(node.body, f"{scope}{node.name}::")
        else:
            yield f"{scope}{node.name}", node.lineno


def _below_main_guard(path: str, body: Sequence[ast.stmt]) -> Iterator[Finding]:
    guards = [n for n, node in enumerate(body) if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)]
    for node in _tests(body[guards[0] + 1 :]) if guards else ():
        message = f"{node.name} stands below the main guard: where the file is run as a script it does not exist"
        yield _finding(path, node.lineno, message, 'move `if __name__ == "__main__"` to the end of the file')


def _shadowed(path: str, body: Sequence[ast.stmt], scope: str) -> Iterator[Finding]:
    tests = _tests(body)
    last = {node.name: node.lineno for node in tests}
    for node in tests:
        if last[node.name] != node.lineno:
            message = f"{scope}{node.name} is defined again in line {last[node.name]}, so this one never runs"
            yield _finding(path, node.lineno, message, "give one of them another name")
        if isinstance(node, ast.ClassDef):
            yield from _shadowed(path, node.body, f"{scope}{node.name}::")


def _nested(path: str, body: Sequence[ast.stmt]) -> Iterator[Finding]:
    names = Counter[str]()
    for outer in body:
        for function in ast.walk(outer):
            if not isinstance(function, _FUNCTIONS):
                continue
            for node in ast.walk(function):
                if node is not function and isinstance(node, _FUNCTIONS) and node.name.startswith("test_"):
                    names[node.name] += 1
                    if names[node.name] == 1:
                        message = f"{node.name} is defined inside {function.name}: no runner collects it"
                        yield _finding(path, node.lineno, message, "move it out of the function, or rename it")


def _finding(path: str, line: int, message: str, help: str) -> Finding:
    return Finding(rule=RULE, path=path, line=line, message=message, help=help, token=message)
