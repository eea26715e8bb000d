"""Device sites of Python: what the cheap stages drop is never a site, and nothing makes the extractor raise."""

import ast
import sys
import sysconfig
import tomllib
import unicodedata
from pathlib import Path

import msgspec
import pytest
from gates.timing import cpu_seconds
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gatewright.checks._device_policy import Policy, default_vocabulary
from gatewright.extractors import device_needles
from gatewright.extractors.device_needles import needles
from gatewright.extractors.device_python import extract, read
from gatewright.extractors.device_site import STATEMENT_LIMIT, Entry, Site, Vocabulary
from gatewright.readers import python
from gatewright.readers.python_lexer import code_hits

LAYERS = 'shared = []\nrooms = { gpu = ["p/gpu_room/**"] }\n'
VOCABULARY = msgspec.convert(tomllib.loads(LAYERS + default_vocabulary()), Policy).vocabulary
# Words that ordinary code is full of, so that ordinary code tests every kind of site.
COMMON = Vocabulary(
    (
        Entry("attribute", "path", ("os.path", "sys.version_info", "collections.abc", "re.compile")),
        Entry("predicate", "predicate", ("is_file", "is_absolute", "isatty")),
        Entry("literal", "literal", ("utf8", "ascii", "name", "linux", "win32", "r")),
        Entry("call", "call", ("encode", "mkdir", "lower")),
        Entry("import", "import", ("ctypes", "socket", "zlib")),
        Entry("word", "word", ("posix*", "HAVE_SSL", "*_TIMEOUT")),
        Entry("mark", "mark", ("requires_*", "cpython_only", "wraps")),
    ),
    rooms=("encodings", "windows*"),
)


def sites(source: str | bytes, vocabulary: Vocabulary = VOCABULARY) -> list[Site]:
    return extract(source if isinstance(source, bytes) else source.encode(), vocabulary)


def brief(source: str | bytes) -> list[tuple[str, int, int, str]]:
    return [(site.kind, site.line, site.column, site.token) for site in sites(source)]


def whole(data: bytes, vocabulary: Vocabulary) -> list[Site]:
    """Every node of the whole file visited, nothing skipped."""
    return read(python.utf8(data), vocabulary)


def real_files(limit: int) -> list[Path]:
    library = Path(sysconfig.get_paths()["stdlib"])
    packages = Path(sysconfig.get_paths()["purelib"])
    files = sorted(library.rglob("*.py")) + sorted(packages.rglob("*.py"))
    return files[:: max(1, len(files) // limit)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('"cuda:%d" % i', ["literal"]),
        ('"cuda:{}".format(i)', ["literal"]),
        ('"cuda:%(index)d" % i', ["literal"]),
        ('"cuda:x"', []),
        ('"cu" + "da"', ["literal"]),
        ('x = "c" + "u" + "da:0"', ["literal"]),
        ('"cu" + x + "da"', []),
        ('init(backend="cpu:gloo,cuda:nccl")', ["word"]),
        ("if (c := torch.cuda):\n    c.x()", ["attribute", "attribute"]),
        ("[c for y in z if (c := torch.cuda)]", ["attribute", "attribute"]),
        ("c, n = torch.cuda, 1\nc.x(n)", ["attribute", "attribute"]),
        ("n, c = torch.cuda, 1\nc.x()", ["attribute"]),
        ('import_module(".cuda", "torch")', ["dynamic"]),
        ('import_module(".cuda", package)', []),
        ('eval("torch.cuda.x() + 1")', ["dynamic"]),
        ('exec("import torch.cuda")', ["dynamic"]),
        ('log("torch.cuda is gone")', []),
        ('x: "torch.cuda.Stream | None" = None', ["dynamic"]),
        ('def f(x: Union[int, "torch.cuda.Stream | None"]): pass', ["dynamic"]),
        ("try: pass\nexcept E as nccl_error: pass", ["word"]),
        ("match x:\n    case nccl_a: pass", ["word"]),
        ("match x:\n    case [*nccl_a]: pass", ["word"]),
        ("match x:\n    case {**nccl_a}: pass", ["word"]),
        ("match x:\n    case C(nccl_a=1): pass", ["word"]),
    ],
)
def test_further_spellings_of_a_site(source: str, expected: list[str]) -> None:
    assert [site.kind for site in sites(source)] == expected


