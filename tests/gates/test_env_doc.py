"""env-doc: what the code reads against what the page says, rule by rule."""

import tomllib

import pytest
from gates.timing import cpu_seconds
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewright.checks._env_evidence import normal
from gatewright.checks.env_doc import CHECK
from gatewright.core.cache import Cache
from gatewright.core.change import Change
from gatewright.core.contract import Judgement
from gatewright.core.errors import PolicyError
from gatewright.core.finding import Finding
from gatewright.core.policy import parse_policy
from gatewright.core.runner import run
from gatewright.core.snapshot import DictSnapshot
from gatewright.core.tree import Tree
from gatewright.extractors.env_documented import PageOptions
from gatewright.extractors.env_file import extract as env_lines
from gatewright.extractors.env_page import cell_names
from gatewright.extractors.env_page import extract as page_facts

PAGE = "docs/ENVIRONMENT.md"
POLICY = 'prefixes = ["ENG_"]\n[code]\npython = ["**/*.py"]\n'


def judge(files: dict[str, str], policy: str = "") -> Judgement:
    parsed = parse_policy(CHECK, tomllib.loads(policy + POLICY if "[code]" not in policy else policy), "policy/x.toml")
    return CHECK.judge(Tree.of(files), parsed.policy)


def found(files: dict[str, str], policy: str = "") -> list[str]:
    """Findings as "rule path:line token", the advisory ones too."""
    return [_short(finding) for finding in judge(files, policy).findings]


def _short(finding: Finding) -> str:
    return f"{finding.rule.removeprefix('env-doc/')} {finding.path}:{finding.line} {finding.token}"


def only(files: dict[str, str], policy: str = "") -> Finding:
    (finding,) = judge(files, policy).findings
    return finding


def page(*rows: str, header: str = "Variable | Default | Meaning") -> str:
    dashes = " | ".join("---" for _ in header.split("|"))
    return "\n".join(f"| {row} |" for row in (header, dashes, *rows)) + "\n"


def reads(*names: str) -> str:
    return "import os\n" + "".join(f'os.getenv("{name}")\n' for name in names)


def test_a_documented_variable_is_clean() -> None:
    judgement = judge({PAGE: page("`ENG_A` | unset | x"), "m.py": reads("ENG_A")})
    assert judgement.findings == []
    assert judgement.examined["env-doc/undocumented"] == 1
    assert judgement.examined["env-doc/blind"] == 1


def test_e_01_only_the_undocumented_name_is_reported_with_its_row() -> None:
    finding = only(
        {PAGE: page("`ENG_A` | unset | x"), "m.py": 'import os\nos.getenv("ENG_A")\nos.getenv("ENG_B", "7")'}
    )
    assert (finding.rule, finding.path, finding.line, finding.token) == ("env-doc/undocumented", "m.py", 3, "ENG_B")
    assert "| `ENG_B` | `7` | ... |" in finding.help and PAGE in finding.help


def test_the_row_to_add_has_the_pages_own_columns() -> None:
    header = "Meaning | Name | Default value | Since"
    finding = only({PAGE: page("x | `ENG_A` | unset | 1", header=header), "m.py": reads("ENG_A", "ENG_B")})
    assert "| ... | `ENG_B` | unset | ... |" in finding.help


@pytest.mark.parametrize("title", ["Variables", "ENV VAR", "**Environment variables**", "`Name`"])
def test_the_usual_titles_of_the_column_of_names(title: str) -> None:
    assert (
        found({PAGE: page("`ENG_A` | unset | x", header=f"{title} | Default | Meaning"), "m.py": reads("ENG_A")}) == []
    )


def test_adding_the_row_that_the_help_gives_makes_the_tree_clean() -> None:
    files = {PAGE: page("`ENG_A` | unset | x"), "m.py": reads("ENG_A") + "os.getenv('ENG_B', 'on')\n"}
    row = only(files).help.split("the row ")[1].split(" to docs")[0]
    assert found(files | {PAGE: files[PAGE] + row + "\n"}) == []


@pytest.mark.parametrize(
    ("default", "cell"), [("", "unset"), ("'x'", "`x`"), ("''", "unset"), ("f()", "computed"), ("3", "`3`")]
)
def test_the_row_to_add_says_what_the_default_is(default: str, cell: str) -> None:
    finding = only({PAGE: page(), "m.py": code(default)})
    assert f"| `ENG_A` | {cell} | ... |" in finding.help


def test_a_name_is_reported_once_however_often_it_is_read() -> None:
    assert found({PAGE: page(), "a.py": reads("ENG_B"), "b.py": reads("ENG_B", "ENG_B")}) == [
        "undocumented a.py:2 ENG_B"
    ]


@pytest.mark.parametrize("row", ["`ENG_VERBOSE_LEVEL` | unset | x", "`MY_ENG_VERBOSE` | unset | x"])
def test_e_02_ed_10_a_longer_name_does_not_document_a_shorter_one(row: str) -> None:
    files = {PAGE: page(row), "m.py": reads("ENG_VERBOSE", "ENG_VERBOSE_LEVEL")}
    assert "undocumented m.py:2 ENG_VERBOSE" in found(files)


