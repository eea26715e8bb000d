"""The check device-leakage: cases of the field (DL), of ratchets before it (D), and every word of the vocabulary."""

import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gatewright.checks._device_policy import POLICY, Policy, default_vocabulary
from gatewright.checks.device_leakage import CHECK
from gatewright.core.cache import Cache
from gatewright.core.change import Change
from gatewright.core.finding import Finding, subtract
from gatewright.core.report import Report
from gatewright.core.runner import run
from gatewright.core.snapshot import DictSnapshot
from gatewright.core.tree import Tree

LAYERS = """
shared = ["engine/core/**"]
tests = ["tests/**"]
[rooms]
cuda = ["engine/platforms/cuda/**"]
"""
GUARDS, _, BUCKETS = default_vocabulary().partition("[bucket")
TEXT = GUARDS + LAYERS + "[bucket" + BUCKETS
# A room with a site, so that the scan is not blind, and a shared file, so that no layer is empty.
FRAME = {
    "engine/platforms/cuda/stream.py": "import torch\ntorch.cuda.synchronize()\n",
    "engine/core/clean.py": "def step(platform): platform.synchronize()\n",
    "engine/core/clean.cpp": "int step() { return 1; }\n",
    "tests/test_step.py": "def test_step(): assert True\n",
}


def policy(text: str = TEXT) -> Policy:
    return msgspec.convert(tomllib.loads(text), Policy)


def findings(files: dict[str, str], text: str = TEXT) -> list[Finding]:
    judgement = CHECK.judge(Tree.of({**FRAME, **files}), policy(text))
    return sorted(judgement.findings, key=lambda finding: finding.order)


def python(source: str, text: str = TEXT) -> list[Finding]:
    return findings({"engine/core/runner.py": source}, text)


def cpp(source: str, text: str = TEXT) -> list[Finding]:
    return findings({"engine/core/runner.cpp": source}, text)


def places(found: list[Finding]) -> list[tuple[str, int]]:
    return [(finding.rule.removeprefix("device-leakage/"), finding.line) for finding in found]


def change(head: dict[str, str], base: dict[str, str] | None = None, text: str = TEXT) -> Report:
    """The verdict of a run on a head against a base, exemptions and policy rules included."""
    snapshots = [
        None if files is None else DictSnapshot({**FRAME, POLICY: text, **files}, name)
        for name, files in (("head", head), ("base", base))
    ]
    assert snapshots[0] is not None
    return run([Change(None, snapshots[0], snapshots[1])], Cache(None), only=["device-leakage", "policy"])


RUNNER = "engine/core/runner.py"
CORE = "engine/core/runner.cpp"


def test_dl_01_attribute_in_a_shared_layer_and_in_a_room() -> None:
    source = "def step(self):\n    torch.cuda.synchronize()\n"
    (found,) = python(source)
    assert (found.rule, found.path, found.line, found.bucket) == (
        "device-leakage/attribute",
        RUNNER,
        2,
        "torch_cuda",
    )
    assert "torch.cuda.synchronize" in found.message
    assert "engine/core/**" in found.message
    assert "torch.accelerator" in found.help
    assert "# gate: allow device-leakage/attribute (OWNER): reason" in found.help
    assert findings({"engine/platforms/cuda/other.py": source}) == []


def test_dl_02_device_strings_in_all_spellings() -> None:
    found = python(
        "def f(x, i):\n"
        '    x.to("cuda"); torch.zeros(3, device="cuda:0"); torch.device(f"cuda:{i}")\n'
        '    d = "cu" "da"; kind = b"cuda"\n'
    )
    assert [(f.rule, f.line, f.token) for f in found] == [
        ("device-leakage/literal", 2, '"cuda"'),
        ("device-leakage/literal", 2, '"cuda:0"'),
        ("device-leakage/literal", 2, '"cuda:{}"'),
        ("device-leakage/literal", 3, '"cuda"'),
    ]


def test_dl_02_bytes_are_data() -> None:
    assert python('kind = b"cuda"\n') == []


def test_dl_04_alias_and_dynamic_access() -> None:
    found = python(
        "import torch.cuda as tc\n"
        "from torch import cuda as C\n"
        "def f():\n"
        '    tc.Stream(); C.Event(); getattr(torch, "cuda").empty_cache(); vars(torch)["cuda"]\n'
    )
    assert [(f.rule.partition("/")[2], f.line, f.token) for f in found] == [
        ("import", 1, "torch.cuda"),
        ("import", 2, "torch.cuda"),
        ("attribute", 4, "torch.cuda.Stream"),
        ("attribute", 4, "torch.cuda.Event"),
        ("dynamic", 4, "torch.cuda.empty_cache"),
        ("dynamic", 4, "torch.cuda"),
    ]


