"""Which variables Python source reads: the forms of a read, and how names are told across files."""

import msgspec
import pytest
from gates.timing import cpu_seconds
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewright.checks._env_policy import Code, Policy
from gatewright.checks._env_resolution import Resolution, resolve
from gatewright.checks.env_doc import reading
from gatewright.core.facts import Extractor
from gatewright.core.tree import Tree
from gatewright.extractors.env_python import extract
from gatewright.extractors.env_read import EnvFacts, Options

POLICY = Policy(code=Code(python=("**/*.py",), exclude=()))


def resolved(**files: str) -> Resolution:
    """Resolve files given by their paths without the suffix."""
    tree = Tree.of({f"{name}.py": text for name, text in files.items()})
    return resolve(tree, lambda options: reading(POLICY, options))


def names(**files: str) -> list[str]:
    result = resolved(**files)
    assert not untold(result), result.unresolved
    return sorted({use.name for use in result.uses})


def untold(result: Resolution) -> list[tuple[str, str]]:
    """Names that cannot be told, functions that nothing calls left out."""
    return [(site.text, site.pattern) for site in result.unresolved if not site.reason.startswith("no call of")]


def failures(**files: str) -> list[tuple[str, str]]:
    return untold(resolved(**files))


def defaults(**files: str) -> list[tuple[str, str | None]]:
    return [(use.name, use.default and use.default.literal) for use in resolved(**files).uses]


EVERY_FORM = """import os
os.environ["ENG_A"]; os.environ.get("ENG_B"); os.getenv("ENG_C", "1")
from os import environ as E, getenv as g
E["ENG_D"]; g("ENG_E"); "ENG_F" in os.environ; os.environ.pop("ENG_G", None)
os.environ.setdefault("ENG_H", "0"); env = os.environ; env["ENG_I"]
"""


def test_ed_01_every_read_form_with_its_place() -> None:
    uses = resolved(m=EVERY_FORM).uses
    assert [use.name[-1] for use in uses] == list("ABCDEFGHI")
    assert [use.form for use in uses] == [
        "subscript", "get", "getenv", "subscript", "getenv", "in", "pop", "setdefault", "subscript",
    ]  # fmt: skip
    assert [(use.line, use.column) for use in uses[:3]] == [(2, 1), (2, 22), (2, 47)]