@pytest.mark.parametrize("cell", ["`ENG_`", "`ENG_*`", "`ENG_A*`", "`ENG_<NAME>`"])
def test_a_prefix_in_a_row_documents_nothing(cell: str) -> None:
    files = {PAGE: page(f"{cell} | unset | x"), "m.py": reads("ENG_A")}
    assert found(files) == ["undocumented m.py:2 ENG_A"]


def test_e_03_ed_14_an_internal_name_that_nothing_reads_is_stale() -> None:
    files = {PAGE: page(), "m.py": reads("ENG_A")}
    policy = 'internal = { ENG_A = "read by the test rig only", ENG_GONE = "read by the test rig only" }\n'
    finding = only(files, policy)
    assert (finding.rule, finding.token, finding.path) == ("env-doc/internal", "ENG_GONE", "policy/env-doc.toml")
    assert "read by no code" in finding.message


def test_e_04_ed_14_a_name_both_documented_and_internal() -> None:
    files = {PAGE: page("`ENG_A` | unset | x"), "m.py": reads("ENG_A")}
    finding = only(files, 'internal = { ENG_A = "read by the test rig only" }\n')
    assert (finding.rule, finding.token) == ("env-doc/internal", "ENG_A")
    assert "documented" in finding.message


def test_ed_14_allowlist_hygiene_gives_one_finding_for_each_fault() -> None:
    files = {PAGE: page("`ENG_A` | unset | x"), "m.py": reads("ENG_A", "ENG_C")}
    reasons = 'internal = { ENG_A = "a good reason", ENG_B = "a good reason", ENG_C = "x" }\n'
    assert [finding.token for finding in judge(files, reasons).findings] == ["ENG_A", "ENG_B", "ENG_C"]
    assert found(files, 'minimum_reason = 1\ninternal = { ENG_C = "x" }\n') == []


@pytest.mark.parametrize(("reason", "count"), [("123456789", 1), ("1234567890", 0), ("  12345678  ", 1)])
def test_the_shortest_reason_that_counts(reason: str, count: int) -> None:
    files = {PAGE: page("`ENG_B` | unset | x"), "m.py": DYNAMIC + "os.getenv('ENG_B')\n"}
    policy = POLICY + f'[internal]\nENG_A = "{reason}"\n[[dynamic]]\npattern = "ENG_*"\nwhy = "{reason}"\n'
    assert [line.split()[0] for line in found(files, policy)] == ["dynamic", "internal"] * count


def test_e_05_too_few_names_is_a_finding_not_a_pass() -> None:
    files = {PAGE: page("`ENG_A` | unset | x"), "m.py": reads("ENG_A")}
    assert found(files, "minimum = 1\n") == []
    assert found(files, "minimum = 2\n") == ["blind policy/env-doc.toml:0 minimum"]
    assert found({PAGE: page(), "m.py": "x = 1\n"}) == ["blind policy/env-doc.toml:0 minimum"]
    assert found({PAGE: page(), "m.py": "x = 1\n"}, "minimum = 0\n") == []


def test_e_05_a_tree_without_source_files_examines_nothing() -> None:
    judgement = judge({PAGE: page(), "README.md": "x"})
    assert judgement.findings == [] and judgement.examined["env-doc/blind"] == 0


def test_e_06_a_missing_page_is_a_finding_beside_the_names_that_it_would_document() -> None:
    missing = "page policy/env-doc.toml:0 the page docs/ENVIRONMENT.md does not exist"
    assert found({"m.py": reads("ENG_A")}) == [missing, "undocumented m.py:2 ENG_A"]


def test_a_first_page_need_not_document_what_was_undocumented_before() -> None:
    """Its policy judges the base too, which has no page yet: a name that no page documented stays inherited."""
    policy = {"policy/env-doc.toml": POLICY}
    base = {"policy/env-doc.toml": "pages = []\n" + POLICY, "m.py": reads("ENG_A", "ENG_B")}
    head = {**base, **policy, PAGE: page("`ENG_A` | unset | x")}
    report = run([Change(None, DictSnapshot(head, "head"), DictSnapshot(base, "base"))], Cache(None))
    assert report.exit_code == 0, report.new
    assert [finding.token for finding in report.inherited] == ["ENG_B"]


def test_a_page_without_a_table_of_variables() -> None:
    files = {PAGE: "# Variables\n\n| Who | What |\n|---|---|\n| `ENG_A` | x |\n", "m.py": reads("ENG_A")}
    assert [line.split()[0] for line in found(files)] == ["page", "undocumented"]
    assert found(files, POLICY + '[columns]\nname = ["Who"]\n') == []


def test_a_fence_that_is_never_closed_is_reported_and_hides_rows() -> None:
    files = {
        PAGE: page("`ENG_A` | unset | x") + "\n```\n" + page("`ENG_B` | unset | x"),
        "m.py": reads("ENG_A", "ENG_B"),
    }
    assert found(files) == ["page docs/ENVIRONMENT.md:5 unclosed fence", "undocumented m.py:3 ENG_B"]
    assert found(files | {PAGE: files[PAGE] + "```\n"}) == ["undocumented m.py:3 ENG_B"]


