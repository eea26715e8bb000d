"""How the findings of two trees are matched: what is new, and what the base already had."""

from hypothesis import given
from hypothesis import strategies as st

from gatewright.core.finding import Finding, subtract


def site(path: str, statement: str = "use()", line: int = 1, token: str = "use") -> Finding:
    return Finding(rule="c/r", path=path, line=line, message="m", help="h", token=token, statement=statement)


def measured(path: str, token: str, size: int, line: int = 1) -> Finding:
    return Finding(rule="c/m", path=path, line=line, message=str(size), help="h", token=token, measure=size)


def new(head: list[Finding], base: list[Finding]) -> list[str]:
    return [f"{f.path}:{f.line}" for f in subtract(head, base)[0]]


def test_a_site_that_moved_within_its_file_is_not_new() -> None:
    assert new([site("a", line=90)], [site("a", line=3)]) == []


def test_a_site_that_moved_to_another_file_is_not_new() -> None:
    assert new([site("b")], [site("a")]) == []


def test_a_copy_is_new_once() -> None:
    assert new([site("a"), site("b")], [site("a")]) == ["b:1"]
    assert new([site("a", line=1), site("a", line=5)], [site("a")]) == ["a:5"]
    assert new([site("a"), site("b"), site("c")], [site("a"), site("x")]) == ["c:1"]


def test_dl_11_a_different_site_in_the_place_of_another_is_new() -> None:
    base = [site("a", f"use({number})") for number in range(5)]
    head = [*base[1:], site("a", "use('other')")]
    assert len(head) == len(base)
    assert new(head, base) == ["a:1"]


def test_another_rule_or_token_is_another_site() -> None:
    other = Finding(rule="c/other", path="a", line=1, message="m", help="h", token="use", statement="use()")
    assert new([other, site("a", token="used")], [site("a")]) == ["a:1", "a:1"]


def test_a_measure_is_new_only_where_its_key_is_new_or_it_grew() -> None:
    base = [measured("p", "row", 300)]
    assert new([measured("p", "row", 300, line=9)], base) == []
    assert new([measured("p", "row", 299)], base) == []
    assert new([measured("p", "row", 301)], base) == ["p:1"]
    assert new([measured("p", "other row", 250)], base) == ["p:1"]
    assert new([measured("q", "row", 250)], base) == ["q:1"]


def test_without_moves_an_equal_site_elsewhere_makes_up_for_none() -> None:
    assert [f.path for f in subtract([site("a")], [site("b")], moves=False)[0]] == ["a"]
    assert subtract([site("a")], [site("a")], moves=False)[0] == []


sites = st.lists(
    st.builds(site, st.sampled_from("abc"), st.sampled_from(["x", "y"]), st.integers(1, 9), st.sampled_from(["s", "t"]))
)


@given(sites, sites)
def test_every_finding_is_new_or_inherited(head: list[Finding], base: list[Finding]) -> None:
    fresh, inherited = subtract(head, base)
    assert sorted(map(repr, [*fresh, *inherited])) == sorted(map(repr, head))
    assert len(inherited) <= len(base)
    assert subtract(head[::-1], base[::-1]) == (fresh, inherited)
    assert subtract(head, head)[0] == []


@given(sites)
def test_nothing_is_inherited_from_nothing(head: list[Finding]) -> None:
    assert subtract(head, [])[1] == []