@pytest.mark.parametrize(
    "source",
    [
        "import os as o\no.environ['ENG_A']",
        "import os\nos.environb[b'ENG_A']",
        "import os\nos.getenvb(b'ENG_A')",
        "import os\nos.getenv(key='ENG_A')",
        "from os import *\ngetenv('ENG_A')",
        "import os\nget = os.environ.get\nget('ENG_A')",
        "import os\nos.environ.copy()['ENG_A']",
        "import os\ndict(os.environ).get('ENG_A')",
        "import os\nfrom collections import ChainMap\nChainMap({}, os.environ)['ENG_A']",
        "import os\nfrom types import MappingProxyType as M\nM(os.environ).get('ENG_A')",
        "import os\nenv = {**os.environ, 'X': '1'}\nenv['ENG_A']",
        "import os\ndef f(env=None):\n    env = os.environ if env is None else env\n    return env.get('ENG_A')",
        "import os\ndef f(env=os.environ):\n    return env['ENG_A']",
        "import os\n'ENG_A' not in os.environ",
        "import os\n'ENG_A' in os.environ.keys()",
        "import os\nos.environ.__contains__('ENG_A')",
        "import os\nos.environ['ENG_A'] += ':x'",
        "import os\nif (e := os.environ):\n    e['ENG_A']",
        "import os\nos.environ.get('ENG_' + 'A')",
        "import os\nos.environ.get(f'ENG_{\"A\"}')",
        "import os\nfor n in ('ENG_A',):\n    os.getenv(n)",
        "import os\n[os.getenv(n) for n in ['ENG_A']]",
        "import os\nNAMES = {'a': 'ENG_A'}\nfor k, n in NAMES.items():\n    os.getenv(n)",
        "import os\nfrom functools import partial\npartial(os.getenv, 'ENG_A')",
        "import os  # environ\nimport click\n@click.option('--a', envvar='ENG_A')\ndef main(a): pass",
        "import os\nclass N:\n    A = 'ENG_A'\n    def f(self):\n        return os.getenv(self.A)\n",
        "import os\na, b = 'x', 'ENG_A'\nos.getenv(b)",
        "import os\nasync def f():\n    return os.getenv('ENG_A')",
        "__import__('os').environ['ENG_A']",
        "import importlib\nimportlib.import_module('os').getenv('ENG_A')",
        "import os\ngetattr(os, 'environ')['ENG_A']",
        "import os\ngetattr(os, 'getenv')('ENG_A')",
        "import os\nclass C:\n    env = os.environ\n    def f(self): return self.env['ENG_A']",
        "import os\nclass C:\n    def __init__(self): self.env = os.environ\n    def f(self): return self.env['ENG_A']",
        "import os\nclass C:\n    def __init__(self, env=None):\n        self.env = env or os.environ\n"
        "    def f(self): return self.env.get('ENG_A')",
        "import os\ndef env(): return os.environ\nenv()['ENG_A']",
        "import os\ndef child():\n    e = os.environ.copy()\n    e['ENG_W'] = '1'\n    return e\nchild()['ENG_A']",
        "import os\nfrom functools import partial\nread = partial(os.getenv, default='1')\nread('ENG_A')",
        "import os\nos.path.expandvars('$ENG_A/x')",
        "import os\nos.path.expandvars('x/${ENG_A}')",
        "import click  # environ\n@click.option('--a', envvar=['ENG_A'])\ndef main(a): pass",
        "import os\nP = 'ENG_'\nos.getenv('%sA' % P)",
        "import os\nos.getenv('%s_%s' % ('ENG', 'A'))",
        "import os\nos.getenv('{}_{}'.format('ENG', 'A'))",
        "import os\nN = {'a': 'ENG_A'}\nos.getenv(N['a'])",
        "import os\nN = ('x', 'ENG_A')\nos.getenv(N[1])",
        "import os, enum\nclass N(enum.Enum):\n    A = 'ENG_A'\nos.getenv(N.A.value)",
        "import os, enum\nclass N(enum.Enum):\n    A = 'ENG_A'\nfor n in N:\n    os.getenv(n.value)",
        "import os\nfor n, d in (('ENG_A', '1'),):\n    os.getenv(n, d)",
        "import os\nN = [('ENG_A', '1')]\nx = {n: os.getenv(n, d) for n, d in N}",
        "import os\nfor i, n in enumerate(['ENG_A']):\n    os.getenv(n)",
        "import os\nfor i, n in zip([1], ['ENG_A']):\n    os.getenv(n)",
    ],
)
def test_further_spellings_of_a_read(source: str) -> None:
    assert names(m=source) == ["ENG_A"]


@pytest.mark.parametrize(
    "source",
    [
        'import os\nos.environ["ENG_W"] = "1"',
        'import os\ndel os.environ["ENG_X"]',
        'import os\ndef test(monkeypatch):\n    monkeypatch.setenv("ENG_Y", "1")',
        'import os, subprocess\nsubprocess.run([], env={**os.environ, "ENG_Z": "1"})',
        'import os\nos.environ.update({"ENG_W": "1"})',
        'import os\nos.putenv("ENG_W", "1")',
        'import os\n# os.getenv("ENG_W")\n"""os.getenv("ENG_W")"""',
        'import os\nenviron = {}\nenviron["ENG_W"]',
        'import os\ndef environ(n): pass\nenviron("ENG_W")',
        'config = {}\nconfig.get("ENG_W")  # getenv',
        'import os\nclass C:\n    def environ(self): return {}\nC().environ()["ENG_W"]',
    ],
)
def test_ed_02_writes_and_look_alikes_are_not_reads(source: str) -> None:
    assert names(m=source) == []


def test_ed_02_a_child_process_that_reads_the_name_is_a_read() -> None:
    parent = 'import os, subprocess\nsubprocess.run([], env={**os.environ, "ENG_Z": "1"})'
    assert names(parent=parent, child='import os\nos.getenv("ENG_Z")') == ["ENG_Z"]


def test_ed_04_a_name_in_an_imported_constant_is_read_where_it_is_used() -> None:
    result = resolved(names='CACHE = "ENG_CACHE_DIR"', use="import os\nfrom names import CACHE\nos.environ.get(CACHE)")
    assert [(use.name, use.path, use.line) for use in result.uses] == [("ENG_CACHE_DIR", "use.py", 3)]


