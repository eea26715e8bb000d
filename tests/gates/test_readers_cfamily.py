"""The C-family reader: masking, literals, directives, dead branches; and its agreement with a compiler."""

import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from gates.timing import cpu_seconds
from hypothesis import given
from hypothesis import strategies as st

from gatewright.readers.cfamily import Source
from gatewright.readers.preprocessor import asserted_names, constant

COMPILER = shutil.which("g++") or shutil.which("gcc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler to compare with")

PIECES = st.sampled_from(
    [
        '"',
        "'",
        "\\",
        "\n",
        "\r",
        "\r\n",
        "\\\n",
        "/*",
        "*/",
        "//",
        "#if 0\n",
        "#else\n",
        "#endif\n",
        'R"(',
        ')"',
        "1'0",
        "#define A ",
        "#include <",
        ">",
        "u8R",
        "{",
        "}",
        "é",
        " ",
        "x",
        "0",
        "(",
        ")",
    ]
)


def code(text: str) -> str:
    return Source(text.encode()).code


def values(text: str) -> list[str]:
    return [string.value for string in Source(text.encode()).strings]


def check_views(data: bytes) -> None:
    """Every view has the length and the line ends of the text, and shows nothing that the text has not."""
    source = Source(data)
    for view in (source.code, source.live, source.macros):
        assert len(view) == len(source.text)
        for shown, written in zip(view, source.text, strict=True):
            assert shown == written or (shown == " " and written not in "\r\n") or (shown, written) == (";", "#")
    assert all(source.text[d.start] == "#" for d in source.directives)
    assert [s.start for s in source.strings] == sorted(s.start for s in source.strings)
    source.comments, source.statement(len(source.text) // 2)


@given(st.binary(max_size=200))
def test_any_bytes_are_read(data: bytes) -> None:
    check_views(data)


@given(st.lists(PIECES, max_size=40).map("".join))
def test_any_arrangement_of_markers_is_read(text: str) -> None:
    check_views(text.encode())


@pytest.mark.parametrize(
    "unit",
    [
        '"',
        "'",
        "\\",
        "/*",
        "#",
        "#\n",
        "#if X\n",
        "#else\n",
        "1'1",
        "1.",
        'R"(',
        'R"a(',
        "#include <",
        "#if (",
        "#if !",
        '"\\',
        '"a"\n',
        "// \\\n",
        "#define A \\\n",
        "#if a\n#elif b\n",
        "#elif b\n#else\n",
        "\r",
        "'\n",
        "u8",
        ";{}",
    ],
)
def test_reading_is_linear(unit: str) -> None:
    @cpu_seconds
    def seconds(size: int) -> None:
        data = (unit * (size // len(unit))).encode()
        source = Source(data)
        assert len(source.live) == len(source.text)
        source.strings, source.comments, source.guarded(lambda condition: False)

    # Eight times the input may cost up to 20 times as much before this is called worse than linear.
    assert seconds(400_000) < 20 * seconds(50_000) + 0.5


def test_d_11_a_digit_separator_opens_no_literal() -> None:
    assert code("int x = 1'000;\nkCUDA;") == "int x = 1'000;\nkCUDA;"
    assert code("0x1'F'FFu + .5'0 + 1e+1'0 + 'a'") == "0x1'F'FFu + .5'0 + 1e+1'0 +    "


def test_a_literal_behind_a_name_that_ends_in_a_digit_is_a_literal() -> None:
    assert code("case_1'a'; u8'b'; x1 = u'c'") == "case_1   ;      ; x1 =     "


def test_d_12_a_raw_string_ends_at_its_delimiter() -> None:
    text = 'f(R"(a " kCUDA )", u8R"xy(b )" )x" \\)xy", LR"(c)"); kCUDA'
    assert code(text).split() == ["f(", ",", ",", ");", "kCUDA"]
    assert values(text) == ['a " kCUDA ', 'b )" )x" \\', "c"]


def test_a_name_that_ends_in_r_makes_no_raw_string() -> None:
    assert code('FOOR"(a" kCUDA ")"') == "FOOR     kCUDA    "


def test_a_raw_string_holds_comment_markers_and_line_ends() -> None:
    assert code('R"(/*\n//\n)" x') == "     \n  \n   x"


def test_quotes_in_literals_and_slashes_in_strings_open_nothing() -> None:
    assert code("""'"' a "//" b '\\'' c "\\"" d""").split() == ["a", "b", "c", "d"]


def test_comments_continue_behind_a_backslash_also_with_blanks_and_crlf() -> None:
    for splice in ("\\\n", "\\ \t\n", "\\\r\n", "\\\r"):
        assert code(f"// a {splice} b\nc").split() == ["c"], repr(splice)


def test_a_string_continues_behind_a_backslash() -> None:
    assert values('"EN\\\nG"') == ["ENG"]
    assert code('"a\\\nb" c') == "   \n   c"


def test_an_unterminated_string_ends_with_its_line_and_a_comment_with_the_file() -> None:
    assert code("\"a\nb 'c\nd /* e\nf") == "  \nb   \nd     \n "


def test_a_lone_carriage_return_ends_a_line() -> None:
    source = Source(b"// a\rb\r\nc\nd")
    assert source.code == "    \rb\r\nc\nd"
    assert [source.position(source.text.index(name)) for name in "bcd"] == [(2, 1), (3, 1), (4, 1)]
    assert source.line(3) == "c" and source.line(9) == "" and source.line(0) == ""


def test_one_byte_order_mark_is_stripped_and_columns_count_code_points() -> None:
    source = Source("\ufeff\ufeffé x".encode())
    assert source.text == "\ufeffé x"
    assert source.position(source.text.index("x")) == (1, 4)
    assert Source(b"\xff x").text == "\udcff x"


def test_adjacent_strings_are_one_unless_code_or_a_directive_is_between() -> None:
    assert values('"cu" /* c */ u8"da"\n "x"; "y", "z"') == ["cudax", "y", "z"]
    assert values('#define A "x"\n"y" L\'c\' "z"') == ["x", "y", "z"]
    assert values('"a"\n#ifdef X\n"b"\n#endif\n"c"') == ["a", "b", "c"]


def test_escapes_are_decoded() -> None:
    assert values(r'"\x63\165da\n\u00e9\U0001F600\q\"" "\xD800" "\x"') == ['cuda\né😀q"\ufffdx']


def test_a_header_name_is_no_comment_and_no_string() -> None:
    source = Source(b'#include <a//b\'s.h> // c\n# include "d.h"\nx')
    assert [(d.keyword, d.text) for d in source.directives] == [("include", "<a//b's.h>"), ("include", '"d.h"')]
    assert source.code.split() == ["#include", "#", "include", "x"]


def test_a_directive_holds_its_continued_lines_and_multi_line_comments() -> None:
    source = Source(b'#define N(a) \\\n  #a /* b\n c */ "x" // d \\\n e\n#undef N\n  /* f */ # pragma g')
    assert [(d.keyword, " ".join(d.text.split())) for d in source.directives] == [
        ("define", 'N(a) #a "x"'),
        ("undef", "N"),
        ("pragma", "g"),
    ]


def test_a_hash_inside_a_line_or_a_comment_is_no_directive() -> None:
    assert Source(b"a # if 0\n/*\n#if 0\n*/ b // \\\n#if 0\n").directives == []


def test_macros_are_a_view_of_their_own() -> None:
    source = Source(
        b'a\n#define D kCUDA \\\n  + 1\n#if kCUDA\nx // y\n#define E(n) n "z"\n#endif\n#if 0\n#define F\n#endif'
    )
    assert source.live.split() == ["a", "x"]
    assert source.macros.split() == [";", "D", "kCUDA", "+", "1", ";", "E(n)", "n"]
    assert source.view(source.text.index("+")) is source.macros
    assert source.view(source.text.index("x")) is source.live


DEAD = [
    ("#if 0\nA\n#else\nB\n#endif", "B"),
    ("#if 1\nA\n#else\nB\n#endif\nC", "A C"),
    ("#if 1\nA\n#elif X\nB\n#else\nC\n#endif", "A"),
    ("#if X\nA\n#elif 0\nB\n#else\nC\n#endif", "A C"),
    ("#if 0 && X\nA\n#elif 1 || X\nB\n#else\nC\n#endif", "B"),
    ("#if 0\n#if X\nA\n#else\nB\n#endif\n#elif X\nC\n#endif", "C"),
    ("#if 0\ndon't /* \n#endif\nA", "A"),
    ("#if 0\nA", ""),
    ("#endif\n#else\nA\n#elif 0\nB", "A B"),
    ("#ifdef X\nA\n#else\nB\n#else\nC\n#endif", "A B C"),
    ("#if\nA\n#endif", "A"),
]


@pytest.mark.parametrize(("text", "alive"), DEAD)
def test_only_branches_that_no_configuration_takes_are_dead(text: str, alive: str) -> None:
    source = Source(text.encode())
    assert source.live.split() == alive.split()
    for name in "ABC":
        if name in text:
            assert source.is_dead(text.index(name)) == (name not in alive.split())


def test_a_directive_in_a_dead_branch_is_dead() -> None:
    source = Source(b"#if 0\n#ifdef A\n#endif\n#elif B\n#endif\n#if 1\n#elif C\n#endif")
    assert [d.keyword for d in source.directives if d.dead] == ["ifdef", "endif", "elif"]


def test_each_branch_is_judged_by_its_own_condition() -> None:
    text = "#ifdef G\nA\n#elif H\nB\n#else\nC\n#endif\nD\n#ifndef G\nE\n#else\nF\n#endif"
    guarded = Source(text.encode()).guarded(lambda condition: "G" in asserted_names(condition))
    assert [name for name in "ABCDEF" if guarded(text.index(name))] == ["A", "F"]


def test_a_guard_encloses_nested_branches() -> None:
    text = "#if defined(G) && V > 1\n#ifdef X\nA\n#endif\nB\n#endif\nC"
    guarded = Source(text.encode()).guarded(lambda condition: "G" in asserted_names(condition))
    assert [name for name in "ABC" if guarded(text.index(name))] == ["A", "B"]


def test_asserted_names_follow_negation() -> None:
    assert asserted_names("A && !(B || !C) && !defined(D) && defined E && !F(2) && G != 2 && !!H") == list("ACEGH")


@pytest.mark.parametrize("condition", ["0", "(0)", "!1", "0 && X", "X && (0)", "0x0u", "00", "false", "!(1 || X)"])
def test_conditions_that_are_always_false(condition: str) -> None:
    assert constant(condition) is False


@pytest.mark.parametrize(
    "condition", ["", "X", "0 == 0", "(0) + 1", "f(0)", "0 ? 0 : 1", "0 &&", "((1)", "X || 0", "f"]
)
def test_conditions_whose_value_is_not_claimed(condition: str) -> None:
    assert constant(condition) is None


@pytest.mark.parametrize("condition", ["1", "0x10", "!0 && 5", "X || 1", "!(0 && X)", "true"])
def test_conditions_that_are_always_true(condition: str) -> None:
    assert constant(condition) is True


def test_a_statement_has_no_comments_and_ends_at_its_neighbours() -> None:
    source = Source(b'a;\n// b\n#if X\n  c("d", /* e */\n    f);\n#endif\ng;')
    assert " ".join(source.statement(source.text.index("f)")).split()) == 'c("d", f);'
    assert source.statement(source.text.index("X")) == "#if X"


@needs_compiler
def test_comments_agree_with_the_compiler_on_system_headers(tmp_path: Path) -> None:
    headers = _headers()[:60]
    assert len(headers) == 60, "too few system headers to compare with"
    for header in headers:
        text = header.read_text("utf-8", "surrogateescape")
        # In preprocessed input the compiler joins no lines, and rewrites directives: neither side gets any.
        text = re.sub(r"(?m)^(\s*)#", r"\1@", re.sub(r"\\\s*\n", "", text))
        file = tmp_path / "header.ii"
        file.write_text(text, "utf-8", "surrogateescape")
        command = [str(COMPILER), "-x", "c++", "-fpreprocessed", "-E", "-P", str(file)]
        result = subprocess.run(command, capture_output=True, check=True)
        source = Source(text.encode("utf-8", "surrogateescape"))
        ours = source.spelling(0, len(source.text))
        theirs = result.stdout.decode("utf-8", "surrogateescape")
        assert "".join(ours.split()) == "".join(theirs.split()), header


def _headers() -> list[Path]:
    found = sorted(p for p in Path("/usr/include").rglob("*") if p.is_file() and p.stat().st_size < 200_000)
    random.Random(7).shuffle(found)
    return found


@needs_compiler
def test_constant_conditions_agree_with_the_compiler(tmp_path: Path) -> None:
    draw = random.Random(11)

    def condition(depth: int) -> str:
        if depth == 0 or draw.random() < 0.3:
            return draw.choice(["0", "1", "X", "defined(X)", "0x0", "2", "X > 1", "!X", "!0"])
        left, right = condition(depth - 1), condition(depth - 1)
        return draw.choice(
            [f"({left})", f"!({left})", f"{left} && {right}", f"{left} || {right}", f"({left}) + {right}"]
        )

    conditions = [condition(3) for _ in range(400)]
    file = tmp_path / "conditions.cc"
    file.write_text("".join(f"#if {text}\nyes{i}\n#endif\n" for i, text in enumerate(conditions)))
    taken = []
    for definitions in ([], ["-DX=0"], ["-DX=2"]):
        command = [str(COMPILER), "-x", "c++", "-E", "-P", *definitions, str(file)]
        taken.append(set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()))
    claimed = [(i, value) for i, text in enumerate(conditions) if (value := constant(text)) is not None]
    for i, value in claimed:
        assert [f"yes{i}" in names for names in taken] == [value] * 3, conditions[i]
    assert len(claimed) > 50
