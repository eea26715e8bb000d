"""Edits of regular expressions."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.mutation.patterns import is_message, regex_edits


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"^a", {"a", "^aX"}),
        (r"a+$", {"a*$", "a+", "aX+$"}),
        (r"a?", {"a", "aX?"}),
        (r"(a)*?", {"(a)+?", "(a)*", "(aX)*?"}),
        (r"a*+", {"a++", "aX*+"}),
        (r"\d", {r"\D"}),
        (r"\bx", {r"\Bx", "x", r"\bxX"}),
        (r"[abc]", {"[^abc]"}),
        (r"[^abc]", {"[abc]"}),
        (r"(?=x)", {"(?!x)", "(?=xX)"}),
        (r"(?<!x)", {"(?<=x)", "(?<!xX)"}),
        (r"a|b", {"aX|b", "a|bX", "a", "b"}),
        (r"(?:a|b)c", {"(?:aX|b)c", "(?:a|bX)c", "(?:a|b)cX", "(?:a)c", "(?:b)c"}),
        (r"(?i)ab", {"ab", "(?i)aXb"}),
        (r"\|", set()),
    ],
)
def test_edits_of_one_token(pattern: str, expected: set[str]) -> None:
    assert set(regex_edits(pattern)) == expected


@given(st.text(alphabet="ab^$*+?()[]|\\dw{1,}:=!<", max_size=12))
def test_whatever_is_given_only_patterns_that_compile_come_back(pattern: str) -> None:
    edited = list(regex_edits(pattern))
    assert pattern not in edited
    assert len(set(edited)) == len(edited)
    for edit in edited:
        re.compile(edit)


def test_a_message_has_two_words() -> None:
    assert is_message("no such file")
    assert not is_message("surrogateescape")
    assert not is_message("a b")