@pytest.mark.parametrize(
    "constant",
    [
        'CACHE = "ENG_A"\nCACHE = "ENG_B"',
        'CACHE = "ENG_A"\nCACHE += "B"',
        'CACHE = "ENG_A"\ndef f():\n    global CACHE\n    CACHE = "ENG_B"',
        "CACHE = pick()",
        "OTHER = 1",
    ],
)
def test_ed_04_a_constant_that_is_not_one_text_fails_closed(constant: str) -> None:
    use = "import os\nfrom names import CACHE\nos.environ.get(CACHE)"
    assert failures(names=constant, use=use) == [("CACHE", "*")]
    assert len(failures(both="import os\n" + constant + "\nos.environ.get(CACHE)")) == 1


@pytest.mark.parametrize(
    "files",
    [
        {"pkg/__init__": "", "pkg/names": 'C = "ENG_A"', "pkg/m": "import os\nfrom .names import C\nos.getenv(C)"},
        {"pkg/__init__": "from .names import C", "pkg/names": 'C = "ENG_A"', "m": "import os, pkg\nos.getenv(pkg.C)"},
        {
            "pkg/__init__": "from .n import *",
            "pkg/n": 'C = "ENG_A"',
            "m": "import os\nfrom pkg import C\nos.getenv(C)",
        },
        {"src/pkg/__init__": "", "src/pkg/n": 'C = "ENG_A"', "m": "import os\nimport pkg.n as q\nos.getenv(q.C)"},
        {"a/b/__init__": "", "a/n": 'C = "ENG_A"', "a/b/m": "import os\nfrom ..n import C as D\nos.getenv(D)"},
        {"n": 'C = "ENG_A"', "m": "import os\nimport n\nos.getenv(n.C)"},
        {"pkg/n": 'C = "ENG_A"', "m": "import os\nimport pkg.n\nos.getenv(pkg.n.C)"},
        {"t/n": 'C = "ENG_A"', "u/n": 'C = "ENG_B"', "t/m": "import os\nfrom n import C\nos.getenv(C)"},
        {"n": 'class Names:\n    C = "ENG_A"', "m": "import os\nfrom n import Names\nos.getenv(Names.C)"},
        {"n": 'A = "ENG_A"\nC = A', "m": "import os\nfrom n import C\nos.getenv(C)"},
    ],
    ids=["relative", "re-export", "wildcard", "source root", "parent", "module", "package", "beside", "class", "alias"],
)
def test_constants_are_followed_through_imports(files: dict[str, str]) -> None:
    assert names(**files) == ["ENG_A"]


REGISTRY = """import os
VARS = {"ENG_P": lambda: flag("ENG_P", "0"), "ENG_Q": lambda: os.getenv("ENG_QQ")}
def flag(name, default): return os.getenv(name, default) == "1"
def __getattr__(n): return VARS[n]()
"""


@pytest.mark.parametrize(
    "registry",
    [
        "VARS['ENG_P'] = lambda: os.getenv('ENG_PP')",
        "VARS = dict(ENG_P=lambda: os.getenv('ENG_PP'))",
        "KEY = 'ENG_P'\nVARS = {KEY: lambda: os.getenv('ENG_PP')}",
        "VARS.update({'ENG_P': lambda: os.getenv('ENG_PP')})",
        "def lazy(n): return lambda: os.getenv(n)\nVARS = {'ENG_P': lazy('ENG_PP'), 'ENG_Q': lambda: 1}",
    ],
)
def test_ed_05_further_spellings_of_a_registry(registry: str) -> None:
    result = resolved(m=f"import os\n{registry}\n")
    assert [(use.entry, use.name) for use in result.uses] == [("ENG_P", "ENG_PP")]
    assert [entry.key for _, entry in result.entries] == ["ENG_P"]


def test_ed_05_the_environment_of_a_child_is_no_registry() -> None:
    assert resolved(m="import os\nrun(env={'ENG_P': os.environ['ENG_PP']})").entries == []


