"""Device words in C-family source: which uses are sites, and which are text, dead or guarded."""

import msgspec
import pytest
from gates.timing import cpu_seconds
from hypothesis import given
from hypothesis import strategies as st

from gatewright.extractors.device_casts import integer_casts
from gatewright.extractors.device_cfamily import extract
from gatewright.extractors.device_site import Entry, Site, Vocabulary

VOCABULARY = Vocabulary(
    entries=(
        Entry("attribute", "namespace", ("torch.cuda", "at::cuda", "c10::*_impl")),
        Entry("predicate", "predicate", ("is_cuda", "IsCuda")),
        Entry("literal", "literal", ("cuda", "hip")),
        Entry("call", "method", ("cuda",)),
        Entry("import", "import", ("cupy",)),
        Entry("include", "include", ("cuda_runtime.h", "hip/*")),
        Entry("preprocessor", "gate", ("USE_CUDA", "USE_ROCM", "VT_*")),
        Entry("enumerator", "enumerator", ("kCUDA", "DeviceType::CUDA")),
        Entry("cast", "cast", ("DeviceType",)),
        Entry("word", "word", ("cudaMalloc", "cuda*_t", "nccl*")),
    ),
    guards=("USE_*", "CUDA_VERSION", "__CUDACC__"),
    rooms=("cuda", "rocm"),
)


def sites(text: str, vocabulary: Vocabulary = VOCABULARY) -> list[Site]:
    return extract(text.encode(), vocabulary)


def found(text: str) -> list[tuple[int, str, str]]:
    return [(site.line, site.bucket, site.token) for site in sites(text)]


def casts(text: str) -> list[str]:
    return [cast.operand for cast in integer_casts(text, ["DeviceType"])]


def test_d_01_an_enumerator_is_found_qualified_or_not() -> None:
    text = "a = kCUDA;\nb = at :: kCUDA;\nc = c10::DeviceType::CUDA;\nd = kCUDAs + akCUDA + Other::CUDA;"
    assert found(text) == [
        (1, "enumerator", "kCUDA"),
        (2, "enumerator", "kCUDA"),
        (3, "enumerator", "DeviceType::CUDA"),
    ]


def test_d_02_comments_and_strings_hold_no_names() -> None:
    assert found("// kCUDA is_cuda()\n/* at::cuda::x\n cudaMalloc( */ f(\"kCUDA is_cuda()\"); 'kCUDA';") == []


def test_d_03_a_cast_over_three_lines_is_one_site_at_its_first() -> None:
    text = "x = static_cast<\n    DeviceType>( // why\n    1);\n"
    assert found(text) == [(1, "cast", "DeviceType(1)")]
    assert sites(text)[0].column == 5
    assert sites(text)[0].statement == "x = static_cast< DeviceType>( 1);"


def test_d_04_an_include_in_a_guard_is_no_site() -> None:
    for guard in ("if CUDA_VERSION >= 11000", "ifdef USE_CUDA", "if defined(__CUDACC__) || X", "if X && USE_ROCM"):
        assert "include" not in {site.kind for site in sites(f"#{guard}\n#include <cuda_runtime.h>\n#endif")}


def test_d_05_each_arm_of_a_guard_is_judged_on_its_own() -> None:
    text = (
        "#if CUDA_VERSION\n#include <hip/a.h>\n#elif X\n#include <hip/b.h>\n"
        "#elif CUDA_VERSION > 1\n#include <hip/c.h>\n"
        "#else\n#include <hip/d.h>\n#endif\n#include <hip/e.h>\n"
        "#if !CUDA_VERSION\n#include <hip/f.h>\n#else\n#include <hip/g.h>\n#endif\n"
        "#ifndef CUDA_VERSION\n#include <hip/h.h>\n#endif"
    )
    assert [token for _, _, token in found(text)] == ["hip/b.h", "hip/d.h", "hip/e.h", "hip/f.h", "hip/h.h"]


def test_includes_in_every_spelling() -> None:
    text = '#include <hip/a.h>\n# include "hip/b.h"\n#import <hip/c.h>\n#include_next <cuda_runtime.h> // x\n'
    assert [(line, token) for line, _, token in found(text)] == [
        (1, "hip/a.h"),
        (2, "hip/b.h"),
        (3, "hip/c.h"),
        (4, "cuda_runtime.h"),
    ]
    assert found('#include "chip/a.h"\n#include <my_cuda_runtime.h>\n#include HEADER\n// #include <hip/x.h>') == []


