"""The parts of a file that verdicts are remembered by."""

from gatewright.mutation.definitions import Definitions

SOURCE = b"""import os

LIMIT = 80


def helper(text):
    return len(text)


@cache
def is_long(text):
    return helper(text) > LIMIT


class Judge:
    name = "judge"

    @property
    def limit(self):
        return self.other

    def other(self):
        return 1


def alone():
    return 2
"""


def parts(source: bytes = SOURCE) -> list[tuple[str, int, int]]:
    return [(part.name, part.first, part.last) for part in Definitions(source).parts]


def test_functions_methods_and_tables_are_parts_with_their_decorators() -> None:
    assert parts() == [
        ("<module>", 1, 1),
        ("LIMIT", 3, 3),
        ("helper", 6, 7),
        ("is_long", 10, 12),
        ("Judge", 15, 15),
        ("Judge.name", 16, 16),
        ("Judge.limit", 18, 20),
        ("Judge.other", 22, 23),
        ("alone", 26, 27),
    ]


def test_a_line_belongs_to_the_innermost_part() -> None:
    definitions = Definitions(SOURCE)
    names = {line: part.name for line in range(1, 29) if (part := definitions.at(line))}
    assert names[11] == "is_long" and names[10] == "is_long" and names[20] == "Judge.limit"
    assert 5 not in names and 28 not in names


def test_a_part_reaches_what_it_names_directly_or_through_others() -> None:
    definitions = Definitions(SOURCE)

    def reach(line: int) -> set[str]:
        start = definitions.at(line)
        assert start is not None
        return {part.name for part in definitions.reach(start)}

    assert reach(12) == {"is_long", "helper", "LIMIT"}
    assert reach(20) == {"Judge.limit", "Judge.other"}
    assert reach(27) == {"alone"}


def test_digests_change_with_the_text_of_their_part_alone() -> None:
    before = {part.name: part.digest for part in Definitions(SOURCE).parts}
    after = {part.name: part.digest for part in Definitions(b"\n\n" + SOURCE.replace(b"> LIMIT", b">= LIMIT")).parts}
    assert {name for name in before if before[name] != after[name]} == {"is_long"}


def test_defining_a_function_does_not_run_its_body() -> None:
    (part,) = [part for part in Definitions(SOURCE).parts if part.name == "is_long"]
    assert (part.first, part.body) == (10, 12)


def test_cached_functions_are_known() -> None:
    cached = [
        part.name
        for part in Definitions(SOURCE.replace(b"def alone", b"@functools.lru_cache(maxsize=2)\ndef alone")).parts
        if part.is_cached
    ]
    assert cached == ["is_long", "alone"]


def test_a_file_that_does_not_parse_is_one_part() -> None:
    assert parts(b"def f(:\n    pass\n") == [("<module>", 1, 3)]
