"""The check of the policy itself, policy files on load, and exemptions in sources and in policy files."""

from collections.abc import Mapping

import pytest
from gates.repositories import POLICY, Work

from gatewright.core.cache import Cache
from gatewright.core.change import Change, change_of_commit
from gatewright.core.errors import PolicyError
from gatewright.core.policy import load_base_policies, load_policies, policy_names
from gatewright.core.report import Report
from gatewright.core.runner import run
from gatewright.core.snapshot import DictSnapshot, Entry, commit_snapshot

pytestmark = pytest.mark.usefixtures("words")

Files = Mapping[str, str | bytes]
WHERE = 'where = ["src/**"]\n'


def judge(head: Files, base: Files | None = None) -> Report:
    before = None if base is None else DictSnapshot(base, "base")
    return run([Change(None, DictSnapshot(head, "head"), before)], Cache(None))


def new(report: Report) -> list[str]:
    return [f"{f.rule} {f.path}:{f.line}" for f in report.new]


def words(text: str) -> dict[str, str]:
    return {"policy/words.toml": text}


# Loading.


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('where = ["src/**"]\nforbiden = []\n', "policy/words.toml:2: Object contains unknown field `forbiden`"),
        ('longest = "ten"\nwhere = []\n', "policy/words.toml:1: Expected `int`, got `str` - at `$.longest`"),
        ('\n\nwhere = ["src/**"]\nforbidden = [1]\n', "policy/words.toml:4: Expected `str`, got `int`"),
        ("", "policy/words.toml: Object missing required field `where`"),
        ("where = [\n", "policy/words.toml is not TOML: "),
        ('where = ["a"]\nwhere = ["b"]\n', "line 2"),
        ('where = ["a"]\n[spared]\nx = 1\n', "policy/words.toml:2: Expected `str`, got `int` - at `$.spared"),
        ('where = ["a"]\n[[allow]]\nrule = "words/forbidden"\n', "missing required field `owner`"),
        ("where = " + "[" * 20_000 + "]" * 20_000, "nested too deeply"),
        ("longest = " + "9" * 5_000 + "\n", "policy/words.toml is not TOML: Exceeds the limit"),
        (b"where = ['\xff']\n", "policy/words.toml is not UTF-8: invalid start byte at byte 10"),
    ],
)
def test_an_invalid_policy_is_refused_with_file_and_key(text: str | bytes, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        judge({"policy/words.toml": text, "src/a.txt": "x"})
    assert message in caught.value.message
    assert caught.value.exit_code == 2
    assert caught.value.help


def test_a_byte_order_mark_and_crlf_are_no_matter() -> None:
    report = judge({"policy/words.toml": b"\xef\xbb\xbf" + WHERE.replace("\n", "\r\n").encode(), "src/a.txt": "BAD"})
    assert new(report) == ["words/forbidden src/a.txt:1"]


@pytest.mark.parametrize("pattern", ["a{99999999999}", "(" * 5_000 + ")" * 5_000])
def test_an_owner_pattern_that_cannot_be_compiled_is_refused(pattern: str) -> None:
    with pytest.raises(PolicyError, match="owner_pattern"):
        judge({**POLICY, "policy/policy.toml": f'owner_pattern = "{pattern}"\n'})


def test_an_owner_pattern_that_is_none_is_refused() -> None:
    with pytest.raises(PolicyError, match="`owner_pattern` is no regular expression"):
        judge({**POLICY, "policy/policy.toml": 'owner_pattern = "["\n', "src/a.txt": "x"})


def test_only_files_of_the_policy_folder_itself_switch_checks_on() -> None:
    files = {**POLICY, "policy/README.md": "", "policy/old/words.toml": "?", "x/policy/words.toml": "?"}
    assert policy_names(DictSnapshot(files)) == ["policy", "words"]


def test_pc_05_a_policy_that_is_a_link_is_refused_and_never_skipped(work: Work) -> None:
    work.write({"shared/words.toml": WHERE, "policy/words.toml": None})
    (work.path / "policy" / "words.toml").symlink_to("../shared/words.toml")
    commit = work.commit()
    with pytest.raises(PolicyError, match=r"policy/words\.toml is not a regular file"):
        run([change_of_commit(work.open(), commit)], Cache(None))
    base = load_base_policies(commit_snapshot(work.open(), commit))
    assert list(base.unreadable) == ["words"]


def test_pc_05_a_policy_folder_that_is_a_link_is_refused_and_never_skipped(work: Work) -> None:
    base = work.git("rev-parse", "HEAD")
    work.git("mv", "policy", "elsewhere")
    (work.path / "policy").symlink_to("elsewhere")
    commit = work.commit()
    with pytest.raises(PolicyError, match="policy/ is not a folder of this tree"):
        run([change_of_commit(work.open(), commit, base)], Cache(None))
    work.git("rm", "-q", "policy")
    work.git("mv", "elsewhere", "policy")
    mended = change_of_commit(work.open(), work.commit(), commit)
    assert run([mended], Cache(None)).exit_code == 0


def test_the_check_of_the_policy_runs_without_a_file_of_its_own() -> None:
    assert list(load_policies(DictSnapshot(POLICY)).files) == ["policy", "words"]
    assert judge({"src/a.txt": "x"}).exit_code == 0


# policy/loosened.

BASE = {**words('why = "first"\nwhere = ["src/**"]\n'), "src/a.txt": "BAD\n", "src/b.txt": "fine\n"}


def test_a_narrower_policy_is_loosened() -> None:
    report = judge({**BASE, **words('why = "first"\nwhere = ["src/b.txt"]\n')}, BASE)
    assert new(report) == ["policy/loosened policy/words.toml:0"]
    assert "lets go of 1 findings" in report.new[0].message
    assert "src/a.txt:1" in report.new[0].message
    assert "the top of the file" in report.new[0].help


@pytest.mark.parametrize(
    ("why", "passes"),
    [
        ('why = "a.txt goes next week"', True),
        ('why = "first"', False),
        ('why = "short"', False),
        ('why = "            "', False),
        ('why = "first      "', False),
        ('why = ""', False),
        ("", False),
    ],
)
def test_a_loosening_passes_with_a_why_that_is_new(why: str, passes: bool) -> None:
    report = judge({**BASE, **words(why + '\nwhere = ["src/b.txt"]\n')}, BASE)
    assert (report.exit_code == 0) is passes


def test_a_tightening_passes_in_silence_and_its_findings_are_new_only_where_the_base_had_none() -> None:
    report = judge({**BASE, **words(WHERE + 'forbidden = ["BAD", "fine"]\n')}, BASE)
    assert (new(report), len(report.inherited)) == ([], 2)
    head = {**BASE, **words(WHERE + 'forbidden = ["BAD", "fine"]\n'), "src/c.txt": "fine too\n"}
    assert new(judge(head, BASE)) == ["words/forbidden src/c.txt:1"]


def test_a_new_finding_that_only_the_bases_policy_sees_is_reported_with_the_loosening() -> None:
    head = {**BASE, **words('where = ["src/b.txt"]\n'), "src/c.txt": "BAD again\n"}
    assert new(judge(head, BASE)) == ["policy/loosened policy/words.toml:0", "words/forbidden src/c.txt:1"]


def test_an_equal_site_that_is_still_found_elsewhere_does_not_hide_a_loosening() -> None:
    base = {**words('where = ["src/a.txt"]\n'), "src/a.txt": "BAD\n", "src/b.txt": "BAD\n"}
    report = judge({**base, **words('where = ["src/b.txt"]\n')}, base)
    assert "policy/loosened policy/words.toml:0" in new(report)


def test_pc_02_one_commit_that_adds_a_violation_and_its_permission_is_refused() -> None:
    base = {**BASE, **words(WHERE), "src/a.txt": "fine\n"}
    for text in ('where = ["src/b.txt"]\n', WHERE + "forbidden = []\n", WHERE + 'forbidden = ["OTHER"]\n'):
        report = judge({**base, **words(text), "src/a.txt": "BAD\n"}, base)
        assert new(report) == ["policy/loosened policy/words.toml:0", "words/forbidden src/a.txt:1"]


def test_a_raised_cap_is_loosened() -> None:
    base = {**words(WHERE + "longest = 5\n"), "src/a.txt": "longer than that\n"}
    assert new(judge({**base, **words(WHERE + "longest = 50\n")}, base)) == ["policy/loosened policy/words.toml:0"]


def test_ordinary_entries_are_no_loosening() -> None:
    assert judge({**BASE, **words(WHERE + '[spared]\nBAD = "it is a name"\n')}, BASE).exit_code == 0


def test_a_change_that_lets_go_of_nothing_is_no_loosening() -> None:
    base = {**words(WHERE + 'forbidden = ["BAD", "UNUSED"]\n'), "src/a.txt": "BAD\n"}
    assert judge({**base, **words(WHERE)}, base).exit_code == 0
    assert judge({**base, **words("# a comment\n" + base["policy/words.toml"])}, base).exit_code == 0


def test_d_16_a_deleted_policy_is_the_largest_loosening() -> None:
    head = {"policy/policy.toml": "", "src/a.txt": "BAD\n"}
    report = judge(head, BASE)
    assert new(report) == ["policy/loosened policy/words.toml:0"]
    assert "[removed] words" in report.new[0].help
    excused = {**head, "policy/policy.toml": '[removed]\nwords = "the check moved to another repository"\n'}
    assert judge(excused, BASE).exit_code == 0
    assert judge({**head, "policy/policy.toml": '[removed]\nwords = "x"\n'}, BASE).exit_code == 1


def test_d_16_an_excuse_belongs_to_the_change_that_makes_it() -> None:
    said = {"policy/policy.toml": '[removed]\nwords = "the check moved to another repository"\n'}
    report = judge({**said, "src/a.txt": "BAD\n"}, {**BASE, **said})
    assert new(report) == ["policy/loosened policy/words.toml:0"]


def test_the_least_length_of_a_reason_cannot_be_lowered_for_the_reason_of_the_same_change() -> None:
    lowered = {"policy/policy.toml": "minimum_reason = 1\n"}
    head = {**BASE, **lowered, **words('why = "x"\nwhere = ["src/b.txt"]\n')}
    assert new(judge(head, BASE)) == ["policy/loosened policy/words.toml:0"]
    for why in ("x", "            "):
        removed = {"policy/policy.toml": f'minimum_reason = 1\n[removed]\nwords = "{why}"\n', "src/a.txt": "BAD\n"}
        assert "policy/loosened policy/words.toml:0" in new(judge(removed, BASE))


DEVICES = {
    "engine/cuda.py": "def f(x):\n    return x.cuda()\n",
    "engine/core/old.py": "def f(x):\n    return x.cuda(1)\n",
    "engine/core/new.py": "x = 1\n",
}
ROOMS = '[rooms]\ncuda = ["engine/cuda.py"]\n'
CALLS = '[bucket.calls]\nkind = "call"\nwords = ["cuda"]\n'
NAMES = '[bucket.names]\nkind = "attribute"\nwords = ["torch.cuda"]\n'
WHY = 'why = "its torch is older than the call"\n'


def devices(*tables: str, shared: str = "engine/core/*.py") -> dict[str, str]:
    text = f'shared = ["{shared}"]\n' + "".join(tables)
    return {**DEVICES, "policy/device-leakage.toml": text}


@pytest.mark.parametrize(
    ("head", "missing"),
    [
        (devices(ROOMS, NAMES), "the top of the file"),
        ({**devices(), "policy/device-leakage.toml": WHY + devices(ROOMS, NAMES)["policy/device-leakage.toml"]}, ""),
        (devices(ROOMS, NAMES + WHY, shared="engine/core/n*.py"), "the top of the file"),
        (devices(ROOMS, CALLS.replace("cuda", "xpu"), NAMES), "bucket.calls"),
        (devices(ROOMS, CALLS.replace("cuda", "xpu"), NAMES + WHY), "bucket.calls"),
        (devices(ROOMS, CALLS.replace("cuda", "xpu") + WHY, NAMES), ""),
        (devices(ROOMS, CALLS.replace("cuda", "xpu") + WHY, NAMES.replace('"]', '", "torch.xpu"]')), ""),
    ],
)
def test_the_why_stands_in_the_table_that_changed_or_the_nearest_that_can_hold_one(
    head: dict[str, str], missing: str
) -> None:
    """A table that only tightens owes none, and a bucket that is gone cannot hold one."""
    found = [f for f in judge(head, devices(ROOMS, CALLS, NAMES)).new if f.rule == "policy/loosened"]
    assert [missing in f.help for f in found] == ([True] if missing else [])


def test_a_shared_folder_is_renamed_together_with_its_pattern() -> None:
    base = devices(ROOMS, CALLS)
    renamed = {path.replace("/core/", "/kernel/"): text for path, text in base.items()}
    renamed["policy/device-leakage.toml"] = devices(ROOMS, CALLS, shared="engine/kernel/*.py")[
        "policy/device-leakage.toml"
    ]
    report = judge(renamed, base)
    assert (new(report), [f.path for f in report.inherited]) == ([], ["engine/kernel/old.py"])
    report = judge({**renamed, "engine/kernel/new.py": "def g(x):\n    return x.cuda(2)\n"}, base)
    assert new(report) == ["device-leakage/call engine/kernel/new.py:2"]


def test_a_policy_that_today_cannot_be_read_in_the_base_is_reported_and_not_fatal() -> None:
    report = judge({**BASE, **words(WHERE)}, {**BASE, **words("where = 3\n")})
    assert report.exit_code == 0
    assert any("the base's policy words is not readable today" in note for note in report.notes)
    deleted = judge({"policy/policy.toml": "", "src/a.txt": "x"}, {**BASE, **words("where = 3\n")})
    assert new(deleted) == ["policy/loosened policy/words.toml:0"]


def test_the_rules_of_exemptions_cannot_be_loosened_in_silence() -> None:
    core = "policy/policy.toml"
    source = {"src/a.py": "BAD = 1  # gate: allow words/forbidden (someone): a proper name\n"}
    base = {**POLICY, core: 'owner_pattern = "[A-Z]+-[0-9]+"\n', "src/a.py": "fine = 1\n"}
    report = judge({**base, **source, core: 'owner_pattern = ".*"\n'}, base)
    assert "policy/loosened policy/policy.toml:0" in new(report)


# policy/empty-glob, policy/unread.


def test_d_16_a_pattern_that_matches_nothing_is_a_finding() -> None:
    report = judge({**words('where = ["src/**", "gone/*.txt"]\n'), "src/a.txt": "x"})
    assert new(report) == ["policy/empty-glob policy/words.toml:0"]
    assert "'gone/*.txt' in where" in report.new[0].message


def test_a_file_too_large_to_read_is_named() -> None:
    report = judge({**POLICY, "src/a.txt": "x", "src/large.txt": b"x" * (8 * 1024 * 1024 + 1)})
    assert new(report) == ["policy/unread src/large.txt:0"]


# Exemptions.

ALLOW = "gate: allow words/forbidden (ENG-1): a proper name"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("src/a.py", f"x = 'BAD'  # {ALLOW}\n"),
        ("src/a.py", f"# {ALLOW}\nx = 'BAD'\n"),
        ("src/a.py", f"def f():\n    #   {ALLOW}   \n    return 'BAD'\n"),
        ("src/a.py", f'x = """\n"""; y = "BAD"  # {ALLOW}\n'),
        ("src/a.py", f"# {ALLOW}\r\nx = 'BAD'\r\n"),
        ("src/a.c", f"/* {ALLOW} */\nint BAD;\n"),
        ("src/a.cu", f"int BAD; // {ALLOW}\n"),
        ("src/a.cpp", f"/*\n * words\n */\n// {ALLOW}\nint BAD;\n"),
        ("src/a.h", f"int BAD; /* {ALLOW} */\n"),
        ("src/a.md", f"<!-- {ALLOW} -->\nBAD text\n"),
        ("src/a.yaml", f"# {ALLOW}\nkey: BAD\n"),
        ("src/CMakeLists.txt", f"# {ALLOW}\nset(BAD 1)\n"),
    ],
)
def test_an_exemption_covers_its_line_or_the_next_in_every_language(path: str, text: str) -> None:
    report = judge({**POLICY, path: text})
    assert new(report) == []
    [exempted] = report.exempted
    assert (exempted.owner, exempted.reason, exempted.path) == ("ENG-1", "a proper name", path)
    assert text.split("\n")[exempted.line - 1].count(ALLOW) == 1


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (f"# {ALLOW}\n\nx = 'BAD'\n", [3]),
        (f"x = 1  # {ALLOW}\nx = 'BAD'\n", [2]),
        (f"x = 'BAD'\n# {ALLOW}\n", [1]),
        (f"# as in {ALLOW}\nx = 'BAD'\n", [2]),
        (f'"""\n{ALLOW}\n"""\nx = \'BAD\'\n', [4]),
        (f"x = '# {ALLOW}', 'BAD'\n", [1]),
    ],
)
def test_d_07_what_does_not_stand_there_covers_nothing(text: str, lines: list[int]) -> None:
    found = [f.line for f in judge({**POLICY, "src/a.py": text}).new if f.rule == "words/forbidden"]
    assert found == lines