def test_ed_02_writes_need_no_row() -> None:
    source = 'import os\nos.environ["ENG_W"] = "1"\ndel os.environ["ENG_X"]\nos.getenv("ENG_A")\n'
    assert found({PAGE: page("`ENG_A` | unset | x"), "m.py": source}) == []


def test_ed_04_the_site_of_a_constant_name_is_where_it_is_read() -> None:
    files = {PAGE: page(), "names.py": 'CACHE = "ENG_CACHE_DIR"', "use.py": "import os\nfrom names import CACHE\nos.environ.get(CACHE)"}  # fmt: skip  # noqa: E501
    assert found(files) == ["undocumented use.py:3 ENG_CACHE_DIR"]
    again = files | {"names.py": 'CACHE = "ENG_CACHE_DIR"\nCACHE = other()'}
    assert found(again, "minimum = 0\n") == ["dynamic use.py:3 CACHE"]


REGISTRY = """import os
VARS = {"ENG_P": lambda: flag("ENG_P", "0"), "ENG_Q": lambda: os.getenv("ENG_QQ")}
def flag(name, default): return os.getenv(name, default)
def __getattr__(n): return VARS[n]()
"""


def test_ed_05_a_registry_key_that_differs_and_entries_that_nothing_uses() -> None:
    rows = page("`ENG_P` | `0` | x", "`ENG_QQ` | unset | x")
    use = "import envs\nenvs.ENG_P\n"
    assert found({PAGE: rows, "envs.py": REGISTRY, "use.py": use}) == [
        "registry-key envs.py:2 ENG_Q",
        "dead-entry envs.py:2 ENG_Q",
    ]
    assert (
        found({PAGE: rows, "envs.py": REGISTRY.replace('"ENG_Q"', '"ENG_QQ"'), "use.py": use + "envs.ENG_QQ\n"}) == []
    )
    assert CHECK.rules[[r.id for r in CHECK.rules].index("env-doc/dead-entry")].advisory


def test_ed_07_c_and_cpp_reads_and_wrappers() -> None:
    source = """#include <cstdlib>
#define N "ENG_M"
static bool env_flag(const char* name) { return std::getenv(name) != nullptr; }
const char* v = std::getenv("ENG_STAGE_BYTES");
static bool on = env_flag("ENG_DBG");
// getenv("ENG_OLD")
const char* m = getenv(N);
"""
    files = {PAGE: page(), "a.cpp": source, "CMakeLists.txt": 'option(ENG_HIP "x" OFF)\n'}
    policy = POLICY + 'cfamily = ["**/*.cpp"]\n'
    assert sorted(line.split()[-1] for line in found(files, policy)) == ["ENG_DBG", "ENG_M", "ENG_STAGE_BYTES"]


def test_rust_reads() -> None:
    files = {PAGE: page(), "a.rs": 'fn main() { let v = std::env::var("ENG_R"); }\n'}
    assert found(files, POLICY + 'rust = ["**/*.rs"]\n') == ["undocumented a.rs:1 ENG_R"]


def test_ed_08_a_documented_name_that_nothing_reads_suggests_the_near_one() -> None:
    files = {PAGE: page("`ENG_KEY_DIR` | unset | x"), "m.py": reads("ENG_KEY_FILE")}
    missing, unread = judge(files).findings
    assert (missing.rule, missing.token) == ("env-doc/undocumented", "ENG_KEY_FILE")
    assert (unread.rule, unread.token, unread.line) == ("env-doc/unread", "ENG_KEY_DIR", 3)
    assert "did you mean ENG_KEY_FILE?" in unread.message and "did you mean ENG_KEY_DIR?" in missing.message


def test_a_removed_name_is_no_suggestion_for_a_missing_row() -> None:
    removed = "\n## Removed\n\n" + page("`ENG_KEY_FIL` | none, it is gone", header="Variable | Replacement")
    files = {PAGE: page("`ENG_A` | unset | x") + removed, "m.py": reads("ENG_A", "ENG_KEY_FILE")}
    assert "did you mean" not in only(files).message


def test_a_documented_foreign_name_need_not_be_read() -> None:
    assert found({PAGE: page("`CUDA_HOME` | unset | x", "`ENG_A` | unset | x"), "m.py": reads("ENG_A")}) == []


