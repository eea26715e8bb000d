"""Environment reads in C-family and Rust source: what is read, under which name, through which wrapper."""

import msgspec
import pytest
from gates.timing import cpu_seconds
from hypothesis import given
from hypothesis import strategies as st

from gatewright.checks._env_resolution import resolve
from gatewright.core.facts import Extractor
from gatewright.core.globs import PathSet
from gatewright.core.tree import Tree
from gatewright.extractors import env_cfamily, env_rust
from gatewright.extractors.env_read import Call, EnvFacts, Options, Parameter, Read
from gatewright.readers.rust import Source as RustSource


def facts(text: str, *names: str, language: str = "c") -> EnvFacts:
    extract = env_rust.extract if language == "rust" else env_cfamily.extract
    return next(iter(extract(text.encode(), Options(names))), EnvFacts())


def reads(text: str, language: str = "c") -> list[str]:
    """Literals of the direct reads; "<reference>" or its glob where there is none."""
    return [_shown(read) for read in facts(text, language=language).reads]


def _shown(read: Read) -> str:
    value = read.name
    if value.literal is not None:
        return value.literal
    return f"<{value.reference}>" if value.reference else value.pattern


def wrapper(text: str, language: str = "c") -> Parameter | None:
    return facts(text, language=language).reads[0].name.parameter


def calls(text: str, *names: str) -> list[Call]:
    return list(facts(text, *names).calls)


def resolved(files: dict[str, str]) -> list[tuple[str, int, str]]:
    """The variables that a tree reads, over as many passes as it takes."""

    def source(options: Options) -> list[Extractor]:
        return [
            Extractor(name=name, paths=PathSet((glob,)), function=function, fact=EnvFacts, options=options)
            for name, glob, function in (
                ("c", "**/*.{h,cpp}", "gatewright.extractors.env_cfamily:extract"),
                ("rust", "**/*.rs", "gatewright.extractors.env_rust:extract"),
            )
        ]

    return [(use.path, use.line, use.name) for use in resolve(Tree.of(files), source).uses]


def test_a_name_may_be_a_literal_with_a_suffix() -> None:
    assert reads('auto a = getenv("ENG_A"sv), b = getenv("ENG_B"s);') == ["ENG_A", "ENG_B"]


ED_07 = """\
const char* v = std::getenv("ENG_STAGE_BYTES");
static bool env_flag(const char* name) { return getenv(name) != nullptr; }
static bool on = env_flag("ENG_DBG");
// getenv("ENG_OLD")
#define N "ENG_M"
const char* m = getenv(N);
"""


def test_ed_07_reads_wrappers_and_constants_but_no_comment_and_no_cmake_option() -> None:
    files = {"a.cpp": ED_07, "CMakeLists.txt": 'option(ENG_HIP "build for HIP" OFF)\n'}
    assert resolved(files) == [
        ("a.cpp", 1, "ENG_STAGE_BYTES"),
        ("a.cpp", 3, "ENG_DBG"),
        ("a.cpp", 6, "ENG_M"),
    ]


def test_ed_07_wrappers_and_constants_of_other_files_over_three_passes() -> None:
    files = {
        "env.h": "inline const char* raw(const char* n) { return getenv(n); }\n"
        'constexpr const char* kCache = "ENG_CACHE";\n',
        "flag.h": "namespace e { struct Env { static bool flag(const std::string& n) { return raw(n.c_str()); } }; }\n",
        "use.cpp": 'bool a = e::Env::flag("ENG_A");\nauto b = getenv(kCache);\nauto c = raw("ENG_C");\n',
    }
    assert resolved(files) == [("use.cpp", 1, "ENG_A"), ("use.cpp", 2, "ENG_CACHE"), ("use.cpp", 3, "ENG_C")]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('getenv("A"); std::getenv ( /* c */ "B" ); ::getenv("C"); secure_getenv("D");', ["A", "B", "C", "D"]),
        (
            '_dupenv_s(&buffer, &n, "A"); getenv_s(&n, buffer, 9, "B"); GetEnvironmentVariableW(L"C", b, n);',
            ["A", "B", "C"],
        ),
        ('getenv("EN" /* x */ "G"); getenv(R"(RAW)"); getenv(u8"U"); getenv("\\x41");', ["ENG", "RAW", "U", "A"]),
        ('if (!getenv("A") || atoi(getenv("B")) > 1\'000) {}', ["A", "B"]),
        ('std::string("x") + getenv(std::string("A").c_str()); getenv((std::string{"B"}).data());', ["A", "B"]),
        ('getenv(on ? "A" : "B");', ["A", "B"]),
        ('#define NAME "A"\ngetenv(NAME);', ["A"]),
        (
            'constexpr char N[] = "A"; const std::string M{"B"}; const char* K("C");'
            "getenv(N); getenv(M.c_str()); getenv(x::K);",
            ["A", "B", "C"],
        ),
        ('#define N "A"\n#define M N\nconst char* k = M;\ngetenv(k);', ["A"]),
        ('#ifdef X\n#define N "A"\n#else\n#define N "B"\n#endif\ngetenv(N);', ["A", "B"]),
        ('void f() { auto n = "A"; getenv(n); } void g() { auto n = "B"; getenv(n); }', ["A", "B"]),
        ('config->getenv("A");', ["A"]),
    ],
)
def test_forms_of_a_read(text: str, names: list[str]) -> None:
    assert reads(text) == names