def test_a_mention_in_prose_is_neither_an_exemption_nor_a_fault() -> None:
    text = f"# Write `{ALLOW}` where it must be.\nx = 1\n"
    assert new(judge({**POLICY, "src/a.py": text, "src/b.md": f"Write {ALLOW}.\n\n```\n<!-- {ALLOW} -->\n```\n"})) == []


def test_one_exemption_covers_one_rule_and_every_finding_of_it_on_the_line() -> None:
    policy = words(WHERE + 'forbidden = ["BAD", "WORSE"]\nlongest = 20\n')
    report = judge({**policy, "src/a.py": f"# {ALLOW}\nx = 'BAD', 'WORSE', 'long'\n"})
    assert sorted(new(report)) == ["words/long src/a.py:1", "words/long src/a.py:2"]
    assert len(report.exempted) == 2


def test_stacked_exemptions_cover_the_first_line_of_code_below() -> None:
    policy = words(WHERE + "longest = 60\n")
    other = "gate: allow words/long (ENG-2): a table of names"
    report = judge({**policy, "src/a.py": f"# {ALLOW}\n# {other}\nx = 'BAD'{' ' * 60}+ 1\n"})
    assert new(report) == []
    assert sorted(e.owner for e in report.exempted) == ["ENG-1", "ENG-2"]