def test_ed_11_two_names_glued_on_one_line() -> None:
    files = {
        PAGE: page("`ENG_TMP` | unset | x"),
        "m.py": reads("ENG_TMP"),
        ".env.example": "# ENG_TMP=/data/tmp# ENG_PORT=9\n",
    }
    finding = only(files, 'env_files = [".env.example"]\n')
    assert (finding.rule, finding.line) == ("env-doc/env-file", 1)
    assert "two names on one line, ENG_TMP and ENG_PORT" in finding.message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ENG_A=1\nENG_A=2\n", ["env-file .env:2 ENG_A"]),
        ("ENG_A=1\n# ENG_A=2\n", []),
        ("# ENG_A=1\n# ENG_A=2\n", []),
        ("ENG_A= 1\n", ["env-file .env:1 ENG_A"]),
        ("ENG_A= # note\n", []),
        ("ENG_A=/tmpENG_B=9\n", ["env-file .env:1 ENG_A"]),
        ("ENG_A=ENG_B=9\n", ["env-file .env:1 ENG_A"]),
        ("ENG_A=1\\nENG_B=9\n", ["env-file .env:1 ENG_A"]),
        ("ENG_A=QUJD==\n", []),
        ("ENG_A=http://host/?A_B=1&C_D=2\n", []),
        ("ENG_GONE=1\n", ["env-file .env:1 ENG_GONE"]),
        ("OTHER=1\nexport ENG_A=x # note\n", []),
        ("# ENG_A sets x, as in ENG_A=1\n", []),
        ("ENG_A\n", ["env-file .env:1 ENG_A"]),
        ("ENG_A = 1\n", ["env-file .env:1 ENG_A = 1"]),
        ('ENG_A="x\n', ["env-file .env:1 ENG_A"]),
        ('ENG_A="x y" ENG_B=2\n', ["env-file .env:1 ENG_A"]),
        ("ENG_A='ENG_B=2'\n", []),
        ("\ufeffENG_A=1\r\n\r\n", []),
    ],
)
def test_env_files_are_parsed_strictly(text: str, expected: list[str]) -> None:
    files = {PAGE: page("`ENG_A` | unset | x"), "m.py": reads("ENG_A"), ".env": text}
    assert found(files, 'env_files = [".env"]\n') == expected


def test_env_file_values_lose_quotes_and_comments() -> None:
    lines = env_lines(b"A='x # y' # z\nB=1 # two\nC=\nD=a#b\n")
    assert [(line.name, line.value) for line in lines] == [("A", "x # y"), ("B", "1"), ("C", ""), ("D", "a#b")]


def test_ed_13_a_name_that_only_a_container_sets_is_no_finding() -> None:
    files = {PAGE: page("`ENG_A` | unset | x"), "m.py": reads("ENG_A"), "Dockerfile": "ENV ENG_BUILD_HOST=x\n"}
    assert found(files) == []


def test_ed_16_tests_and_vendored_trees_need_no_row_and_shipped_helpers_do() -> None:
    files = {
        PAGE: page(),
        "tests/t.py": reads("ENG_TEST_ONLY"),
        "pkg/tests/t.py": reads("ENG_TEST_ONLY"),
        "third_party/z.py": reads("CI", "ENG_VENDORED"),
        "engine/testing/rig.py": reads("ENG_RIG"),
    }
    assert found(files) == ["undocumented engine/testing/rig.py:2 ENG_RIG"]


def test_a_read_outside_the_shipped_source_has_the_site_it_would_have_inside() -> None:
    files = {PAGE: page(), "m.py": reads("ENG_A"), "tests/t.py": reads("ENG_B", "CI"), "tools/u.rs": "x"}
    policy = parse_policy(CHECK, tomllib.loads(POLICY), "p").policy
    tree = Tree.of(files)
    (outside,) = CHECK.outside(tree, policy, tree.paths)
    (inside,) = [f for f in judge(files | {"n.py": files["tests/t.py"]}).findings if f.path == "n.py"]
    assert outside.path == "tests/t.py" and outside.site == inside.site
    assert CHECK.outside(tree, policy, ["m.py"]) == []


def test_foreign_names_are_counted_not_reported() -> None:
    judgement = judge({PAGE: page("`ENG_A` | unset | x"), "m.py": reads("PATH", "HOME", "ENG_A")})
    assert judgement.findings == [] and any("2 names outside" in note for note in judgement.notes)


def test_without_prefixes_every_name_is_the_projects() -> None:
    policy = '[code]\npython = ["**/*.py"]\n'
    assert found({PAGE: page(), "m.py": reads("HOME")}, policy) == ["undocumented m.py:2 HOME"]
    assert found({PAGE: page(), "m.py": reads("HOME", "CI")}, 'names = ["CI"]\n' + policy) == ["undocumented m.py:3 CI"]


def test_a_name_documented_twice_on_one_page_and_across_pages() -> None:
    files = {PAGE: page("`ENG_A` | unset | x", "`ENG_A` | unset | y"), "m.py": reads("ENG_A")}
    assert found(files) == ["duplicate docs/ENVIRONMENT.md:4 ENG_A"]
    files = {PAGE: page("`ENG_A` | unset | x"), "docs/more.md": page("`ENG_A` | unset | y"), "m.py": reads("ENG_A")}
    assert found(files, f'pages = ["{PAGE}", "docs/more.md"]\n') == ["duplicate docs/more.md:3 ENG_A"]


def code(default: str) -> str:
    return f'import os\nos.getenv("ENG_A", {default})\n' if default else reads("ENG_A")