def test_ed_05_a_registry_of_lambdas_is_read_with_its_keys() -> None:
    result = resolved(envs=REGISTRY)
    assert [(use.name, use.entry) for use in result.uses] == [("ENG_P", "ENG_P"), ("ENG_QQ", "ENG_Q")]
    assert [(entry.key, entry.line) for _, entry in result.entries] == [("ENG_P", 2), ("ENG_Q", 2)]
    assert not any(entry.used for _, entry in result.entries)
    used = resolved(envs=REGISTRY + "\nVARS['ENG_P']\n")
    assert [entry.used for _, entry in used.entries] == [True, False]


WRAPPERS = {
    "w": """import os
def flag(name, default="0"): return os.getenv(name, default)
def outer(*, name): return flag(name)
def prefixed(part): return os.environ["ENG_" + part]
class Env:
    def text(self, name): return os.environ[name]
    @staticmethod
    def static(name): return os.environ[name]
class Sub(Env): pass
env = Env()
""",
}


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("from w import flag\nflag('ENG_A')", ["ENG_A"]),
        ("from w import flag as f\nf(name='ENG_A')", ["ENG_A"]),
        ("import w\nw.outer(name='ENG_A')", ["ENG_A"]),
        ("from w import prefixed\nprefixed('A')", ["ENG_A"]),
        ("from w import Env\nEnv().text('ENG_A')", ["ENG_A"]),
        ("from w import env\nenv.text('ENG_A')", ["ENG_A"]),
        ("from w import Sub\nSub().text('ENG_A')", ["ENG_A"]),
        ("def f(env):\n    return env.text('ENG_A')", ["ENG_A"]),
        ("from w import Env\nEnv.static('ENG_A')", ["ENG_A"]),
        ("from w import Env\nisinstance(x, Env)\nissubclass(Env, object)", []),
        ("from functools import partial\nfrom w import flag\npartial(flag, 'ENG_A')", ["ENG_A"]),
        (
            "from w import flag\ndef third(n): return flag(n)\ndef fourth(n): return third(n)\nfourth('ENG_A')",
            ["ENG_A"],
        ),
        ("from w import flag\nfor n in ('ENG_A', 'ENG_B'):\n    flag(n)", ["ENG_A", "ENG_B"]),
        ("def flag(name): pass\nflag('ENG_A')", []),
        ("from other import flag\nflag('ENG_A')", []),
        ("class Box:\n    def text(self, n): pass\nBox().text('ENG_A')", []),
        ("def f(box):\n    return box.text('some words')", []),
    ],
)
def test_wrappers_are_followed_to_a_fixpoint_and_through_imports(call: str, expected: list[str]) -> None:
    assert names(**WRAPPERS, m=call) == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("flag('ENG_A')", "0"),
        ("flag('ENG_A', '7')", "7"),
        ("flag('ENG_A', default='8')", "8"),
        ("flag('ENG_A', 9)", "9"),
        ("flag('ENG_A', None)", None),
        ("flag('ENG_A', compute())", None),
    ],
)
def test_a_wrappers_default_is_what_the_call_gives(call: str, expected: str | None) -> None:
    assert defaults(**WRAPPERS, m=f"from w import flag\n{call}") == [("ENG_A", expected)]


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        ("os.getenv('ENG_A')", None),
        ("os.getenv('ENG_A', None)", None),
        ("os.getenv('ENG_A', default='x')", "x"),
        ("os.getenv('ENG_A') or 'y'", "y"),
        ("os.environ.get('ENG_A', -1)", "-1"),
        ("os.environ.get('ENG_A', True)", "True"),
        ("os.environ.get('ENG_A', str(4))", "4"),
        ("os.environ.get('ENG_A', LIMIT)", "64"),
    ],
)
def test_defaults_of_direct_reads(read: str, expected: str | None) -> None:
    assert defaults(m=f"import os\nLIMIT = 64\n{read}") == [("ENG_A", expected)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("os.environ[name()]", ("name()", "*")),
        ("os.environ[f'ENG_{x}_PORT']", ("f'ENG_{x}_PORT'", "ENG_*_PORT")),
        ("os.environ['ENG_%s' % x]", ("'ENG_%s' % x", "ENG_*")),
        ("os.environ['ENG_{}'.format(x)]", ("'ENG_{}'.format(x)", "ENG_*")),
        ("os.environ['ENG_' + x]", ("'ENG_' + x", "ENG_*")),
        ("list(map(os.getenv, some))", ("os.getenv", "*")),
        ("def flag(n): return os.getenv(n)\nlist(map(flag, some))", ("flag", "*")),
        ("def flag(n): return os.getenv(n)\nflag(*some)", ("*n", "*")),
        ("def flag(n): return os.getenv(n)\nflag(f'ENG_{x}')", ("f'ENG_{x}'", "ENG_*")),
        ("def flag(n):\n    n = n.upper()\n    return os.getenv(n)\nflag('x')", ("n", "*")),
        ("os.environ[template().format(x)]", ("template().format(x)", "*")),
        ("a, b = pair()\nos.getenv(b)", ("b", "*")),
        ("a, b = 'x',\nos.getenv(b)", ("b", "*")),
        ("for n in some:\n    os.getenv(n)", ("n", "*")),
        ("x = 'ENG_A'\nx = y\nos.getenv(x)", ("x", "*")),
    ],
)
def test_names_that_cannot_be_told_are_reported_with_what_is_known(source: str, expected: tuple[str, str]) -> None:
    assert failures(m="import os\n" + source) == [expected]