def test_text_alone_does_not_run_at_import() -> None:
    source = "N = ['torch.cuda.Stream']\ndef f(x: 'torch.cuda.Stream'): pass\nx: 'torch.cuda.Stream | None'\n"
    assert [(site.kind, site.import_time) for site in sites(source)] == [("dynamic", False)] * 3
    assert [site.import_time for site in sites("getattr(torch, 'cuda').init()")] == [True]


def test_the_stages_find_what_visiting_everything_finds_in_real_files() -> None:
    found = parsed = 0
    for path in real_files(260):
        data = path.read_bytes()
        if python.parse(data).tree is None:
            continue
        staged = extract(data, COMMON)
        assert staged == whole(data, COMMON), path
        parsed += 1
        found += len(staged)
    assert parsed > 200 and found > 200


# Pieces of source that are hard to lex, around a hole for a site.
PIECES = [
    "torch.cuda.f()\n",
    "x.to('cuda')\n",
    'x = "cu" "da"\n',
    'x = ("c"\n     "ud"  # a\n     "a:0")\n',
    "x = 'cu\\\nda'\n",
    "x = ' ' 'c\\x75' 'da'\n",
    "x = 'c\\x75' 'd\\141'\n",
    "torch.ｃｕｄａ.x\n",
    "from torch import ｃｕｄａ\n",
    "é.cuda('\\x41 b')\n",
    'x = "\\x63uda"\n',
    'x = "\\N{LATIN SMALL LETTER C}uda"\n',
    "if y.is_cuda: pass\n",
    'f"a {torch.cuda.x} b"\n',
    'f"""\n{torch.cuda.x}\n"""\n',
    "import torch.cuda as tc\n",
    "from torch import cuda as C\n",
    "C.Event(); tc.Stream()\n",
    "t = torch\n",
    "t.cuda.z\n",
    "D = torch.cuda\n",
    "D.x()\n",
    "from p import is_cuda as ask\n",
    "ask()\n",
    '"""torch.cuda"""\n',
    "'''torch.cuda\n\"\"\" '''\n",
    '# torch.cuda \' """\n',
    "x = '#' + torch.cuda.x\n",
    "x = {'a':\n'cuda'}\n",
    "x = (\n'cuda'\n)\n",
    "x = \\\n'cuda'\n",
    "x = '''\n  cuda'''\n",
    "@requires_cuda\n@@def h(): pass\n",
    "mark = skipif(not torch.cuda.x)\n",
    "x: 'torch.cuda.Stream | None' = 0\n",
    "def g(a: Union[int, 'list[torch.cuda.Stream] | None']): x = 1\n",
    "x = eval('torch.cuda.x + 1')\n",
    "x = 'cu' + 'da'\n",
    "x = 'cu' + y + 'da'\n",
    "if (w := torch.cuda): w.x()\n",
    "v, w = torch.cuda, 1\n",
    "w.x(); v.x()\n",
    "@mark\n@@class B: x = 1\n",
    "from p.gpu_room import x\n",
    "def g(a=torch.cuda.x): return [\n1]\n",
    "x = [\n1]\n",
    'x = r"\\"\n',
    "class D: 'cuda'\n",
    "\n",
    "y = 1\n",
    "é = 'é', torch.cuda.x\n",
]