@pytest.mark.parametrize(
    ("cell", "default"),
    [
        ("`1`", '"1"'), ("1", "1"), ("`1.0`", "1"), ("true", '"1"'), ("off", "False"), ('`"x"`', '"x"'), ("unset", ""),
        ("", ""), ("-", "None"), ("`none`", '""'), ("`auto` (see below)", '"auto"'), ("5[^1]", "5"),
        ("enabled", '"1"'), ("disabled", '"0"'), ("(empty)", '""'), ("4096", '"4096"'),
        ("`/tmp/Cache`", '"/tmp/Cache"'),
    ],
)  # fmt: skip
def test_defaults_that_agree(cell: str, default: str) -> None:
    assert found({PAGE: page(f"`ENG_A` | {cell} | x"), "m.py": code(default)}) == []


@pytest.mark.parametrize(
    ("cell", "default", "said"),
    [("`1`", '"2"', "2"), ("true", '"0"', "0"), ("unset", '"x"', "x"), ("`x`", "", "unset"),
     ("`/Tmp`", '"/tmp"', "/tmp"), ("`10`", '"1"', "1"), ("`auto`", '"automatic"', "automatic")],
)  # fmt: skip
def test_defaults_that_differ(cell: str, default: str, said: str) -> None:
    finding = only({PAGE: page(f"`ENG_A` | {cell} | x"), "m.py": code(default)})
    assert (finding.rule, finding.path, finding.line, finding.token) == ("env-doc/default", PAGE, 3, "ENG_A")
    assert f"`{said}`" in finding.help and "m.py:2" in finding.message


def test_a_wrapper_whose_default_is_none_has_none() -> None:
    wrapper = "import os\ndef text(name, default=None): return os.getenv(name, default)\ntext('ENG_A')\n"
    judgement = judge({PAGE: page("`ENG_A` | unset | x"), "m.py": wrapper})
    assert (judgement.findings, judgement.notes) == ([], [])


def test_one_difference_is_one_finding_however_often_the_code_has_it() -> None:
    files = {PAGE: page("`ENG_A` | `1` | x"), "m.py": code("'2'"), "n.py": code("'2'")}
    assert found(files) == ["default docs/ENVIRONMENT.md:3 ENG_A"]


def test_a_computed_default_cannot_be_compared_and_is_no_finding() -> None:
    judgement = judge({PAGE: page("`ENG_A` | `f()` | x"), "m.py": code("f()")})
    assert judgement.findings == []
    assert judgement.notes == ["env-doc: cannot compare the defaults of ENG_A"]


@pytest.mark.parametrize(
    ("cell", "source", "verdict"),
    [
        ("`80`", "port = os.getenv('ENG_A')\nport = 80 if port is None else port", "cannot compare"),
        ("`80`", "if not os.getenv('ENG_A'):\n    port = 80", "cannot compare"),
        ("`80`", "try:\n    port = os.environ['ENG_A']\nexcept KeyError:\n    port = 80", "cannot compare"),
        ("`80`", "if 'ENG_A' in os.environ:\n    port = os.environ['ENG_A']", "cannot compare"),
        ("`0`", "on = os.getenv('ENG_A') == '1'", "agree"),
        ("off", "on = os.getenv('ENG_A', '') == '1'", "agree"),
        ("`1`", "on = os.getenv('ENG_A', '0') == '1'", "differ"),
        ("unset", "on = bool(os.getenv('ENG_A'))", "agree"),
        ("`80`", "port = os.getenv('ENG_A')\nuse(port)", "differ"),
        ("`80`", "use(os.environ['ENG_A'])", "differ"),
        (
            "`5`",
            "def num(name, default=0):\n    v = os.getenv(name)\n    return int(v or default)\nnum('ENG_A', 5)",
            "agree",
        ),
        (
            "`0`",
            "def num(name, default=0):\n    v = os.getenv(name)\n    return int(v or default)\nnum('ENG_A', 5)",
            "differ",
        ),
        ("off", "def on(name):\n    return os.getenv(name) == '1'\non('ENG_A')", "agree"),
        ("`7`", "def on(name):\n    return os.getenv(name) == '1'\non('ENG_A')", "cannot compare"),
    ],
)
def test_what_unset_means_where_the_code_looks_at_the_value(cell: str, source: str, verdict: str) -> None:
    judgement = judge({PAGE: page(f"`ENG_A` | {cell} | x"), "m.py": f"import os\n{source}\n"})
    got = "differ" if judgement.findings else "cannot compare" if judgement.notes else "agree"
    assert got == verdict


def test_each_different_default_of_the_code_is_compared() -> None:
    source = code('"1"') + 'os.getenv("ENG_A", "2")\n"ENG_A" in os.environ\n'
    assert found({PAGE: page("`ENG_A` | `1` | x"), "m.py": source}) == ["default docs/ENVIRONMENT.md:3 ENG_A"]
    assert len(found({PAGE: page("`ENG_A` | `3` | x"), "m.py": source})) == 2


def test_a_table_without_a_default_column_compares_nothing() -> None:
    files = {PAGE: page("`ENG_A` | x", header="Variable | Meaning"), "m.py": code('"1"')}
    assert found(files) == []