def test_dl_05_comment_and_docstring_are_no_code_but_a_space_is() -> None:
    source = (
        "def f():\n"
        '    """Once held a torch.cuda.Stream here."""\n'
        "    # torch.cuda is fine on the cuda platform only\n"
        "    return torch .cuda.current_device()\n"
    )
    assert places(python(source)) == [("attribute", 4)]
    continued = "def f():\n    return torch\\\n        .cuda.current_device()\n"
    assert places(python(continued)) == [("attribute", 2)]


def test_dl_07_probe_at_import_time() -> None:
    found = python(
        'DTYPE = "bf16" if torch.cuda.is_bf16_supported() else "f16"\ndef f(dev=torch.cuda.current_device()): ...\n'
    )
    assert places(found) == [("import-time", 1), ("import-time", 2)]
    assert all("import time" in f.message for f in found)


@pytest.mark.parametrize(
    "source",
    [
        "if TYPE_CHECKING:\n    x = torch.cuda.x\n",
        "if __name__ == '__main__':\n    x = torch.cuda.x\n",
        "f = lambda: torch.cuda.x\n",
        "from __future__ import annotations\ndef f(x: torch.cuda.Stream): ...\n",
    ],
)
def test_dl_07_what_does_not_run_at_import_keeps_its_own_rule(source: str) -> None:
    assert [rule for rule, _ in places(python(source))] == ["attribute"]


def test_dl_08_vendor_words_are_those_of_the_policy() -> None:
    source = (
        'def f(timer, cfg, platform):\n    timer("nccl_all_reduce")\n    cfg.cuda_graph_sizes\n'
        "    if platform.is_cuda_alike(): pass\n"
    )
    assert places(python(source)) == [("word", 2), ("predicate", 4)]
    more = TEXT + '[bucket.graph]\nkind = "word"\nwords = ["cuda_graph*"]\n'
    assert places(python(source, more)) == [("word", 2), ("word", 3), ("predicate", 4)]


def test_dl_10_code_moved_into_the_scanned_tree() -> None:
    lines = "".join(f"def f{n}():\n    if HAS_CUDA: pass\n" for n in range(5))
    report = change({"engine/core/main.py": lines}, {"examples/server.py": lines})
    assert [(f.path, f.line) for f in report.new] == [("engine/core/main.py", n) for n in (2, 4, 6, 8, 10)]
    assert all("moved in from an unscanned place" in f.message for f in report.new)


def test_dl_10_a_marker_clears_one_site_only() -> None:
    allowed = "    # gate: allow device-leakage/word (ENG-7): the label is a file format\n"
    source = f"def f():\n{allowed}    HAS_CUDA\n    HAS_CUDA\n"
    report = change({RUNNER: source})
    assert [(f.rule, f.line) for f in report.failing] == [("device-leakage/word", 4)]
    assert [(e.owner, e.finding.line) for e in report.exempted] == [("ENG-7", 3)]
    clean = change({RUNNER: f"def f():\n{allowed}    pass\n"})
    assert [f.rule for f in clean.failing] == ["policy/exemption-unused"]


def test_dl_11_a_site_cannot_be_swapped_for_another() -> None:
    base = python("def f():\n    torch.cuda.a()\n    torch.cuda.b()\n")
    head = python("def f():\n    torch.cuda.a()\n    torch.cuda.c()\n")
    new, inherited = subtract(head, base)
    assert [f.token for f in new] == ["torch.cuda.c"]
    assert len(inherited) == 1 and len(head) == len(base)


def test_dl_13_old_findings_are_inherited_and_listed() -> None:
    old = "".join(f"    torch.cuda.f{n}()\n" for n in range(10))
    report = change({RUNNER: f"def f():\n    x = 1\n{old}"}, {RUNNER: f"def f():\n{old}"})
    assert report.new == [] and len(report.inherited) == 10
    assert len(change({RUNNER: f"def f():\n{old}"}).failing) == 10