def test_a_wrapper_that_nothing_calls_fails_closed() -> None:
    source = "import os\ndef flag(n): return os.getenv(f'ENG_{n}')\ndef outer(m): return flag(m)\n"
    (site,) = resolved(m=source).unresolved
    assert (site.line, site.text, site.pattern, site.reason) == (3, "m", "ENG_*", "no call of outer is in sight")
    assert resolved(m=source + "outer('A')\n").unresolved == []


def test_a_wrapper_that_is_called_without_a_name_reads_nothing() -> None:
    source = "import os\ndef flag(key, env=None): return os.getenv(env) if env else key\nflag(1)\nflag(1, 'ENG_A')\n"
    assert names(m=source) == ["ENG_A"]


def test_calls_that_only_share_a_parameter_with_a_wrapper_are_not_followed() -> None:
    lib = "import os\ndef flag(n, kind):\n    use(kind)\n    return os.getenv(n)\nflag('ENG_A', 'x')\n"
    asked: list[str] = []
    tree = Tree.of({"lib.py": lib, "use.py": "def use(kind): return other(kind)\ndef other(kind): pass\n"})

    def source(options: Options) -> list[Extractor]:
        asked.extend(options.names)
        return reading(POLICY, options)

    assert [use.name for use in resolve(tree, source).uses] == ["ENG_A"]
    assert asked == ["flag"]


def test_long_chains_of_aliases_are_followed_so_far_and_then_fail_closed() -> None:
    def chain(length: int) -> str:
        links = "".join(f"a{i} = a{i - 1}\n" for i in range(1, length))
        return f"import os\na0 = 'ENG_A'\n{links}os.getenv(a{length - 1})\n"

    assert names(m=chain(12)) == ["ENG_A"]
    assert failures(m=chain(60)) == [("a59", "*")]


@pytest.mark.parametrize("again", ["flag('X' + n)", "flag('X' + n) or flag('Y' + n) or flag(n + 'Z')"])
def test_a_wrapper_that_calls_itself_with_longer_names_ends_and_fails_closed(again: str) -> None:
    result = resolved(m=f"import os\ndef flag(n):\n    return os.getenv(n) or {again}\nflag('ENG_A')\n")
    assert {"ENG_A", "XENG_A"} <= {use.name for use in result.uses}
    assert {site.reason for site in result.unresolved} == {"flag calls itself with ever longer names"}


def test_a_wrapper_that_calls_itself_with_the_same_name_is_one_read() -> None:
    assert names(m="import os\ndef flag(n):\n    return os.getenv(n) or flag(n)\nflag('ENG_A')\n") == ["ENG_A"]


def test_fields_that_no_parameter_fills_are_not_names() -> None:
    source = """import os
class C:
    def __init__(self, name):
        self.name = name.strip()
        self.kind: str = name
        self.other[0] = name
    def f(self): return os.getenv(self.kind)
    def g(self): return os.getenv(self.name)
C("ENG_A")
"""
    assert names(m=source.replace("    def g(self): return os.getenv(self.name)\n", "")) == ["ENG_A"]
    assert failures(m=source) == [("self.name", "*")]