@given(st.text(max_size=12))
def test_a_default_equals_itself_quoted_and_in_any_spacing(text: str) -> None:
    assert normal(text) == normal(f"  {text}\t")
    assert text.strip()[:1] in ("'", '"') or normal(f'"{text.strip()}"') == normal(text)


@given(st.integers(-(10**6), 10**6), st.integers(-(10**6), 10**6))
def test_numbers_are_equal_only_by_value(one: int, other: int) -> None:
    assert (normal(str(one)) == normal(f"{other}.0")) == (one == other)


DYNAMIC = 'import os\nos.getenv("ENG_A")\ndef port(kind):\n    return os.environ[f"ENG_{kind.upper()}_PORT"]\n'


def test_a_name_put_together_at_run_time_fails_closed() -> None:
    finding = only({PAGE: page("`ENG_A` | unset | x"), "m.py": DYNAMIC})
    assert (finding.rule, finding.path, finding.line, finding.column) == ("env-doc/dynamic", "m.py", 4, 12)
    assert "ENG_*_PORT" in finding.message and 'pattern = "ENG_*_PORT"' in finding.help


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ('pattern = "ENG_*_PORT"', []),
        ('pattern = "ENG_*"', []),
        ('pattern = "ENG_*_HOST"', ["dynamic m.py:4", "dynamic policy/env-doc.toml:0"]),
        ('pattern = "ENG_*_HOST"\npath = "m.py"', []),
        ('pattern = "ENG_*_PORT"\npath = "n.py"', ["dynamic m.py:4", "dynamic policy/env-doc.toml:0"]),
    ],
)
def test_a_declared_pattern_covers_its_shape_or_its_file(entry: str, expected: list[str]) -> None:
    policy = POLICY + f'[[dynamic]]\n{entry}\nwhy = "one port for each kind of worker"\n'
    files = {PAGE: page("`ENG_A` | unset | x"), "m.py": DYNAMIC}
    assert [
        line.rpartition(" ")[0] if ":0" in line else line.split(" f'")[0] for line in found(files, policy)
    ] == expected


def test_a_documented_name_of_a_declared_pattern_counts_as_read() -> None:
    policy = POLICY + '[[dynamic]]\npattern = "ENG_*_PORT"\nwhy = "one port for each kind of worker"\n'
    files = {PAGE: page("`ENG_A` | unset | x", "`ENG_WEB_PORT` | unset | x"), "m.py": DYNAMIC}
    assert found(files, policy) == []
    assert found(files | {PAGE: files[PAGE].replace("_PORT", "_HOST")}, policy) == [f"unread {PAGE}:4 ENG_WEB_HOST"]


def test_a_declared_pattern_needs_a_reason_and_a_beginning() -> None:
    files = {PAGE: page("`ENG_A` | unset | x"), "m.py": DYNAMIC}
    assert found(files, POLICY + '[[dynamic]]\npattern = "ENG_*"\nwhy = "x"\n') == [
        "dynamic policy/env-doc.toml:0 ENG_*"
    ]
    with pytest.raises(PolicyError, match="would cover every name"):
        judge(files, POLICY + '[[dynamic]]\npattern = "*"\nwhy = "a good reason"\n')


@pytest.mark.parametrize(
    "source",
    [
        "import click\nmain(auto_envvar_prefix='ENG_')",
        "from pydantic_settings import BaseSettings\nclass S(BaseSettings, env_prefix='ENG_'):\n    a: int",
        "from pydantic_settings import BaseSettings\nclass S(BaseSettings):\n    model_config = {'env_prefix': 'ENG_'}",
        "from pydantic import BaseSettings\nclass S(BaseSettings):\n    class Config:\n        env_prefix = 'ENG_'",
    ],
)
def test_a_prefix_that_a_library_reads_below_fails_closed(source: str) -> None:
    files = {PAGE: page("`ENG_A` | unset | x"), "m.py": source + "\n", "n.py": reads("ENG_A")}
    finding = only(files)
    assert (finding.rule, finding.path) == ("env-doc/dynamic", "m.py")
    assert "ENG_*" in finding.message
    assert found(files | {"m.py": source.replace("ENG_", "OTHER_")}) == []


def test_a_dynamic_name_that_cannot_be_the_projects_is_no_finding() -> None:
    files = {PAGE: page("`ENG_A` | unset | x"), "m.py": reads("ENG_A") + "x = input()\nos.getenv(f'HF_{x}')\n"}
    assert found(files) == []
    assert found(files | {"m.py": files["m.py"].replace("HF_", "E")}) == ["dynamic m.py:4 f'E{x}'"]


REMOVED = "\n## Removed names\n\n" + page("`ENG_OLD` | `ENG_A`", header="Variable | Replacement")


def test_a_removed_name_needs_a_replacement_that_is_read() -> None:
    files = {PAGE: page("`ENG_A` | unset | x") + REMOVED, "m.py": reads("ENG_A")}
    assert found(files) == []
    assert "no replacement" in only(files | {PAGE: files[PAGE].replace("| `ENG_A` |\n", "| - |\n")}).message
    lost = only(files | {PAGE: files[PAGE].replace("`ENG_OLD` | `ENG_A`", "`ENG_OLD` | `ENG_B`")})
    assert (lost.rule, lost.token) == ("env-doc/removed", "ENG_OLD") and "ENG_B" in lost.message