DEVICE_ONLY = {
    "skipif": '@pytest.mark.skipif(not torch.cuda.is_available(), reason="")\ndef test_a(): ...\n',
    "skipUnless": '@unittest.skipUnless(torch.cuda.is_available(), "")\nclass A: ...\n',
    "module": 'pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="")\n',
    "named": 'gpu = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="")\n@gpu\ndef test_a(): ...\n',
    "guard": 'def test_a():\n    if not torch.cuda.is_available():\n        pytest.skip("")\n',
    "importorskip": 'pynvml = pytest.importorskip("pynvml")\n',
    "mark": "@requires_cuda\ndef test_a(): ...\n",
    "pytest-mark": "@pytest.mark.cuda\ndef test_a(): ...\n",
}


@pytest.mark.parametrize("source", DEVICE_ONLY.values(), ids=DEVICE_ONLY)
def test_dl_13_a_test_of_one_device_is_listed_and_fails_nothing(source: str) -> None:
    assert [rule for rule, _ in places(findings({"tests/test_a.py": source}))] == ["device-only-test"]
    report = change({"tests/test_a.py": source})
    assert [f.rule for f in report.advisory] == ["device-leakage/device-only-test"]
    assert report.failing == []


@pytest.mark.parametrize(
    "source",
    [
        '@pytest.mark.skipif(torch.cuda.is_available(), reason="")\ndef test_a(): ...\n',
        '@pytest.mark.skipif(DEVICE == "cuda", reason="")\ndef test_a(): ...\n',
        '@pytest.mark.parametrize("device", ["cuda"])\ndef test_a(): ...\n',
        "def test_a():\n    if not torch.cuda.is_available():\n        return\n    torch.cuda.x()\n",
        '@pytest.mark.skipif(sys.platform == "win32", reason="")\ndef test_a(): ...\n',
    ],
)
def test_dl_13_a_test_that_runs_elsewhere_is_not_listed(source: str) -> None:
    assert findings({"tests/test_a.py": source}) == []


# The ratchet cases. Those that speak of a stored baseline pin the same property of the subtraction.


def test_d_01_one_more_enumerator_is_new_in_its_bucket() -> None:
    new, _ = subtract(cpp("auto d = torch::kCUDA;\n"), cpp("int a;\n"))
    assert [(f.rule, f.bucket) for f in new] == [("device-leakage/enumerator", "enumerator")]


def test_d_02_comments_and_strings_do_not_count() -> None:
    assert cpp('// kCUDA\n/* kCUDA */\nconst char* s = "see kCUDA";\n') == []


def test_d_03_a_cast_over_three_lines_counts_once() -> None:
    assert places(cpp("auto d = static_cast<\n  DeviceType\n>(1);\n")) == [("cast", 1)]


def test_d_04_an_include_in_a_version_guard_is_fine() -> None:
    assert findings({CORE: "#if CUDA_VERSION >= 12000\n#include <cuda_fp8.h>\n#endif\n"}, no_gates()) == []


def test_d_05_the_else_of_a_guard_is_no_guard() -> None:
    source = "#if CUDA_VERSION >= 12000\nint a;\n#else\n#include <cuda_fp8.h>\n#endif\n"
    assert places(findings({CORE: source}, no_gates())) == [("include", 4)]


def no_gates() -> str:
    """The policy without the bucket that counts the guards themselves."""
    before, _, after = TEXT.partition("[bucket.macro]")
    return before + "[bucket" + after.partition("[bucket")[2]


@pytest.mark.parametrize(
    "source",
    [
        "auto d = kCUDA;  // gate: allow device-leakage/enumerator (ENG-7): written into the file format\n",
        "// gate: allow device-leakage/enumerator (ENG-7): written into the file format\nauto d = kCUDA;\n",
    ],
)
def test_d_06_an_exemption_with_owner_and_reason_holds_and_is_printed(source: str) -> None:
    report = change({CORE: source})
    assert report.failing == []
    assert [e.finding.rule for e in report.exempted] == ["device-leakage/enumerator"]


@pytest.mark.parametrize(
    "comment",
    [
        "// gate: allow device-leakage/enumerator (ENG-7): written into the file format\n\n",
        "// gate: allow device-leakage/enumerator: written into the file format\n",
        "// gate: allow device-leakage/enumerator (ENG-7):\n",
    ],
    ids=["blank line between", "no owner", "no reason"],
)
def test_d_07_a_malformed_exemption_exempts_nothing(comment: str) -> None:
    report = change({CORE: f"{comment}auto d = kCUDA;\n"})
    rules = {f.rule for f in report.failing}
    assert "device-leakage/enumerator" in rules
    assert len(rules) == 2 and any(rule.startswith("policy/exemption-") for rule in rules)