def test_a_header_in_a_device_room_is_reported_without_a_bucket() -> None:
    text = '#include "platforms/cuda/x.h"\n#include "x/rocm.hpp"\n#include "cudax/y.h"\n'
    assert found(text) == [(1, "", "platforms/cuda/x.h"), (2, "", "x/rocm.hpp")]


def test_d_11_a_digit_separator_hides_nothing() -> None:
    assert found("int x = 1'000;\nauto d = kCUDA;\n") == [(2, "enumerator", "kCUDA")]


def test_d_12_a_raw_string_is_text() -> None:
    assert found('auto s = R"(a " kCUDA )"; auto t = R"q()" kCUDA)q";') == []
    assert found('auto s = R"(a " )"; kCUDA;') == [(1, "enumerator", "kCUDA")]


def test_d_13_every_conditional_that_tests_a_device_macro_is_a_site() -> None:
    text = (
        "#ifdef VT_A\n#elif defined(VT_B)\n#endif\n#ifndef VT_C\n#endif\n"
        "#if defined VT_D || \\\n  !defined(VT_E)\n#endif\n"
        "#if USE_ROCM // USE_CUDA\n#elifdef VT_F\n#elifndef VT_G\n#endif\n"
        "#define VT_H 1\n#undef VT_I\n#error VT_J\nVT_K\n"
    )
    assert [(line, token) for line, bucket, token in found(text) if bucket == "gate"] == [
        (1, "VT_A"),
        (2, "VT_B"),
        (4, "VT_C"),
        (6, "VT_D"),
        (7, "VT_E"),
        (9, "USE_ROCM"),
        (10, "VT_F"),
        (11, "VT_G"),
    ]


def test_dead_code_holds_no_site() -> None:
    dead = '#include <hip/a.h>\n#ifdef USE_CUDA\n#endif\nkCUDA; "cuda"; static_cast<DeviceType>(1);\n'
    assert found(f"#if 0\n{dead}#endif\n#if 1\n#else\n{dead}#endif\n") == []
    assert len(found(dead)) == 5


@pytest.mark.parametrize(
    "text",
    [
        "static_cast<DeviceType>(1)",
        "static_cast<c10::DeviceType>(i)",
        "static_cast< const ::c10::DeviceType & >( i + 1 )",
        "static_cast<enum DeviceType>(1)",
        "static_cast<DeviceType>(\n  static_cast<int>(\n    x))",
        "static_cast<DeviceType>(static_cast<int>(DeviceType::CPU) + 1)",
        "static_cast<DeviceType>(x ? 1 : 0)",
        "reinterpret_cast<DeviceType&>(i)",
        "std::bit_cast<DeviceType>(std::int8_t{1})",
        "magic_enum::enum_cast<DeviceType>(1)",
        "DeviceType(1)",
        "DeviceType(0x1)",
        "::c10::DeviceType(index)",
        "return DeviceType(i);",
        "f(DeviceType(1), 2)",
        "new DeviceType(1)",
        "case DeviceType(2):",
        "a < DeviceType(1)",
        "x = DeviceType{1};",
        "DeviceType d{1};",
        "const DeviceType d{i};",
        "DeviceType d(1);",
        "DeviceType d = 1;",
        "DeviceType d = {1};",
        "void f(DeviceType d = 1)",
        "(DeviceType)1",
        "(c10::DeviceType)i",
        "(const DeviceType)-1",
        "(DeviceType)*p",
        "(DeviceType){1}",
        "(int)(DeviceType)1",
        "return (enum DeviceType)(i);",
        "foo<(DeviceType)1>()",
    ],
)
def test_d_17_an_integer_cast_to_the_device_type_counts_once_in_every_spelling(text: str) -> None:
    assert len(casts(text)) == 1
    assert [bucket for _, bucket, _ in found(text) if bucket == "cast"] == ["cast"]