def test_values_passed_through_a_wrapper_are_not_the_wrapper_itself() -> None:
    source = "import os\ndef flag(n): return os.getenv(n)\nvalue = flag('ENG_A')\nuse(value)\nuse(flag('ENG_B'))\n"
    assert names(m=source) == ["ENG_A", "ENG_B"]


DESCRIPTORS = """import os
class Field:
    def __init__(self, default): self.default = default
    def __set_name__(self, owner, name): self.name = name
    def get(self): return os.getenv(self.name, self.default)
class Flag(Field): pass
class Named:
    def __init__(self, name, default="n"):
        self.name = name
        self.default = default
    def get(self): return os.environ.get(self.name, self.default)
class Child(Named):
    def __init__(self, name): super().__init__(name, "c")
"""


def test_descriptors_read_the_attribute_they_are_assigned_to() -> None:
    use = "from d import Flag, Field\nclass Envs:\n    ENG_A = Flag(False)\n    ENG_B = Field('x')\n"
    assert defaults(d=DESCRIPTORS, use=use) == [("ENG_A", "False"), ("ENG_B", "x")]


def test_constructors_that_keep_the_name_are_wrappers() -> None:
    use = "from d import Named, Child\nNamed('ENG_A')\nNamed(name='ENG_B', default='1')\nChild('ENG_C')\n"
    assert defaults(d=DESCRIPTORS, use=use) == [("ENG_A", "n"), ("ENG_B", "1"), ("ENG_C", "c")]


def test_a_typed_registry_with_a_closure_is_read_at_its_declarations() -> None:
    source = """import os
REGISTRY = {}
def declare(name, default):
    variable = Variable(name, lambda: os.environ.get(name, default))
    REGISTRY[name] = variable
    return variable
PORT = declare("ENG_PORT", "80")
"""
    result = resolved(env=source)
    assert [(use.name, use.line, use.default and use.default.literal) for use in result.uses] == [("ENG_PORT", 7, "80")]


def test_a_table_of_records_is_read_through_its_loop() -> None:
    source = """import os
from dataclasses import dataclass
@dataclass
class Variable:
    name: str
    default: str
TABLE = (Variable("ENG_A", "1"), Variable("ENG_B", "2"))
for variable in TABLE:
    os.environ.get(variable.name, variable.default)
"""
    assert defaults(env=source) == [("ENG_A", "1"), ("ENG_B", "2")]


@pytest.mark.parametrize(
    "source",
    [
        "import os\ndef load(env): return env['ENG_A']\nload(os.environ)",
        "import os\ndef load(*, env): return env.get('ENG_A')\nload(env=os.environ)",
        "import os\ndef a(env): return b(env)\ndef b(m): return 'ENG_A' in m\na(os.environ)",
        "import os\nclass S:\n    def __init__(self, env): self.env = env\n"
        "    def f(self): return self.env['ENG_A']\nS(os.environ)",
    ],
    ids=["positional", "keyword", "handed on", "constructor"],
)
def test_a_parameter_that_receives_the_environment_is_the_environment(source: str) -> None:
    assert names(m=source) == ["ENG_A"]
    assert names(m=source.replace("(os.environ)", "({})").replace("env=os.environ", "env={}")) == []


def test_the_environment_reaches_functions_of_other_files() -> None:
    files = {"lib": "def load(env): return env['ENG_A']", "main": "import os\nfrom lib import load\nload(os.environ)"}
    assert names(**files) == ["ENG_A"]


@pytest.mark.parametrize(
    "source",
    [
        "import os\nclass C: pass\nc = C()\nc.env = os.environ\nc.env['ENG_A']",
        "import os\n[v for k, v in os.environ.items() if k == 'ENG_A']",
        "exec('import os; os.getenv(\"ENG_A\")')  # getenv",
        "from pydantic_settings import BaseSettings  # environ\nclass S(BaseSettings):\n    eng_a: str = ''",
    ],
    ids=["attribute", "iteration", "exec", "settings library"],
)
def test_declared_blind_spots(source: str) -> None:
    assert names(m=source) == []