def test_d_08_fewer_sites_need_no_second_edit() -> None:
    report = change({CORE: "auto a = kCUDA;\n"}, {CORE: "auto a = kCUDA;\nauto b = kCUDA;\n"})
    assert report.new == [] and report.verdict == "PASS"


def test_d_09_a_higher_total_is_new() -> None:
    report = change({CORE: "auto a = kCUDA;\nauto b = kCUDA;\n"}, {CORE: "auto a = kCUDA;\n"})
    assert [f.line for f in report.new] == [2]


def test_d_10_one_bucket_more_and_one_less_is_new() -> None:
    report = change({CORE: "auto a = kCUDA;\n"}, {CORE: "#ifdef USE_CUDA\n#endif\n"})
    assert [f.bucket for f in report.new] == ["enumerator"]


def test_d_11_a_digit_separator_opens_no_literal() -> None:
    assert places(cpp("int x = 1'000;\nauto d = kCUDA;\n")) == [("enumerator", 2)]


def test_d_12_a_quote_in_a_raw_string_ends_nothing() -> None:
    assert cpp('auto s = R"(a " kCUDA )";\n') == []


def test_d_13_every_form_of_a_gate_counts() -> None:
    source = "#ifndef USE_CUDA\n#endif\n#if 1\n#elif defined(USE_CUDA)\n#endif\n#if !defined USE_CUDA\n#endif\n"
    assert [rule for rule, _ in places(cpp(source))].count("preprocessor") >= 2
    assert ("preprocessor", 1) in places(cpp(source)) and ("preprocessor", 6) in places(cpp(source))
    assert places(cpp("#if X\n#elif defined(USE_CUDA)\n#endif\n")) == [("preprocessor", 2)]


def test_d_14_code_moved_from_an_unscanned_folder_is_said_to_be() -> None:
    source = "auto d = kCUDA;\n"
    report = change({CORE: source}, {"csrc/runner.cpp": source})
    assert [f.rule for f in report.new] == ["device-leakage/enumerator"]
    assert "moved in from an unscanned place" in report.new[0].message


def test_d_14_code_moved_within_the_layer_is_not_new() -> None:
    source = "def f():\n    torch.cuda.x()\n"
    report = change({"engine/core/b.py": source}, {"engine/core/a.py": source})
    assert report.new == [] and len(report.inherited) == 1


def test_d_15_an_exemption_without_its_site_is_stale() -> None:
    comment = "// gate: allow device-leakage/enumerator (ENG-7): written into the file format\n"
    report = change({CORE: f"{comment}int a;\n"})
    assert [f.rule for f in report.failing] == ["policy/exemption-unused"]


def test_d_16_a_path_of_the_policy_that_vanished_is_found() -> None:
    text = TEXT.replace('"engine/platforms/cuda/**"', '"engine/platforms/cuda/**", "engine/gone/**"')
    assert [f.rule for f in change({}, text=text).failing] == ["policy/empty-glob"]


def test_d_17_a_number_cast_to_the_device_type_is_as_bad_as_its_name() -> None:
    by_number, by_name = cpp("auto d = static_cast<DeviceType>(1);\n"), cpp("auto d = DeviceType::kCUDA;\n")
    assert [f.rule for f in by_number] == ["device-leakage/cast"]
    assert [f.rule for f in by_name] == ["device-leakage/enumerator"]


# Imports that lead into rooms

TREE = {
    "engine/__init__.py": "",
    "engine/core/__init__.py": "",
    "engine/platforms/__init__.py": "",
    "engine/platforms/interface.py": "",
    "engine/platforms/cuda/__init__.py": "",
}


@pytest.mark.parametrize(
    "line",
    [
        "from engine.platforms import cuda",
        "import engine.platforms.cuda.stream as s",
        "from ..platforms.cuda.stream import Stream",
        "from ..platforms import cuda, interface",
        "from engine.platforms.cuda import missing",
        'import importlib; importlib.import_module("engine.platforms.cuda")',
    ],
)
def test_an_import_of_a_room_is_found(line: str) -> None:
    for tree in (TREE, {}):
        (found,) = findings({**tree, RUNNER: f"def f():\n    {line}\n"})
        assert (found.rule, found.line, found.bucket) == ("device-leakage/import", 2, "room")
        assert "'cuda'" in found.message


def test_an_import_of_a_room_under_a_source_root_is_found() -> None:
    text = TEXT.replace("engine/", "src/engine/")
    moved = {f"src/{path}": source for path, source in {**FRAME, **TREE}.items()}
    found = findings({**moved, "src/engine/core/a.py": "from engine.platforms import cuda\n"}, text)
    assert [(f.rule, f.path) for f in found] == [("device-leakage/import", "src/engine/core/a.py")]