@pytest.mark.parametrize(
    "text",
    [
        '// getenv("A")\n/* getenv("A") */ f("getenv(\\"A\\")"); R"(getenv("A"))";',
        '#if 0\ngetenv("A");\n#endif',
        'extern "C" char* getenv(const char* name); char *getenv(const char *);',
        'inline char* getenv(const char* n = "A");',
        'setenv("A", "1", 1); putenv("A=1"); unsetenv("A"); my_getenv("A"); getenv_x("A");',
        "config->getenv(key);",
        "using std::getenv;",
        "#ifdef HAVE_GETENV\n#include <getenv.h>\n#endif",
    ],
)
def test_what_is_no_read(text: str) -> None:
    assert reads(text) == []


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("getenv(NAME);", "<NAME>"),
        ('getenv((std::string("ENG_") + x + "_P").c_str());', "ENG_*_P"),
        ('getenv(absl::StrCat("ENG_", x).c_str());', "ENG_*"),
        ('getenv(fmt::format("ENG_{}_P", x).c_str());', "ENG_*_P"),
        ('std::string n = "ENG_"; n += x; getenv(n.c_str());', "ENG_*"),
        ("getenv(names[i]);", "*"),
        ("auto read = std::getenv;", "*"),
        ("std::transform(a, b, c, getenv);", "*"),
        ("const char* n = n; getenv(n);", "*"),
    ],
)
def test_a_name_that_one_file_does_not_tell_is_said_to_be_unknown(text: str, pattern: str) -> None:
    assert reads(text) == [pattern]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bool f(const char* n, int d = 4) { return getenv(n); }", Parameter("f", 0, "n")),
        ("int f(int d, const std::string& n) { if (d) { return x(getenv(n.c_str())); } }", Parameter("f", 1, "n")),
        ('int f(const char* n = "A") { return !getenv(n); }', Parameter("f", 0, "n", '"A"', "A")),
        ("int f(std::map<int, int> m, const char* n) noexcept { return !getenv(n); }", Parameter("f", 1, "n")),
        ("class Env { static int get(const char* n) { return !getenv(n); } };", Parameter("Env.get", 0, "n")),
        ("int ns::Env::get(const char* n) const { return !getenv(n); }", Parameter("Env.get", 0, "n")),
        ("struct Env final : Base { Env(const char* n) : v_(getenv(n)) {} };", Parameter("Env", 0, "n")),
        ("Env::Env(const char* n) { v_ = getenv(n); }", Parameter("Env", 0, "n")),
        ("auto f = [&](const char* n) -> bool { return getenv(n); };", Parameter("f", 0, "n")),
        ("#define ENV(n, d) (getenv(n) ? getenv(n) : d)\n", Parameter("ENV", 0, "n")),
        ("template <class T> T f(const char* n) { auto p = n; return T(getenv(p)); }", Parameter("f", 0, "n")),
        (
            "int f(const char* n) {\n#if X\n  if (a) {\n#else\n  if (b) {\n#endif\n  getenv(n); } }",
            Parameter("f", 0, "n"),
        ),
    ],
)
def test_a_function_that_reads_its_parameter_is_a_wrapper(text: str, expected: Parameter) -> None:
    assert wrapper(text) == expected


def test_a_macro_before_a_function_is_no_part_of_its_header() -> None:
    text = "#define FLAG(x) foo(x)\nint f(const char* n) { return getenv(n) != nullptr; }"
    assert wrapper(text) == Parameter("f", 0, "n")