def test_declared_blind_spot_of_an_alias_made_in_another_file() -> None:
    assert names(lib="import os\nENV = os.environ", m="from lib import ENV\nENV['ENG_A']") == []


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (b'import os\nos.getenv("ENG_A")\ndef (:\n', "invalid syntax"),
        (b'os.environ["ENG_A"]\n\x00', "null bytes"),
        (b'# \xff\nos.environ.get("ENG_A")', "utf-8"),
    ],
)
def test_a_file_that_does_not_parse_says_so_and_shows_its_literal_reads(source: bytes, reason: str) -> None:
    (facts,) = extract(source, Options())
    assert reason in facts.unparsed
    assert [read.name.literal for read in facts.reads] == ["ENG_A"]


def test_lexical_reads_leave_out_assignments_and_know_their_line() -> None:
    (facts,) = extract(b'(\nos.environ["ENG_W"] = 1\r\nos.environ["ENG_A"] == 1\n', Options())
    assert [(read.name.literal, read.line) for read in facts.reads] == [("ENG_A", 3)]


def test_columns_count_code_points_and_statements_are_normalised() -> None:
    (facts,) = extract("import os\ns = '測測';   x = os.getenv('ENG_A')".encode(), Options())
    assert [(read.line, read.column) for read in facts.reads] == [(2, 17)]
    assert facts.reads[0].statement == "s = '測測'; x = os.getenv('ENG_A')"


def test_files_without_a_trace_of_the_environment_are_not_parsed() -> None:
    assert extract(b"def (", Options()) == []
    assert extract(b"environ = 1", Options()) == []
    assert extract(b"x = flag", Options(("flag",))) == []
    assert extract(b"def (", Options(("flag",))) == []
    assert extract(b"flags = (", Options(("flag",))) == []
    assert extract(b"flag = (", Options(("flag",)))[0].unparsed


@given(st.binary(max_size=120))
@settings(max_examples=100)
def test_any_bytes_give_facts_that_can_be_stored(data: bytes) -> None:
    for source in (b"os.environ " + data, b"os.getenv('" + data + b"')", data):
        for options in (Options(), Options(("os", "f"))):
            msgspec.msgpack.encode(extract(source, options))


SNIPPETS = st.sampled_from(
    ["import os", "from os import *", "E = os.environ", "N = 'ENG_A'", "N += E", "def f(n=E, *a, k=N, **q):",
     "class C(f):", " ", "  ", "self.x = n", "for n in (N, 'ENG_B'):", "E[n]", "f(*E)", "lambda n: os.getenv(n)",
     "f'{N}{n!r}'", "{'ENG_A': lambda: E['ENG_B']}", "super().__init__(n)", "os.getenv('\\ud800')", "pass",
     "E.get(N % E, E or N)"]
)  # fmt: skip


@given(st.lists(SNIPPETS, max_size=14).map("\n".join) | st.lists(SNIPPETS, max_size=14).map("; ".join))
@settings(max_examples=150)
def test_any_program_resolves_without_an_exception(source: str) -> None:
    resolved(m=source, n="import os\nfrom m import *\nos.getenv(N)\n")


@pytest.mark.parametrize(
    "source",
    [
        "import os\n" + "x = os.environ.get(" * 3000,
        "import os\nos.getenv(" + "(" * 300 + "'A'" + ")" * 300 + ")",
        "import os\nos.getenv(" + "+".join(["'A'"] * 5000) + ")",
        "import os\nx" + ".y()" * 3000 + "\nos.getenv('A')",
    ],
)
def test_deep_nesting_is_survived(source: str) -> None:
    facts = extract(source.encode(), Options())
    assert all(isinstance(fact, EnvFacts) for fact in facts) and facts


@pytest.mark.parametrize(
    "unit",
    [
        "os.getenv('ENG_A', f(x))\n",
        "os.getenv('ENG_A');",
        "N = N + os.getenv(N)\n",
        "for n in ('A', 'B'):\n    os.getenv(n)\n",
        "V = {'K': lambda: os.getenv('K')}\n",
        "s = '測'; os.getenv(s);",
    ],
)
def test_time_grows_with_size_only(unit: str) -> None:
    @cpu_seconds
    def seconds(count: int) -> None:
        source = ("import os\n" + unit * count).encode()
        extract(source, Options())

    seconds(50)
    assert seconds(3200) < 12 * max(seconds(800), 0.02)