@pytest.mark.parametrize(
    "line",
    ["from engine.platforms import interface", "from . import cuda", "import other.cuda", "from .cuda import policy"],
)
def test_an_import_beside_a_room_is_fine(line: str) -> None:
    assert findings({**TREE, "engine/core/cuda.py": "", RUNNER: f"{line}\n"}) == []


def test_a_room_may_be_a_glob_of_file_names() -> None:
    text = TEXT.replace('"engine/platforms/cuda/**"', '"engine/platforms/cuda/**", "engine/core/*_cuda.py"')
    files = {"engine/core/attention_cuda.py": "import torch.cuda\n", RUNNER: "from . import attention_cuda\n"}
    assert places(findings(files, text)) == [("import", 1)]


def test_an_include_of_a_room_is_found() -> None:
    files = {"engine/platforms/cuda/stream.h": "int x;\n"}
    beside = findings({**files, CORE: '#include "../platforms/cuda/stream.h"\n'})
    absolute = findings({**files, CORE: '#include "platforms/cuda/stream.h"\n'}, no_headers())
    assert [f.rule for f in beside] == [f.rule for f in absolute] == ["device-leakage/include"]
    assert findings({CORE: '#include "other/cuda/x.h"\n'}, no_headers()) == []


def no_headers() -> str:
    return TEXT.replace('    "*/cuda/*",\n', "")


# The self-check, the counts, the layers


def test_a_scanner_that_sees_nothing_is_blind() -> None:
    text = LAYERS + '[bucket.torch]\nkind = "attribute"\nwords = ["torch.kuda"]\n'
    (found,) = findings({}, text)
    assert (found.rule, found.path) == ("device-leakage/blind", POLICY)
    assert findings({}) == []


def test_every_rule_counts_what_it_looked_at() -> None:
    examined = CHECK.judge(Tree.of(FRAME), policy()).examined
    assert set(examined) == {rule.id for rule in CHECK.rules}
    assert examined["device-leakage/attribute"] == 2
    assert examined["device-leakage/enumerator"] == 1
    assert examined["device-leakage/unparsable"] == 1
    assert examined["device-leakage/blind"] == 1
    assert examined["device-leakage/device-only-test"] == 1


def test_an_empty_layer_is_unknown() -> None:
    report = change({"engine/core/clean.py": ""}, text=TEXT.replace("engine/core/**", "docs/*.md"))
    assert "device-leakage/attribute" in {rule.id for rule in report.unknown}


def test_exclude_and_rooms_are_no_shared_layer() -> None:
    source = "import torch.cuda\n"
    text = 'exclude = ["engine/core/vendored/**"]\n' + TEXT.replace('"engine/core/**"', '"engine/**"')
    assert findings({"engine/core/vendored/a.py": source, "engine/platforms/cuda/b.py": source}, text) == []
    assert places(findings({"engine/other.py": source}, text)) == [("import", 1)]


def test_outside_gives_the_sites_that_judge_leaves_out() -> None:
    tree = Tree.of({**FRAME, "tools/a.py": "def f():\n    torch.cuda.x()\n", RUNNER: "import torch.cuda\n"})
    found = CHECK.outside(tree, policy(), tree.paths)
    assert [(f.path, f.rule) for f in found] == [
        ("engine/platforms/cuda/stream.py", "device-leakage/import-time"),
        ("tools/a.py", "device-leakage/attribute"),
    ]


def test_a_shared_file_that_does_not_parse_is_found_with_its_words() -> None:
    found = python('def f(:\n    torch.cuda.x(); y.is_cuda; z.cuda(); a = "cuda:0"  # torch.cuda\nimport triton\n')
    assert [(f.rule.partition("/")[2], f.line) for f in found] == [
        ("unparsable", 1),
        ("attribute", 2),
        ("predicate", 2),
        ("call", 2),
        ("literal", 2),
        ("import", 3),
    ]
    assert python("def f(:\n    pass\n") == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('kind = "attribute"', 'kind = "attributes"'),
        ('cuda = ["engine/platforms/cuda/**"]', 'cuda = "engine/platforms/cuda/**"'),
        ('words = ["torch.version.hip"]', 'words = ["*"]'),
        ('words = ["torch.version.hip"]', "words = []"),
        ('words = ["torch.version.hip"]', 'words = ["torch.(hip|cuda)"]'),
        ('words = ["torch.version.hip"]', 'words = [" torch.version.hip"]'),
        ('words = ["torch.version.hip"]', "words = ['torch\\.version\\.hip']"),
        ('words = ["torch.version.hip"]', 'wrods = ["torch.version.hip"]'),
    ],
)
def test_a_wrong_policy_is_refused(old: str, new: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        policy(TEXT.replace(old, new, 1))


def test_a_policy_without_device_words_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="nothing is found"):
        msgspec.convert({"shared": ["engine/**"], "bucket": {}}, Policy)