def test_a_wrapper_may_add_to_the_name() -> None:
    name = facts('char* f(std::string n) { auto full = "ENG_" + n; return getenv(full.c_str()); }').reads[0].name
    assert (name.pattern, name.parameter) == ("ENG_*", Parameter("f", 0, "n"))
    assert resolved(
        {"a.cpp": 'char* f(std::string n) { return getenv(("ENG_" + n).c_str()); }\nauto x = f("P");\n'}
    ) == [("a.cpp", 2, "ENG_P")]


def test_a_local_name_hides_neither_a_parameter_nor_another_functions_name() -> None:
    text = 'void f(const char* n) { getenv(n); }\nvoid g() { const char* n = "A"; getenv(n); }'
    first, second = facts(text).reads
    assert first.name.parameter == Parameter("f", 0, "n")
    assert second.name.literal == "A"


def test_calls_are_told_from_declarations_and_definitions() -> None:
    text = (
        "bool flag(const char* n, bool d = false);\nbool flag(std::string);\nbool flag(const char* n) { return n; }\n"
        'bool on = flag("A", true);\nreturn flag ("B");\nx->flag("C"); Env::flag(N); this->flag("D");\n'
        'Flag f("E"); Flag g{"F"}; flag<int>("G");\nclass Flag {};\nstd::for_each(a, b, flag);\n// flag("Z")\n'
    )
    found = calls(text, "flag", "Flag")
    assert [(call.line, call.callee, call.form) for call in found] == [
        (4, "flag", "call"),
        (5, "flag", "call"),
        (6, "?.flag", "call"),
        (6, "Env.flag", "call"),
        (6, "flag", "call"),
        (7, "Flag", "call"),
        (7, "Flag", "call"),
        (7, "flag", "call"),
        (9, "flag", "escape"),
    ]
    assert [argument.value.literal for argument in found[0].arguments] == ["A", "true"]
    assert found[3].arguments[0].value.reference == "N"
    assert [call.target for call in found[:1] + found[5:7]] == ["on", "f", "g"]


def test_a_call_with_an_own_parameter_makes_another_wrapper() -> None:
    call = calls("bool on(const char* n) { return flag(n); }", "flag")[0]
    assert call.arguments[0].value.parameter == Parameter("on", 0, "n")


def test_constants_of_a_second_pass() -> None:
    text = '#define N "A"\nconst char* M = "B";\nvoid f() { M = g(); }\nint K = 3;\n#define MACRO(x) "C"\n'
    assert [(c.name, c.value, c.line) for c in facts(text, "N", "M", "K", "MACRO", "none").constants] == [
        ("K", "3", 4),
        ("M", None, 2),
        ("N", "A", 1),
    ]


def test_definitions_of_a_second_pass() -> None:
    text = "struct Env { int get(int x) { return 1; } };\n#define flag(x) x\nint other(int get) { return get; }"
    assert facts(text, "get", "flag").defines == ("Env.get", "flag")


def test_position_and_statement() -> None:
    read = facts('int é;\n  auto x = /* c */ "é" +\n  getenv("A");').reads[0]
    assert (read.line, read.column, read.form) == (3, 3, "getenv")
    assert read.statement == 'auto x = "é" + getenv("A");'


@pytest.mark.parametrize(
    "text",
    [
        "for (char** e = environ; *e; ++e) use(*e);",
        "#define READ(x) do_read(#x)\nREAD(ENG_A);",
        'struct Row { const char* name; } rows[] = {{"ENG_A"}};',
    ],
)
def test_declared_blind_spots_stay_blind(text: str) -> None:
    assert reads(text) == []


def test_a_name_in_a_buffer_or_a_structure_is_seen_but_not_known() -> None:
    assert reads('char b[9]; snprintf(b, 9, "ENG_%d", i); getenv(b);') == ["<b>"]
    assert reads("for (auto& row : rows) getenv(row.name);") == ["*"]


RUST = """\
use std::env;
const KEY: &str = "ENG_KEY";
fn main() {
    let (c, q, l): (char, char, &'static str) = ('a', '"', "x");
    env::var("ENG_A").unwrap(); std::env::var_os("ENG_B"); env!("ENG_C"); option_env!("ENG_D");
    // env::var("NO")
    /* a /* nested */ env::var("NO") */
    let raw = r#"env::var("NO")"#;
    env::var(r##"ENG_"#R"##); env::var(KEY); env::var(&other::NAME);
    env::var(concat!("ENG_", "CAT")); env::var(format!("ENG_{}_Z", x));
    env::set_var("NO", "1"); env::remove_var("NO"); Command::new("x").env("NO", "1");
    let v = "ENG_V"; dotenvy::var(v.to_string());
}
#[cfg(test)]
mod tests { fn t() { env::var("NO"); } }
"""


