"""The Python reader: decoding, places, what can be code, and what names mean."""

import ast
import io
import sysconfig
import tokenize
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewright.readers.python import (
    Scope,
    arguments_of,
    dotted,
    imported_modules,
    parse,
    parse_around,
    utf8,
)
from gatewright.readers.python_lexer import code_hits, line_numbers, mask, split_lines

HIT = b"HIT"


def hits(data: bytes) -> list[int]:
    found, at = [], data.find(HIT)
    while at >= 0:
        found.append(at)
        at = data.find(HIT, at + 1)
    return found


def code_lines(source: str) -> list[int]:
    """The lines of those hits that may be code."""
    data = source.encode()
    return line_numbers(data, code_hits(data, hits(data))) if hits(data) else []


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"x = 1\n", "x = 1\n"),
        (b"\xef\xbb\xbfx = 1\n", "x = 1\n"),
        ("# coding: latin-1\nx = 'é'\n".encode("latin-1"), "# coding: latin-1\nx = 'é'\n"),
        (
            "\n# vim: set fileencoding=cp1252 :\nx = '€'\n".encode("cp1252"),
            "\n# vim: set fileencoding=cp1252 :\nx = '€'\n",
        ),
        (b"#!/usr/bin/python\n# -*- coding: utf-8 -*-\n", "#!/usr/bin/python\n# -*- coding: utf-8 -*-\n"),
    ],
)
def test_the_encoding_is_that_of_the_cookie_or_utf8(data: bytes, text: str) -> None:
    source = parse(data)
    assert source.text == text and source.tree is not None
    assert utf8(data).decode() == text


def test_a_cookie_counts_on_the_first_two_lines_only() -> None:
    late = b"x = 1\ny = 2\n# coding: latin-1\nz = '\xe9'\n"
    assert parse(late).tree is None
    behind_code = b"x = 1\n# coding: latin-1\nz = '\xe9'\n"
    assert parse(behind_code).tree is None


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"x = '\xff'\n", "not utf-8 at byte 5"),
        (b"x = (\n", "never closed"),
        (b"x\0y", "null"),
        (b"(" * 5000, "too many nested"),
        (b"x = " + b"-" * 100_000 + b"1", "nested too deeply"),
    ],
)
def test_what_does_not_parse_says_why(data: bytes, error: str) -> None:
    source = parse(data)
    assert source.tree is None and error in source.error


def test_parsing_warns_about_nothing() -> None:
    assert parse(b"x = '\\d' is 1\n").tree is not None


def test_lines_end_where_the_tokenizer_ends_them() -> None:
    text = "a\r\nb\rc\x0cd\x1ce\u2028f\n"
    assert split_lines(text) == ["a", "b", "c\x0cd\x1ce\u2028f", ""]
    assert split_lines("a\x0cb\nc") == ["a\x0cb", "c"]
    data = text.encode()
    assert line_numbers(data, [0, 3, 5, 6, data.index(b"f")]) == [1, 2, 3]
    assert line_numbers(b"a\nb\n\nc", [0, 2, 5]) == [1, 2, 4]


def test_columns_are_code_points() -> None:
    source = parse("é = '😀', name\nx = name\n".encode())
    assert source.tree is not None
    names = [node for node in ast.walk(source.tree) if isinstance(node, ast.Name) and node.id == "name"]
    assert sorted((node.lineno, source.column(node.lineno, node.col_offset)) for node in names) == [(1, 10), (2, 5)]


def test_a_segment_has_no_comments_and_an_end() -> None:
    source = parse("xé = f(  # one\n    'a # b',\n    c)  # two\n".encode())
    assert source.tree is not None
    node = source.tree.body[0]
    assert source.segment(node, node, 100).split() == ["xé", "=", "f(", "'a", "#", "b',", "c)"]
    long = parse(b"x = [\n" + b"    'aaaa',\n" * 10_000 + b"]\n")
    assert long.tree is not None
    assert len(long.segment(long.tree.body[0], long.tree.body[0], 100)) < 400