def test_d_15_an_exemption_of_nothing_is_a_finding() -> None:
    report = judge({**POLICY, "src/a.py": f"# {ALLOW}\nx = 1\n"})
    assert new(report) == ["policy/exemption-unused src/a.py:1"]
    twice = judge({**POLICY, "src/a.py": f"# {ALLOW}\n# {ALLOW}\nx = 'BAD'\n"})
    assert new(twice) == ["policy/exemption-unused src/a.py:1"]


@pytest.mark.parametrize(
    ("comment", "fault"),
    [
        ("gate: allow words/forbidden: a proper name", "not of the form"),
        ("gate: allow words/forbidden (ENG-1)", "not of the form"),
        ("gate: allow words/forbidden (ENG-1):", "not of the form"),
        ("gate: allow (ENG-1): a proper name", "not of the form"),
        ("gate: allow", "not of the form"),
        ("gate: allow words/forbidden (ENG-1): short", "shorter than 8"),
        ("gate: allow words/forbidden (): a proper name", "does not match"),
        ("gate: allow words/forbidden (1 2): a proper name", "does not match"),
        ("gate: allow words/nothing (ENG-1): a proper name", "no rule words/nothing is in force"),
        ("gate: allow absent/rule (ENG-1): a proper name", "no rule absent/rule is in force"),
    ],
)
def test_d_07_a_malformed_exemption_covers_nothing_and_is_a_finding(comment: str, fault: str) -> None:
    report = judge({**POLICY, "src/a.py": f"# {comment}\nx = 'BAD'\n"})
    assert sorted(new(report)) == ["policy/exemption-malformed src/a.py:1", "words/forbidden src/a.py:2"]
    assert fault in next(f.message for f in report.new if f.rule.startswith("policy/"))