@pytest.mark.parametrize(
    "text",
    [
        "static_cast<int>(DeviceType::CPU)",
        "int(DeviceType::CPU) + (int)d",
        "static_cast<DeviceType>(kCPU)",
        "DeviceType(DeviceType::CPU)",
        "(DeviceType)DeviceType::CPU",
        "void f(DeviceType d);",
        "void f(DeviceType);",
        "void f(DeviceType) const;",
        "bool f(DeviceType) noexcept;",
        "void f(DeviceType) override {}",
        "void f(DeviceType (*p)(int));",
        "int operator()(DeviceType) const;",
        "auto l = [](DeviceType) { return 1; };",
        "DeviceType f(int x);",
        "DeviceType f() {",
        "auto f() -> DeviceType { return x; }",
        "operator DeviceType() const {",
        "std::function<DeviceType(int)> f;",
        "std::function<DeviceType(const Tensor&)> f;",
        "std::function<DeviceType(Tensor, int)> f;",
        "std::function<DeviceType(std::size_t)> f;",
        "sizeof(DeviceType)",
        "sizeof(DeviceType) * 2",
        "alignof(DeviceType)",
        "sizeof(DeviceType{1})",
        "enum class DeviceType : int8_t { CPU };",
        "enum DeviceType { CPU };",
        "template <typename DeviceType> f()",
        "DeviceType d = other;",
        "DeviceType d = f(1);",
        "DeviceType d(other);",
        "DeviceType d{};",
        "DeviceType()",
        "std::vector<DeviceType> v{1};",
        "static_cast<std::underlying_type_t<DeviceType>>(d)",
        "DeviceTypeX(1)",
        'magic_enum::enum_cast<DeviceType>("cpu")',
    ],
)
def test_what_only_looks_like_a_cast_of_an_integer_does_not_count(text: str) -> None:
    assert [bucket for _, bucket, _ in found(text) if bucket == "cast"] == []


@pytest.mark.parametrize(
    "text",
    [
        "using D = DeviceType; D(1);",
        "template <class T> T f(int i) { return static_cast<T>(i); } f<DeviceType>(1);",
        "DeviceType d; std::memcpy(&d, &i, sizeof(d));",
        "*reinterpret_cast<DeviceType*>(&i);",
    ],
)
def test_declared_blind_spots_of_casts_stay_blind(text: str) -> None:
    assert casts(text) == []


def test_a_cast_from_a_variable_of_the_type_is_over_matched() -> None:
    assert casts("DeviceType d; DeviceType(d);") == ["d"]


def test_a_name_split_by_a_line_continuation_is_a_blind_spot() -> None:
    assert found("auto d = kCU\\\nDA;") == []


def test_predicates_are_asked_not_declared() -> None:
    text = (
        "if (t.is_cuda() || t->is_cuda() || IsCuda(t)) return is_cuda();\nauto p = &Tensor::x; q = t.is_cuda;\n"
        "bool is_cuda() const;\nbool Device::is_cuda() const {}\ninline bool IsCuda(int x);\nint is_cuda = 1;\n"
    )
    assert [(line, token) for line, bucket, token in found(text) if bucket == "predicate"] == [
        (1, "is_cuda"),
        (1, "is_cuda"),
        (1, "IsCuda"),
        (1, "is_cuda"),
        (2, "is_cuda"),
    ]


def test_namespaces_match_whole_components_and_the_token_starts_there() -> None:
    text = "::at::cuda::getStream();\nx::at :: cuda\n  ::f();\nat::cudax::f(); bat::cuda::f(); c10::hip_impl::g();"
    assert found(text) == [
        (1, "namespace", "at::cuda::getStream"),
        (2, "namespace", "at::cuda::f"),
        (4, "namespace", "c10::hip_impl::g"),
    ]


def test_methods_are_called_on_something() -> None:
    assert found("t.cuda();\nt->cuda ();\ncuda(); t.cuda; int cuda;") == [(1, "method", "cuda"), (2, "method", "cuda")]


def test_words_are_whole_identifiers_or_whole_strings() -> None:
    text = 'cudaMalloc(&p, n);\ncudaStream_t s; xcudaStream_t t;\nf("nccl_x", "nccl x", "x_nccl");\ncudaMallocs();'
    assert found(text) == [(1, "word", "cudaMalloc"), (2, "word", "cudaStream_t"), (3, "word", '"nccl_x"')]


