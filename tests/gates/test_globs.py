"""Path patterns: what they match, and what they do not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.core.globs import PathSet, compile_globs, matcher


@pytest.mark.parametrize(
    ("pattern", "inside", "outside"),
    [
        ("*.py", ["a.py", ".py"], ["a/b.py", "a.pyi", "A.PY"]),
        ("src/*.py", ["src/a.py"], ["src/a/b.py", "xsrc/a.py", "src/a.pyc"]),
        ("src/**", ["src/a", "src/a/b.py"], ["src", "srcs/a", "x/src/a"]),
        ("**/*.py", ["a.py", "a/b/c.py"], ["a.txt"]),
        ("src/**/x.py", ["src/x.py", "src/a/b/x.py"], ["src/ax.py", "src/a/bx.py"]),
        ("a/**b", ["a/b", "a/x/yb"], ["a/c"]),
        ("?.c", ["a.c", "é.c"], ["ab.c", "/.c"]),
        ("*.{c,h}", ["a.c", "a.h"], ["a.cc", "a.{c,h}"]),
        ("{src,lib/{a,b}}/x", ["src/x", "lib/a/x", "lib/b/x"], ["lib/x", "lib/c/x"]),
        ("a,b", ["a,b"], ["a", "b"]),
        ("[ab].py", ["[ab].py"], ["a.py"]),
        ("a+b(c).py", ["a+b(c).py"], ["aab(c).py", "abc.py"]),
        ("a\\b", ["a\\b"], ["ab"]),
        ("{a", ["{a"], ["a"]),
        ("a}", ["a}"], ["a"]),
        ("}a{", ["}a{"], ["a"]),
        ("line\nbreak*", ["line\nbreak", "line\nbreak\n"], ["line"]),
        ("*", ["bad\udcff"], ["a/b"]),
        ("", [""], ["a"]),
    ],
)
def test_patterns(pattern: str, inside: list[str], outside: list[str]) -> None:
    matches = compile_globs((pattern,)).fullmatch
    assert [path for path in [*inside, *outside] if matches(path)] == inside


def test_a_path_set_takes_what_one_pattern_includes_and_none_excludes() -> None:
    paths = PathSet(("src/**", "*.py"), ("**/test_*", "src/vendored/**"))
    everything = ["a.py", "src/b", "src/test_b", "src/vendored/c", "test_a.py", "x/y"]
    assert paths.select(everything) == [path for path in everything if path in paths] == ["a.py", "src/b"]
    assert PathSet(()).select(everything) == []


@given(st.text("ab/*?{},.[]\\", max_size=12))
def test_any_text_is_a_pattern(pattern: str) -> None:
    compile_globs((pattern,)).fullmatch("a/b.py")


@given(st.text(st.characters(exclude_characters="*?{},"), min_size=1))
def test_a_text_without_signs_matches_itself_alone(path: str) -> None:
    matches = compile_globs((path,)).fullmatch
    assert matches(path)
    assert not matches(path + "x")


def test_a_set_within_others_is_what_both_hold() -> None:
    python = PathSet(("**/*.py",), within=(PathSet(("a/**",)), PathSet(("b/**",), ("b/x.py",))))
    assert python.select(["a/1.py", "a/1.md", "b/x.py", "b/y.py", "c/1.py"]) == ["a/1.py", "b/y.py"]
    assert "c/1.py" not in python
    assert "a/1.py" in python


ENDINGS = st.lists(
    st.sampled_from(["**/*.py", "**/*.{c,cu}", "**/*_test.py", "**/*.d/x", "**/*{a,b}", "**/*.", "*.py"])
)
# As git names them: no folder without a name.
PLACES = st.lists(st.text(alphabet="ab.pycud_test", min_size=1, max_size=8), max_size=3).map("/".join)


@given(ENDINGS, st.lists(PLACES))
def test_patterns_of_endings_match_what_the_expression_matches(patterns: list[str], paths: list[str]) -> None:
    globs = tuple(patterns)
    assert [bool(matcher(globs)(path)) for path in paths] == [bool(compile_globs(globs).fullmatch(p)) for p in paths]