def test_an_exemption_where_no_check_looks_is_not_read() -> None:
    assert new(judge({**POLICY, "src/a.py": "x = 1\n", "other/a.py": "# gate: allow\n"})) == []


def test_an_exemption_that_is_removed_makes_its_site_new() -> None:
    base = {**POLICY, "src/a.py": f"x = 'BAD'  # {ALLOW}\n"}
    assert new(judge({**POLICY, "src/a.py": "x = 'BAD'\n"}, base)) == ["words/forbidden src/a.py:1"]


def test_exemptions_of_the_base_are_not_new_when_they_move() -> None:
    base = {**POLICY, "src/a.py": f"x = 'BAD'  # {ALLOW}\n"}
    report = judge({**POLICY, "src/b.py": f"\n\nx = 'BAD'  # {ALLOW}\n"}, base)
    assert (new(report), len(report.exempted)) == ([], 1)


def test_hostile_sources_have_no_exemptions_and_end_nothing() -> None:
    needle = b"gate: allow"
    sources = [
        b"\xff\xfe" + needle,
        b"x = (\n# " + needle,
        b"'''\n" + needle,
        b"\x00# " + needle,
        b"\tx\n  y # " + needle,
        b"/* " + needle + b" \xff */\n",
        b"# " + needle + b" \xff\n",
        b"<!-- " + needle + b" \xff -->\n",
    ]
    for suffix in ("py", "c", "md", "yaml"):
        for number, source in enumerate(sources):
            judge({**POLICY, f"src/{number}.{suffix}": source})