def test_a_removed_name_that_is_still_read() -> None:
    files = {PAGE: page("`ENG_A` | unset | x") + REMOVED, "m.py": reads("ENG_A", "ENG_OLD")}
    finding = only(files)
    assert (finding.rule, finding.path, finding.line) == ("env-doc/removed", "m.py", 3)
    assert "ENG_A" in finding.help


def test_a_removed_heading_marks_a_table_without_a_replacement_column() -> None:
    removed = "\n## Removed\n\n" + page("`ENG_OLD` | x", header="Variable | Note")
    files = {PAGE: page("`ENG_A` | unset | x") + removed, "m.py": reads("ENG_A")}
    assert "no replacement" in only(files).message
    assert only(files, 'removed_heading = "retired"\n').rule == "env-doc/unread"


def test_a_removed_name_in_an_env_file_names_the_replacement() -> None:
    files = {PAGE: page("`ENG_A` | unset | x") + REMOVED, "m.py": reads("ENG_A"), ".env": "ENG_OLD=1\n"}
    finding = only(files, 'env_files = [".env"]\n')
    assert "was removed" in finding.message and "ENG_A" in finding.help


INCLUDE = """[[include]]
page = "docs/ENVIRONMENT.md"
registry = "envs.py"
begin = "begin-env"
end = "end-env"
"""
ENVS = "import os\n# begin-env\nos.getenv('ENG_A')\n# end-env\nos.getenv('ENG_B')\n"


def test_documentation_by_inclusion_covers_what_lies_between_the_markers() -> None:
    files = {PAGE: "# Variables\n\n```{literalinclude} ../envs.py\n:start-after: begin-env\n```\n", "envs.py": ENVS}
    assert found(files, POLICY + INCLUDE) == ["undocumented envs.py:5 ENG_B"]
    assert found(files, POLICY + INCLUDE.split("begin")[0]) == []


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({PAGE: "# Variables\n"}, "no longer includes envs.py"),
        ({"envs.py": ENVS.replace("# end-env", "")}, "lacks the markers"),
        ({"envs.py": ENVS.replace("begin", "x").replace("end-env", "begin-env end-env")}, "lacks the markers"),
        ({"envs.py": None}, "does not exist"),
    ],
)
def test_an_inclusion_that_shows_nothing_is_a_finding(changed: dict[str, str | None], message: str) -> None:
    files = {PAGE: "```{literalinclude} ../envs.py\n```\n", "envs.py": ENVS, "n.py": reads("ENG_B")} | changed
    findings = judge({path: text for path, text in files.items() if text is not None}, POLICY + INCLUDE).findings
    assert [message in finding.message for finding in findings if finding.rule == "env-doc/page"] == [True]


def test_an_inclusion_in_a_page_that_is_gone_is_laid_at_the_policy() -> None:
    findings = judge({"m.py": reads("ENG_A")}, POLICY + INCLUDE).findings
    pages = [finding.path for finding in findings if finding.rule == "env-doc/page"]
    assert set(pages) == {"policy/env-doc.toml"}


def test_mentions_document_where_the_policy_says_so() -> None:
    generated = (
        "# Arguments\n\n## PORT\n\n```shell\n      [env: ENG_PORT=]\n```\n\nENG_ is the prefix, ENG_GONE is not.\n"
    )
    files = {PAGE: generated, "m.py": reads("ENG_PORT", "ENG_OTHER")}
    policy = 'documented_by = "mention"\n'
    assert found(files, policy) == ["undocumented m.py:3 ENG_OTHER", f"unread {PAGE}:9 ENG_GONE"]


def test_a_file_that_does_not_parse_is_reported_and_its_literal_reads_still_count() -> None:
    files = {PAGE: page(), "m.py": 'import os\nos.getenv("ENG_A")\ndef (\n'}
    assert found(files) == ["undocumented m.py:2 ENG_A", "unparsable m.py:0 m.py"]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("`ENG_A`", ["ENG_A"]),
        ("ENG_A", ["ENG_A"]),
        ("`ENG_A`, `ENG_B`", ["ENG_A", "ENG_B"]),
        ("`http_proxy`", ["http_proxy"]),
        ("`ENG_A=1`", ["ENG_A"]),
        ("`ENG_A` (see `ENG_*`)", ["ENG_A"]),
        ("the prefix ENG_", []),
        ("`-e ENG_A -e ENG_A`", ["ENG_A"]),
        ("ENG\\_A", ["ENG_A"]),
        ("<code>ENG_A</code>, <code>ENG_B</code>", ["ENG_A", "ENG_B"]),
        ("[`ENG_A`](#eng_a)", ["ENG_A"]),
        ("", []),
    ],
)
def test_the_names_of_a_cell(cell: str, expected: list[str]) -> None:
    assert cell_names(cell) == expected