@st.composite
def modules(draw: st.DrawFn) -> str:
    """Pieces at module level, in functions, in classes, and in functions of classes."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 8))):
        heads = draw(st.sampled_from([(), ("def f(x):",), ("class A:",), ("class A:", "def f(self):"), ("if x:",)]))
        indent = ""
        for head in heads:
            lines.append(f"{indent}{head}\n")
            indent += "    "
        for piece in draw(st.lists(st.sampled_from(PIECES), min_size=1, max_size=4)):
            lines.append(indent + piece.replace("@@", indent))
        lines.append(f"{indent}pass\n")
    return "".join(lines)


@settings(max_examples=400, deadline=None)
@given(modules(), st.sampled_from(["\n", "\r\n", "\r"]))
def test_the_stages_lose_no_site(source: str, line_end: str) -> None:
    data = source.replace("\n", line_end).encode()
    assume(python.parse(data).tree is not None)
    assert extract(data, VOCABULARY) == whole(data, VOCABULARY)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="cuda\"'\\ \n#fr{}():=.xtorh", max_size=60))
def test_the_stages_lose_no_site_of_odd_text(source: str) -> None:
    data = source.encode()
    if python.parse(data).tree is not None:
        assert extract(data, VOCABULARY) == whole(data, VOCABULARY)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: f"torch.cuda\n{text}".encode()))
def test_no_content_makes_it_raise(data: bytes) -> None:
    for site in extract(data, VOCABULARY):
        assert site.line >= 1 and site.column >= 1 and len(site.statement) <= STATEMENT_LIMIT


@pytest.mark.parametrize(
    "data",
    [
        b"torch.cuda" + b"\0",
        b"x = torch.cuda.f(" * 300,
        b"x = " + b"(" * 5000 + b"torch.cuda.x" + b")" * 5000,
        b"x = torch.cuda.x" + b"+ 1" * 20000,
        b"x = torch.cuda" + b".x" * 20000,
        b"x = torch.cuda" + b".x()" * 5000,
        b"x = 'cuda" * 3000,
        b"\xff\xfex\0=\0" + "torch.cuda".encode("utf-16-le"),
        b"# coding: utf-16\ntorch.cuda\n",
        b"# coding: nonsense\ntorch.cuda\n",
        b"# coding: rot13\ntorch.cuda\n",
        b"torch.cuda \xff\n",
        b"def f():\n" + b" " * 3000 + b"torch.cuda.x\n",
        b"if torch.cuda.x: pass\n" + b"elif torch.cuda.y: pass\n" * 2000,
    ],
    ids=range(14),
)
def test_extreme_files_do_not_raise(data: bytes) -> None:
    extract(data, VOCABULARY)
    extract(data, COMMON)


@pytest.mark.parametrize("line", ["x = 'it' # ", "'cu' # ", "x = '''", "torch.cuda;", "'a' 'cuda' ", "def f(): x\n"])
def test_time_grows_with_size_only(line: str) -> None:
    """Ten times the text takes nothing like a hundred times as long."""

    @cpu_seconds
    def seconds(count: int) -> None:
        data = line.encode() * count
        extract(data, VOCABULARY)

    seconds(100)
    assert seconds(20_000) < 40 * max(seconds(2_000), 0.005)


def test_an_encoding_is_respected() -> None:
    assert brief("# coding: latin-1\nx = 'é', torch.cuda.x\n".encode("latin-1")) == [
        ("attribute", 2, 10, "torch.cuda.x")
    ]
    assert brief(b"# coding: utf-7\nx = '+AGM-uda'\n") == [("literal", 2, 5, '"cuda"')]
    assert brief(b"\xef\xbb\xbftorch.cuda.x\n") == [("attribute", 1, 1, "torch.cuda.x")]


def test_lines_end_as_the_parser_says() -> None:
    assert brief("a = 1\rb = '\x0c\x1c'\r\n\x0ctorch.cuda.x\n") == [("attribute", 3, 2, "torch.cuda.x")]


def test_columns_count_code_points() -> None:
    assert brief("a = 'é€😀'; torch.cuda.x\n") == [("attribute", 1, 12, "torch.cuda.x")]


def test_identifiers_are_normalised() -> None:
    assert brief("torch.ｃｕｄａ.x\n") == [("attribute", 1, 1, "torch.cuda.x")]


def test_all_letters_that_normalise_to_ascii_are_known() -> None:
    for point in range(128, sys.maxunicode + 1):
        char = chr(point)
        if f"a{char}".isidentifier():
            folded = unicodedata.normalize("NFKC", char)
            if any(c.isascii() and (c.isalnum() or c == "_") for c in folded):
                assert device_needles._COMPATIBLE.search(char), hex(point)


def test_a_name_means_what_its_scope_says() -> None:
    shadowed = "from torch import cuda as C\ndef f(C):\n    return C.x\ndef g():\n    return C.y\n"
    assert [(line, token) for kind, line, _, token in brief(shadowed) if kind == "attribute"] == [(5, "torch.cuda.y")]
    local = "def f():\n    import torch.cuda as tc\n    tc.x()\ndef g(tc):\n    tc.x()\n"
    assert [line for _, line, _, _ in brief(local)] == [2, 3]
    in_class = "class A:\n    C = torch.cuda\n    C.x\n    def f(self):\n        C.y\n"
    assert [line for _, line, _, _ in brief(in_class)] == [2, 3]


def test_a_reassigned_name_is_no_alias_of_its_root() -> None:
    assert brief("import other as torch\ntorch.cuda.x\n") == []
    assert [line for _, line, _, _ in brief("torch = pytest.importorskip('torch')\ntorch.cuda.x\n")] == [2]


def test_an_alias_of_an_alias_assigned_later_is_a_blind_spot() -> None:
    assert brief("def f():\n    return b.z\nb = a\na = torch\nb.cuda\n") == []


def test_a_value_that_names_the_device_is_a_blind_spot() -> None:
    assert brief("def f(name):\n    return getattr(torch, name)\n") == []


def test_far_apart_string_pieces_are_a_blind_spot() -> None:
    near = "x = ('cu'\n" + "# note\n" * 20 + "'da')\n"
    far = "x = ('cu'\n" + "# note\n" * 200 + "'da')\n"
    assert len(sites(near)) == 1
    assert sites(far) == [] and len(whole(far.encode(), VOCABULARY)) == 1


def test_a_statement_is_one_line_without_comments() -> None:
    (site,) = sites("x = f(  # why\n    torch.cuda.x,\n    # gate: more\n    '#1',\n)\n")
    assert site.statement == "x = f( torch.cuda.x, '#1', )"
    (header,) = sites("def f():\n  for a in torch.cuda.x:\n    b\n    c\n")
    assert header.statement == "for a in torch.cuda.x"
    assert len(sites(f"torch.cuda.x({'a, ' * 500})\n")[0].statement) == STATEMENT_LIMIT


def test_code_that_does_not_parse_beside_a_site_leaves_the_site_exact() -> None:
    source = "import os\ndef old():\n    print 'x'\ndef f():\n    return torch .cuda.x\n"
    assert brief(source) == [("attribute", 5, 12, "torch.cuda.x")]


def test_a_part_that_may_hold_a_site_and_does_not_parse_is_read_by_pattern() -> None:
    source = "def f():\n    print torch.cuda.x  # torch.cuda\n    s = 'torch.cuda'\n"
    assert [(kind, line) for kind, line, _, _ in brief(source)] == [("unparsable", 1), ("attribute", 2)]


def test_files_without_a_word_are_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> ast.Module:
        raise AssertionError("parsed")

    monkeypatch.setattr(ast, "parse", refuse)
    assert sites('"""torch.cuda"""\n# torch.cuda\ndef f():\n    "cuda"\nx = "the cuda device"\n') == []


def test_definitions_without_a_hit_are_not_parsed() -> None:
    source = "class A:\n" + "".join(f"    def f{n}(self):\n        return {n} * (self.a + self.b)\n" for n in range(50))
    data = (source + "    def g(self):\n        torch.cuda.x\n").encode()
    part = python.parse_around(data, code_hits(data, needles(VOCABULARY).hits(data)))
    assert part is not None and part.tree is not None
    assert len(list(ast.walk(part.tree))) < len(list(ast.walk(ast.parse(data)))) * 0.5