def test_device_strings_in_all_spellings() -> None:
    text = 'f("cuda");\nf("cuda:0", u8"cuda:");\nf("cu" /* x */ "da");\nf("\\x63uda");\n'
    text += 'f("cuda x", "cuda:a", "scuda", \'c\');'
    assert [(line, token) for line, _, token in found(text)] == [
        (1, '"cuda"'),
        (2, '"cuda:0"'),
        (2, '"cuda:"'),
        (3, '"cuda"'),
        (4, '"cuda"'),
    ]
    assert found('f("c" "uda");') == [(1, "literal", '"cuda"')]
    assert found('f("\\x63uda");') == [(1, "literal", '"cuda"')]


@pytest.mark.parametrize("index", ["%d", "%zu", "%ld", "{}", "{:d}", "0", ""])
def test_a_device_string_may_be_a_template(index: str) -> None:
    assert found(f'f("cuda:{index}");') == [(1, "literal", f'"cuda:{index}"')]


def test_strings_of_directives_are_no_device_strings_but_macro_bodies_are_code() -> None:
    assert found('#include "cuda"\n#error "cuda"\n#pragma message("cuda")\n') == [(1, "", "cuda")]
    assert found('#define D "cuda"\n#define E at::kCUDA\n') == [(1, "literal", '"cuda"'), (2, "enumerator", "kCUDA")]


def test_a_macro_and_the_code_behind_it_are_not_read_together() -> None:
    text = "#define D DeviceType\nD(1);\n#define N bool\nis_cuda();\n"
    text += "#define E DeviceType(1)\n#define F foo\nDeviceType(i);"
    assert found(text) == [(4, "predicate", "is_cuda"), (5, "cast", "DeviceType(1)"), (7, "cast", "DeviceType(i)")]


def test_one_name_is_one_site() -> None:
    assert found("at::cuda::cudaMalloc(kCUDA);") == [
        (1, "namespace", "at::cuda::cudaMalloc"),
        (1, "enumerator", "kCUDA"),
    ]


def test_a_statement_does_not_change_when_code_moves_or_is_wrapped() -> None:
    one = sites("f(at::kCUDA, x);")[0]
    other = sites("// comment\n\n{\n  f(at::kCUDA, // why\n    x);\n}")[0]
    assert (one.token, one.statement) == (other.token, other.statement) == ("kCUDA", "f(at::kCUDA, x);")
    assert (other.line, other.column) == (4, 5)


def test_sites_of_undecodable_source_can_be_encoded() -> None:
    site = extract(b'f("\xff", kCUDA);', VOCABULARY)[0]
    assert site.statement.encode() == b'f("?", kCUDA);'
    assert site.column == 8


def test_words_of_python_alone_do_not_concern_this_language() -> None:
    python = Vocabulary((Entry("attribute", "a", ("torch.cuda",)), Entry("import", "b", ("cupy",))))
    assert sites("torch.cuda; cupy;", python) == []


@given(
    st.binary(max_size=100), st.lists(st.sampled_from(["kCUDA", "DeviceType(", "::", "at::cuda", "#if ", "\n", "{"]))
)
def test_any_bytes_are_extracted(data: bytes, words: list[str]) -> None:
    text = data + "".join(words).encode() + data
    found_sites = msgspec.json.decode(msgspec.json.encode(extract(text, VOCABULARY)), type=list[Site])
    assert [(s.line, s.column) for s in found_sites] == sorted((s.line, s.column) for s in found_sites)


@pytest.mark.parametrize(
    "unit",
    [
        "cuda::",
        "cuda :: ",
        "cudaA",
        "kCUDA,",
        "DeviceType(",
        "DeviceType ",
        "(DeviceType)",
        "static_cast<DeviceType>(",
        "#if USE_CUDA\n#include <hip/x.h>\n",
        '"cu" "da" ',
    ],
)
def test_extraction_is_linear(unit: str) -> None:
    @cpu_seconds
    def seconds(size: int) -> None:
        data = (unit * (size // len(unit))).encode()
        extract(data, VOCABULARY)

    # Eight times the input may cost up to 20 times as much before this is called worse than linear.
    assert seconds(80_000) < 20 * seconds(10_000) + 0.5