MAY_BE_CODE = {
    "plain": ("HIT\n", [1]),
    "comment": ("x = 1  # HIT\n", []),
    "docstring": ('def f():\n    """HIT"""\n', []),
    "raw docstring": ('r"""HIT\n"""\n', []),
    "docstring of several lines": ("'''a\nHIT\n'''\n", []),
    "bare string": ("x = 1\n'HIT'\ny = 2\n", []),
    "string before a comment": ("'HIT'  # note\n", []),
    "name in a string": ("x = 'HIT'\n", [1]),
    "prose in a string": ("x = 'a HIT b'\n", []),
    "prose of several lines": ('x = """\nHIT\n"""\n', []),
    "f-string": ("x = f'a {HIT} b'\n", [1]),
    "raw f-string": ("x = Rf'a {HIT} b'\n", [1]),
    "f-string alone": ("f'{HIT}'\n", [1]),
    "argument alone on its line": ("f(\n'HIT'\n)\n", [2]),
    "value alone on its line": ("x = {1:\n'HIT'\n}\n", [2]),
    "value behind a backslash": ("x = \\\n'HIT'\n", [2]),
    "second on its line": ("x; 'HIT'\n", [1]),
    "with a method": ("'HIT'.lower()\n", [1]),
    "bracket in a comment": ("# (\n'HIT'\n", []),
    "bracket in a string": ("x = '('\n'HIT'\n", []),
    "hash in a string": ("x = '#', HIT\n", [1]),
    "quote in a comment": ("x = 1  # it's\nHIT\n", [2]),
    "escaped quote": ("x = 'a\\'', HIT  # 'HIT\n", [1]),
    "raw string that ends in backslashes": ("x = r'\\\\', HIT\n", [1]),
    "quotes in long quotes": ('x = """a"b""c""", HIT\n', [1]),
    "empty strings": ("x = '', \"\", HIT\n", [1]),
    "string over a joined line": ("x = 'a\\\n#', HIT\n", [2]),
    "unclosed string": ("x = 'a # HIT\nHIT\n", [2]),
}


@pytest.mark.parametrize(("source", "lines"), MAY_BE_CODE.values(), ids=MAY_BE_CODE)
def test_only_what_may_be_code_is_kept(source: str, lines: list[int]) -> None:
    assert code_lines(source) == lines


def test_a_hit_in_code_is_never_dropped_in_real_files() -> None:
    """Against the tokenizer: each name and operator of the standard library's own source counts as code."""
    files = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[::8]
    names = 0
    for path in files:
        data = path.read_bytes()
        if b"\r" in data or not data.isascii():
            continue
        lines = data.splitlines(keepends=True)
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line))
        tokens = tokenize.tokenize(io.BytesIO(data).readline)
        offsets = [starts[t.start[0] - 1] + t.start[1] for t in tokens if t.type == tokenize.NAME]
        assert code_hits(data, offsets) == offsets, path
        names += len(offsets)
    assert names > 1000


def test_a_mask_keeps_every_place() -> None:
    source = "x = 'a\\'b'  # c\ny = f'{z}'\n'''d\ne'''\n"
    masked = mask(source)
    assert len(masked) == len(source) and masked.count("\n") == source.count("\n")
    assert "f'{z}'" in masked
    assert not any(letter in masked for letter in "abcde")


AROUND = {
    "function": "import os\ndef f():\n    a = 1\nHIT\n",
    "method": "import os\nclass A:\n    def f(self):\n        a = 1\n\n    def g(self):\n        HIT\n",
    "decorated": "import os\n@one\n@two(\n    3)\nasync def f(\n    a,\n) -> int:\n    b = 1\n\nHIT\n",
    "class": "import os\nclass A(B):\n    '''text\ndef g(): pass\n'''\n    x = 1\nHIT\n",
    "one line": "import os\ndef f(): return 1\nHIT\n",
    "low bracket": "import os\ndef f():\n    a = g(\n1)\n    b = 2\nHIT\n",
    "low backslash": "import os\ndef f():\n    a = \\\n1\n    b = 2\nHIT\n",
    "low string": "import os\ndef f():\n    a = '''\nb = 2\n'''.lower()\n    b = 2\nHIT\n",
    "low comment": "import os\ndef f():\n    a = 1\n# comment\n    b = 2\nHIT\n",
    "nested": "import os\nif x:\n    def f():\n        def g(): 1\n        a = 1\nelse:\n    HIT\n",
}


