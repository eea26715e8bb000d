"""Which mutants a module has, where they lie, and that each is a program."""

import ast
from pathlib import Path

import pytest

from gatewright.mutation.mutant import AnchorMissing, Mutant
from gatewright.mutation.plan import plan_module

ROOT = Path(__file__).resolve().parents[2]


def plan(source: str) -> list[Mutant]:
    return plan_module("m.py", source.encode())


def edits(source: str, operator: str) -> list[str]:
    """What the operator makes of the source, whole lines that differ."""
    lines = source.splitlines()
    made = [m.apply(source.encode()).decode().splitlines() for m in plan(source) if m.operator == operator]
    return ["; ".join(line.strip() for line in new if line not in lines) for new in made]


BODY = "def f(a, b):\n    {}\n"


@pytest.mark.parametrize(
    ("operator", "line", "expected"),
    [
        ("comparison", "return a < b", ["return a <= b", "return a >= b"]),
        ("comparison", "return a <= b", ["return a < b", "return a > b"]),
        ("comparison", "return a is b", ["return a is not b"]),
        ("comparison", "return a not in b", ["return a in b"]),
        ("comparison", "return a == b != 1", ["return a != b != 1", "return a == b == 1"]),
        ("boolean", "return a and b", ["return (a or b)"]),
        ("operand", "return a or b", ["return b", "return a"]),
        ("condition", "return not a", ["return a"]),
        ("condition", "return 1 if a else 2", ["return 1 if (not a) else 2"]),
        ("arithmetic", "return a + b", ["return (a - b)"]),
        ("arithmetic", "a += b", ["a -= b"]),
        ("arithmetic", "return a // b", ["return (a * b)"]),
        ("constant", "return a[1]", ["return a[2]", "return a[0]"]),
        ("constant", "return 0", ["return 1"]),
        ("constant", "return True", ["return False"]),
        ("string", "return 'key'", ["return 'XXkey'"]),
        ("message", "return 'no such file'", ["return 'XXno such file'"]),
        ("message", "return f'{a} is no file'", ["return f' is no file'", "return f'{a}XX is no file'"]),
        ("arithmetic", "return f'{a + b} is'", ["return f'{a - b} is'"]),
        ("call", "return a.startswith(b)", ["return a.endswith(b)"]),
        ("call", "return min(a, b)", ["return max(a, b)"]),
        ("arguments", "return g(a, b)", ["return g(b, a)"]),
        ("arguments", "return g(a, a)", []),
        ("keyword", "return sorted(a, key=b)", ["return sorted(a)"]),
        ("slice", "return a[1:b]", ["return a[:b]", "return a[1:]"]),
        ("entry", "return [a, b]", ["return [b]", "return [a]"]),
        ("entry", "return {a}", ["return set()"]),
        ("entry", "return {'k': a, 'l': b}", ["return {'l': b}", "return {'k': a}"]),
        ("filter", "return [x for x in a if x.b]", ["return [x for x in a if True]"]),
        ("statement", "a.clear()", ["pass"]),
        ("statement", "raise a", ["pass"]),
        ("statement", "a[0] = b", ["pass"]),
        ("statement", "a = b", ["pass"]),
        ("statement", "c = b", []),
        ("return", "return a", ["return None"]),
        ("return", "return None", []),
        ("return", "return False", []),
        ("regex", "return re.match('^a', b)", ["return re.match('a', b)", "return re.match('^aX', b)"]),
    ],
)
def test_every_operator_edits_what_it_names(operator: str, line: str, expected: list[str]) -> None:
    assert edits(BODY.format(line), operator) == expected


def test_loops_are_left_early_and_late() -> None:
    source = "def f(a):\n    for x in a:\n        if x:\n            continue\n        break\n"
    assert edits(source, "statement") == ["break", "pass", "continue"]


def test_early_return_goes_in_front_of_the_body() -> None:
    source = 'def f(a):\n    """Say."""\n    if a:\n        return 1\n    return 2\n'
    assert edits(source, "return")[0] == "return None"
    assert edits("def f(a): a.b()\n", "return") == ["def f(a): return None; a.b()"]