# Every word of the vocabulary, both ways

BAD = {
    "attribute": "def f():\n    {word}.thing()\n",
    "attribute::": "void f() {{ {word}::thing(); }}\n",
    "predicate": "def f(x):\n    return x.{word}\n",
    "literal": 'def f(x):\n    return x.to("{word}")\n',
    "call": "def f(x):\n    return x.{word}()\n",
    "import": "def f():\n    import {word}.part\n",
    "word": "def f():\n    {word} = 1\n",
    "include": "#include <{word}>\n",
    "preprocessor": "#if defined({word})\n#endif\n",
    "enumerator": "auto d = at::{word};\n",
    "cast": "auto d = static_cast<{word}>(1);\n",
    "mark": "@{word}\ndef test_a(): ...\n",
}
GOOD = {
    "attribute": '"""{word}.thing"""\ndef f():\n    {near}.thing()  # {word}\n',
    "attribute::": "void f() {{ {near}::thing(); }}  // {word}\n",
    "predicate": "def f(x):\n    x.{word} = x.{near}  # {word}\n",
    "literal": 'def f(x):\n    """{word}"""\n    return x.to("{near}"), "on {word}"\n',
    "call": "def f(x):\n    return x.{near}(x.{word})\n",
    "import": "def f():\n    import {near}\n    from . import {word}\n",
    "word": 'def f():\n    {near} = "a {word} in prose"  # {word}\n',
    "include": '// #include <{word}>\n#include "{near}"\n',
    "preprocessor": "#if defined({near})\n#endif\n// #ifdef {word}\n",
    "enumerator": "auto d = at::{near};  // {word}\n",
    "cast": "auto d = static_cast<{near}>(1);\n",
    "mark": "@{near}\ndef test_a(): ...\n",
}
OWN = tomllib.loads((Path(__file__).parents[2] / POLICY).read_text("utf-8"))


def of_this_repository() -> Policy:
    return msgspec.convert(OWN, Policy)


def entries() -> list[Any]:
    words = {(b.kind, name, word) for name, b in of_this_repository().bucket.items() for word in b.words}
    return [pytest.param(*entry, id=f"{entry[1]}-{entry[2]}") for entry in sorted(words)]


def sites_of(kind: str, word: str, forms: dict[str, str]) -> list[Finding]:
    """The findings that a form gives under the words of this repository in the layers of these tests."""
    form = "attribute::" if "::" in word else kind
    name = word.replace("*", "Thing")
    near = re.sub(r"(?<!\w)(?=[A-Za-z_])", "zz", name)
    source = forms[form].format(word=name, near=near)
    own = of_this_repository()
    tested = msgspec.structs.replace(policy(), bucket=own.bucket, guards=own.guards)
    path = "tests/test_a.py" if kind == "mark" else RUNNER if "def " in source else CORE
    return CHECK.judge(Tree.of({**FRAME, path: source}), tested).findings


@pytest.mark.parametrize(("kind", "bucket", "word"), entries())
def test_every_word_is_found(kind: str, bucket: str, word: str) -> None:
    rule = f"device-leakage/{'device-only-test' if kind == 'mark' else kind}"
    assert (rule, bucket) in [(f.rule, f.bucket) for f in sites_of(kind, word, BAD)]


@pytest.mark.parametrize(("kind", "bucket", "word"), entries())
def test_what_only_resembles_a_word_is_not_found(kind: str, bucket: str, word: str) -> None:
    assert sites_of(kind, word, GOOD) == []


def test_the_vocabulary_of_this_repository_is_the_packaged_one_with_cpu() -> None:
    own, packaged = of_this_repository().bucket, policy().bucket
    assert own.keys() == packaged.keys()
    added = {name: set(own[name].words) - set(packaged[name].words) for name in own}
    assert set().union(*added.values()) == {"cpu", "is_cpu", "kCPU", "DeviceType::CPU"}
    assert all(set(packaged[name].words) <= set(own[name].words) for name in own)