def test_rust_reads() -> None:
    assert reads(RUST, "rust") == [
        "ENG_A",
        "ENG_B",
        "ENG_C",
        "ENG_D",
        'ENG_"#R',
        "ENG_KEY",
        "<NAME>",
        "ENG_CAT",
        "ENG_*_Z",
        "ENG_V",
    ]


def test_rust_reads_of_imported_functions_only() -> None:
    assert reads('use std::env::{self, var};\nfn f() { var("A"); }', "rust") == ["A"]
    assert reads('fn f() { var("A"); x.var("B"); g::var("C"); }', "rust") == []


def test_rust_reads_of_clap() -> None:
    text = (
        "#[derive(Parser)]\nstruct Cli {\n    /// text\n"
        '    #[arg(long, env = "ENG_A", default_value = "env")]\n    a: u32,\n'
        "    #[clap(env)]\n    #[serde(default)]\n    pub(crate) bare_name: u32,\n"
        "    #[arg(long, hide_env_values = true)]\n"
        '    c: u32,\n}\nfn f() { Arg::new("x").env("ENG_B"); }\n'
    )
    assert [(read.line, _shown(read)) for read in facts(text, language="rust").reads] == [
        (4, "ENG_A"),
        (6, "BARE_NAME"),
        (12, "ENG_B"),
    ]


def test_rust_wrappers() -> None:
    assert wrapper("fn f(d: u8, n: &str) { env::var(n) }", "rust") == Parameter("f", 1, "n")
    assert wrapper("impl Env { fn get(&self, n: &str) { env::var(n) } }", "rust") == Parameter("Env.get", 0, "n")
    files = {
        "a.rs": 'pub fn flag(name: &str) -> bool { std::env::var(format!("ENG_{name}")).is_ok() }\n',
        "b.rs": 'fn main() { let on = a::flag("ON"); }\n',
    }
    assert resolved(files) == [("b.rs", 1, "ENG_ON")]


def test_rust_blind_spots_stay_blind() -> None:
    assert reads("for (k, v) in env::vars() { use_it(k); }", "rust") == []
    assert reads('macro_rules! read { ($n:expr) => { std::env::var($n) }; }\nread!("A");', "rust") == ["*"]


def test_rust_source_keeps_lines_and_length() -> None:
    source = RustSource(RUST.encode())
    assert len(source.code) == len(source.live) == len(source.text)
    assert source.code.count("\n") == source.live.count("\n") == RUST.count("\n")
    assert "NO" not in source.live


@given(
    st.binary(max_size=120),
    st.lists(st.sampled_from(["getenv(", "env::var(", '"', "'", "flag(", "{", "}", "\n", "r#"])),
)
def test_any_bytes_are_extracted(data: bytes, words: list[str]) -> None:
    text = data + "".join(words).encode() + data
    for extract in (env_cfamily.extract, env_rust.extract):
        for options in (Options(), Options(("flag", "N"))):
            extracted = extract(text, options)
            assert msgspec.json.decode(msgspec.json.encode(extracted), type=list[EnvFacts]) == extracted


@pytest.mark.parametrize(
    "unit",
    [
        "getenv(",
        "getenv(n);",
        "n=n;getenv(n);",
        "n=",
        'getenv("A"+x+"B");',
        "int f(char*n){getenv(n);",
        "flag(n,",
        'flag("A");Flag f("B");',
        "env::var(n);",
        "fn f(n: &str){env::var(n)}",
        "#[arg(env)]",
        "const n: ",
        "/*",
        "{",
    ],
)
def test_extraction_is_linear(unit: str) -> None:
    @cpu_seconds
    def seconds(size: int) -> None:
        data = (unit * (size // len(unit)) + " getenv env flag").encode()
        for extract in (env_cfamily.extract, env_rust.extract):
            extract(data, Options())
            extract(data, Options(("flag", "Flag", "n")))

    # Eight times the input may cost up to 20 times as much before this is called worse than linear.
    assert seconds(40_000) < 20 * seconds(5_000) + 0.5