def test_which_rules_may_find_nothing_to_look_at_and_which_only_advise() -> None:
    assert [rule.id for rule in CHECK.rules if not rule.empty_ok] == ["env-doc/unparsable", "env-doc/blind"]
    assert [rule.id for rule in CHECK.rules if rule.advisory] == ["env-doc/dead-entry"]
    assert {rule.scope for rule in CHECK.rules} == {"tree"}


@pytest.mark.parametrize("table", ["[code]\npyhton = []", POLICY + "[columns]\nnam = []", POLICY + "pfx = 1"])
def test_unknown_keys_of_the_policy_are_refused(table: str) -> None:
    with pytest.raises(PolicyError, match="unknown field"):
        parse_policy(CHECK, tomllib.loads(table), "policy/env-doc.toml")


@pytest.mark.parametrize("table", ["include", "dynamic"])
def test_unknown_keys_of_entries_are_refused(table: str) -> None:
    entry = f'[[{table}]]\npage = "p"\nregistry = "r"\npattern = "ENG_"\nwhy = "w"\n'
    with pytest.raises(PolicyError, match="unknown field"):
        parse_policy(CHECK, tomllib.loads(POLICY + entry), "policy/env-doc.toml")


@pytest.mark.parametrize("prefix", ["ENG_*", "", "^ENG_"])
def test_a_prefix_is_the_beginning_of_a_name(prefix: str) -> None:
    with pytest.raises(PolicyError, match="not the beginning of a name"):
        parse_policy(CHECK, {"prefixes": [prefix], "code": {"python": ["**/*.py"]}}, "policy/env-doc.toml")


def test_each_rule_says_how_much_it_looked_at() -> None:
    files = {
        PAGE: page("`ENG_A` | unset | x", "`CI` | unset | x")
        + "\n"
        + page("`ENG_P` | x", header="Variable | Meaning")
        + REMOVED,
        "m.py": reads("ENG_A", "HOME") + REGISTRY.replace("import os\n", ""),
        ".env": "ENG_A=1\nENG_P=1\nCI=1\n",
    }
    examined = judge(files, 'env_files = [".env"]\ninternal = { ENG_QQ = "a good reason" }\n').examined
    assert {rule.removeprefix("env-doc/"): count for rule, count in examined.items()} == {
        "undocumented": 3, "unread": 2, "duplicate": 3, "default": 1, "dynamic": 4, "registry-key": 2, "dead-entry": 2,
        "internal": 1, "removed": 1, "env-file": 3, "unparsable": 1, "page": 1, "blind": 1,
    }  # fmt: skip


def test_every_rule_of_the_check_is_reachable_and_every_finding_has_a_rule() -> None:
    files = {
        PAGE: page("`ENG_A` | `9` | x", "`ENG_A` | `1` | x", "`ENG_GONE` | unset | x")
        + "\n## Removed\n\n"
        + page("`ENG_OLD` | - ", header="Variable | Replacement")
        + "\n```\n",
        "m.py": DYNAMIC + REGISTRY.replace("import os\n", ""),
        "bad.py": "os.environ (",
        ".env": "ENG_NOPE=1\n",
    }
    policy = 'env_files = [".env"]\nminimum = 50\ninternal = { ENG_X = "a good reason" }\n'
    judgement = judge(files, policy)
    assert {finding.rule for finding in judgement.findings} == {rule.id for rule in CHECK.rules}
    assert judgement.examined.keys() == {rule.id for rule in CHECK.rules}
    assert all(finding.help and finding.token for finding in judgement.findings)


@given(st.binary(max_size=150))
@settings(max_examples=80)
def test_any_bytes_are_judged(data: bytes) -> None:
    text = b"| Variable | Default |\n|---|---|\n| `ENG_A` | " + data
    files = {PAGE: text, "m.py": b"import os\nos.getenv('ENG_A', " + data, ".env": data}
    policy = parse_policy(CHECK, tomllib.loads('env_files = [".env"]\n' + POLICY), "p").policy
    assert CHECK.judge(Tree.of(files), policy).examined


def test_mentions_are_taken_only_where_the_policy_asks() -> None:
    def mentions(wanted: bool) -> list[tuple[str, int]]:
        options = PageOptions(("Variable",), ("Default",), ("Replacement",), "removed", mentions=wanted)
        (facts,) = page_facts(b"`ENG_A` and ENG_B\nENG_A, ENG_, ENG_C*, NOT\n", options)
        return [(row.name, row.line) for row in facts.mentions]

    assert mentions(True) == [("ENG_A", 1), ("ENG_B", 1)]
    assert mentions(False) == []


def test_pages_and_env_files_take_linear_time() -> None:
    options = PageOptions(("Variable",), ("Default",), ("Replacement",), "removed", mentions=True)

    @cpu_seconds
    def seconds(count: int) -> None:
        assert len(page_facts((page(*["`ENG_A` | `1` | x"] * count)).encode(), options)[0].rows) == count
        assert len(env_lines(b"ENG_A=1 # x\n" * count + b"A=" + b"x " * count)) == count + 1

    seconds(100)
    assert seconds(4000) < 12 * max(seconds(1000), 0.02)