def test_tables_constants_decorators_and_defaults_of_a_module_are_mutated() -> None:
    source = 'LIMIT = 5\nNAMES = ("a", "b")\nWORD = re.compile(r"\\bcuda\\b")\n\n\n@cache\ndef f(x=3):\n    return x\n'
    assert edits(source, "decorator") == [""]
    assert edits(source, "entry") == ["NAMES = ('b',)", "NAMES = ('a',)"]
    assert {m.function for m in plan(source)} == {"LIMIT", "NAMES", "WORD", "f"}
    assert {m.becomes for m in plan(source) if m.operator == "regex"} == {
        repr(pattern) for pattern in (r"cuda\b", r"\Bcuda\b", r"\bcuda", r"\bcuda\B", r"\bcXuda\b")
    }
    at_import = {m.function: m.at_import for m in plan(source) if m.operator == "constant"}
    assert at_import == {"LIMIT": True, "f": True}


@pytest.mark.parametrize(
    "source",
    [
        'def f():\n    """Two words."""\n',
        "from typing import Literal\nKind = Literal['a', 'b']\n",
        "P = TypeVar('P', bound=int)\n",
        "def f(a: 'list[int]' = None) -> 'str':\n    assert a is not None\n",
        "if TYPE_CHECKING:\n    LIMIT = 5\n",
        'if __name__ == "__main__":\n    main()\n',
        "import os\nfrom a import b\n",
        "class A(Struct, frozen=True):\n    x: int\n",
        "for pair in zip(a, a, strict=True):\n    pass\n",
    ],
    ids=[
        "docstring",
        "literal",
        "type variable",
        "annotation",
        "type checking",
        "main guard",
        "imports",
        "struct",
        "zip",
    ],
)
def test_what_no_test_can_see_is_left_alone(source: str) -> None:
    assert [m.label for m in plan(source)] == []


@pytest.mark.parametrize("path", ["core/finding.py", "core/globs.py", "mutation/mutant.py", "reporters/wording.py"])
def test_every_mutant_of_real_modules_parses_differs_and_has_its_own_identity(path: str) -> None:
    source = (ROOT / "scripts/gatewright" / path).read_bytes()
    original = ast.dump(ast.parse(source))
    mutants = plan_module(path, source)
    assert len({m.identity for m in mutants}) == len(mutants) > 50
    for mutant in mutants:
        assert ast.dump(ast.parse(mutant.apply(source))) != original, mutant.label
        assert mutant.first <= mutant.line <= mutant.last or mutant.operator == "decorator", mutant.label


def test_identity_holds_when_lines_move_and_tells_equal_edits_apart() -> None:
    source = "def f(a):\n    g(1)\n    h(1)\n"
    moved = "# a comment\n\n" + source
    assert {m.identity for m in plan(source)} == {m.identity for m in plan(moved)}
    ones = [m.ordinal for m in plan(source) if m.becomes == "2"]
    assert ones == [0, 1]


def test_mt_05_a_mutant_whose_text_is_gone_is_an_error() -> None:
    source = "LIMIT = 5\n"
    (up, _) = plan(source)
    assert up.apply(source.encode()) == b"LIMIT = 6\n"
    with pytest.raises(AnchorMissing, match="anchor missing"):
        up.apply(b"BOUND = 7\n")


def test_diff_can_be_applied(tmp_path: Path) -> None:
    import subprocess

    source = "def f(a):\n    x = 1\n    return a < x\n\n"
    (tmp_path / "m.py").write_text(source)
    for mutant in plan(source):
        patch = mutant.diff(source.encode()) + "\n"
        subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=patch, text=True, check=True)
        assert (tmp_path / "m.py").read_bytes() == mutant.apply(source.encode())
        (tmp_path / "m.py").write_text(source)


def test_text_that_is_not_ascii_keeps_its_place() -> None:
    source = "NAMES = ['ü', 'a']  # größer\n\n\ndef f(a):\n    return 'ß' < a\n"
    assert edits(source, "comparison") == ["return 'ß' <= a", "return 'ß' >= a"]