def entry(**keys: str) -> dict[str, str]:
    return words(WHERE + "[[allow]]\n" + "".join(f'{key} = "{value}"\n' for key, value in keys.items()))


WHOLE = {"rule": "policy/empty-glob", "owner": "ENG-1", "reason": "the folder comes next week"}


def test_a_finding_without_a_line_is_exempted_in_the_policy_file() -> None:
    policy = {"policy/words.toml": entry(**WHOLE)["policy/words.toml"].replace('"src/**"', '"src/**", "next/**"', 1)}
    report = judge({**policy, "src/a.txt": "x"})
    assert new(report) == []
    [exempted] = report.exempted
    assert (exempted.finding.rule, exempted.path, exempted.line) == ("policy/empty-glob", "policy/words.toml", 0)
    narrow = policy["policy/words.toml"] + 'token = "where:elsewhere"\n'
    assert sorted(new(judge({"policy/words.toml": narrow, "src/a.txt": "x"}))) == [
        "policy/empty-glob policy/words.toml:0",
        "policy/exemption-unused policy/words.toml:0",
    ]


def test_an_entry_of_the_policy_covers_no_finding_that_has_a_line() -> None:
    report = judge({**entry(**{**WHOLE, "rule": "words/forbidden"}), "src/a.txt": "BAD\n"})
    assert sorted(new(report)) == ["policy/exemption-unused policy/words.toml:0", "words/forbidden src/a.txt:1"]


def test_an_entry_without_a_reason_is_malformed() -> None:
    report = judge({**entry(**{**WHOLE, "reason": "x"}), "src/a.txt": "x"})
    assert new(report) == ["policy/exemption-malformed policy/words.toml:0"]


def test_a_link_that_is_named_after_no_check_is_refused_as_well() -> None:
    tree = DictSnapshot(POLICY)
    tree.entries["policy/other.toml"] = Entry("symlink", "")
    with pytest.raises(PolicyError, match="there is no check named 'other'"):
        load_policies(tree)