@pytest.mark.parametrize("source", AROUND.values(), ids=AROUND)
def test_only_definitions_without_a_hit_lose_their_bodies(source: str) -> None:
    data = source.encode()
    part = parse_around(data, hits(data))
    whole = parse(data)
    assert whole.tree is not None
    if part is None or part.tree is None:
        return
    assert [(type(n), n.lineno) for n in part.tree.body] == [(type(n), n.lineno) for n in whole.tree.body]
    found = [
        [(n.lineno, n.col_offset) for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == "HIT"]
        for tree in (part.tree, whole.tree)
    ]
    assert found[0] == found[1] != []
    assert part.lines == whole.lines


@pytest.mark.parametrize("name", ["function", "method", "decorated", "class", "low backslash", "low string", "nested"])
def test_bodies_are_left_out_where_blocks_are_plain(name: str) -> None:
    data = AROUND[name].encode()
    part = parse_around(data, hits(data))
    assert part is not None and part.tree is not None
    assert not any(isinstance(n, ast.Name) and n.id == "a" for n in ast.walk(part.tree) if hasattr(n, "lineno"))


def test_a_bracket_further_left_than_its_block_is_left_to_the_parser() -> None:
    data = AROUND["low bracket"].encode()
    assert parse_around(data, hits(data)) is None


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=120) | st.text("'\"#\\\n ()fr{}HIT", max_size=60).map(str.encode))
def test_no_content_makes_the_reader_raise(data: bytes) -> None:
    source = parse(data)
    plain = utf8(data)
    kept = code_hits(plain, hits(plain)) if hits(plain) else []
    assert set(kept) <= set(hits(plain))
    if kept:
        parse_around(plain, kept)
    assert len(mask(source.text)) == len(source.text)


def first(source: str) -> ast.stmt:
    return ast.parse(source).body[0]


def test_imported_modules_keep_their_dots() -> None:
    def modules(source: str) -> list[str]:
        node = first(source)
        assert isinstance(node, ast.Import | ast.ImportFrom)
        return imported_modules(node)

    assert modules("import a.b as c, d") == ["a.b", "d"]
    assert modules("from a import b, c as d") == ["a.b", "a.c"]
    assert modules("from . import b") == [".b"]
    assert modules("from ..a import b") == ["..a.b"]
    assert modules("from a import *") == ["a"]


def test_dotted_is_for_names_and_attributes_only() -> None:
    def of(source: str) -> str | None:
        node = first(source)
        assert isinstance(node, ast.Expr)
        return dotted(node.value)

    assert of("a.b.c") == "a.b.c"
    assert of("a") == "a"
    assert of("a().b") is None
    assert of("a[0].b") is None


def test_all_parameters_are_arguments() -> None:
    node = first("def f(a, /, b, *c, d, **e): pass")
    assert isinstance(node, ast.FunctionDef)
    assert {arg.arg for arg in arguments_of(node.args)} == set("abcde")


def test_names_are_resolved_through_scopes() -> None:
    module = Scope()
    for source in ("import a.b", "import a.b as c", "from d import e as f, g", "from . import h"):
        node = first(source)
        assert isinstance(node, ast.Import | ast.ImportFrom)
        module.bind_import(node)
    assert [module.resolve(name) for name in "acfghz"] == ["a", "a.b", "d.e", "d.g", ".h", "z"]
    assert module.resolve_chain("c.x.y") == "a.b.x.y"
    body = Scope(parent=Scope(parent=module, is_class=True, aliases={"q": "r"}))
    assert body.resolve("f") == "d.e"
    assert body.resolve("q") == "q"
    target = first("f, (c, *g) = x")
    assert isinstance(target, ast.Assign)
    body.bind_target(target.targets[0])
    assert [body.resolve(name) for name in "fcgh"] == ["f", "c", "g", ".h"]
