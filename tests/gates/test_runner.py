"""From changes to a verdict: what is new, inherited, moved in, exempted, advisory, not applicable or unknown."""

from collections.abc import Mapping
from typing import Any

import pytest
from gates.repositories import POLICY, Git, Work

from gatewright.core.cache import Cache
from gatewright.core.change import Change, change_of_commit
from gatewright.core.errors import PolicyError
from gatewright.core.report import Report
from gatewright.core.runner import run
from gatewright.core.snapshot import DictSnapshot, Entry, Reader

pytestmark = pytest.mark.usefixtures("words")

Files = Mapping[str, str]
BAD = {"src/a.txt": "one BAD thing\n"}


def judge(head: Files, base: Files | None = None, **options: Any) -> Report:
    before = None if base is None else DictSnapshot({**POLICY, **base}, "base")
    return run([Change(None, DictSnapshot({**POLICY, **head}, "head"), before)], Cache(None), **options)


def new(report: Report) -> list[str]:
    return [f"{f.rule} {f.path}:{f.line}" for f in report.new]


def verdict(report: Report, rule: str) -> tuple[str, str]:
    return next((r.verdict, r.reason) for r in report.rules if r.id == rule)


def test_without_a_base_all_findings_are_new() -> None:
    report = judge(BAD)
    assert new(report) == ["words/forbidden src/a.txt:1"]
    assert (report.base, report.judged, report.exit_code) == ("", "head", 1)


def test_what_the_base_had_is_inherited_and_passes() -> None:
    report = judge(BAD, BAD)
    assert (new(report), len(report.inherited), report.exit_code) == ([], 1, 0)


def test_absolute_subtracts_nothing_and_change_rules_do_not_apply() -> None:
    report = judge(BAD, BAD, absolute=True)
    assert (len(report.new), report.base, report.exit_code) == (1, "", 1)
    assert verdict(report, "words/subject") == ("N/A", "it judges a change, and there is no base")


def test_a_moved_file_has_no_new_findings() -> None:
    assert new(judge({"src/moved/b.txt": BAD["src/a.txt"]}, BAD)) == []


def test_d_14_dl_10_code_that_is_moved_in_is_new_and_says_from_where() -> None:
    outside = {"examples/server.txt": "".join(f"BAD {n}\n" for n in range(5))}
    base = {**outside, "src/a.txt": "fine\n"}
    report = judge({"src/a.txt": "fine\n", "src/main.txt": outside["examples/server.txt"]}, base)
    assert new(report) == [f"words/forbidden src/main.txt:{n}" for n in range(1, 6)]
    places = [f.message.partition("; ")[2] for f in report.new]
    assert places == [f"moved in from an unscanned place, examples/server.txt:{n}" for n in range(1, 6)]


def test_code_that_is_copied_in_is_new_and_not_called_moved() -> None:
    outside = {"examples/server.txt": "BAD\n", "src/a.txt": "fine\n"}
    report = judge({**outside, "src/main.txt": "BAD\n"}, outside)
    assert [f.message for f in report.new] == ["the word BAD is forbidden"]


def test_dl_13_only_what_the_change_adds_is_new() -> None:
    lines = [f"BAD {n}\n" for n in range(10)]
    head = {"src/a.txt": "".join([*lines[:5], "a neighbour\n", *lines[5:]])}
    base = {"src/a.txt": "".join(lines)}
    report = judge(head, base)
    assert (len(report.new), len(report.inherited)) == (0, 10)
    assert len(judge(head, base, absolute=True).new) == 10


def test_dl_11_d_10_a_swap_that_keeps_the_count_is_new() -> None:
    base = {"src/a.txt": "BAD 1\nBAD 2\n", "src/b.txt": "BAD 3\n"}
    head = {"src/a.txt": "BAD 1\n", "src/b.txt": "BAD 3\nBAD 4\n"}
    assert new(judge(head, base)) == ["words/forbidden src/b.txt:2"]


def test_d_08_d_09_no_number_is_stored_so_none_is_stale_and_none_can_be_raised() -> None:
    base = {"src/a.txt": "BAD 1\nBAD 2\n"}
    fewer = judge({"src/a.txt": "BAD 1\n"}, base)
    assert (fewer.exit_code, len(fewer.inherited)) == (0, 1)
    more = {"src/a.txt": base["src/a.txt"] + "BAD 3\n"}
    assert judge(more, base).exit_code == 1
    assert judge(base, {"src/a.txt": "BAD 1\n"}).exit_code == 1


def test_a_measure_is_new_only_where_it_grew() -> None:
    policy = {"policy/words.toml": 'where = ["src/**"]\nlongest = 10\n'}
    base = {**policy, "src/a.txt": "row " + "x" * 20}
    assert new(judge({**policy, "src/a.txt": "\n\nrow " + "x" * 19}, base)) == []
    assert new(judge({**policy, "src/a.txt": "row " + "x" * 21}, base)) == ["words/long src/a.txt:1"]


def test_zero_things_examined_is_unknown() -> None:
    report = judge({"policy/words.toml": 'where = ["src/**", "lib/**"]\n', "other": "x"})
    assert verdict(report, "words/forbidden") == ("UNKNOWN", "it found nothing to examine")
    assert verdict(report, "words/long")[0] == "PASS"
    assert report.exit_code == 1
    assert {f.rule for f in report.new} == {"policy/empty-glob"}


def test_a_tree_that_holds_nothing_to_examine_is_no_better_for_its_base() -> None:
    empty = judge({"other": "x"}, {"other": "x"})
    assert (empty.exit_code, [f.rule for f in empty.inherited]) == (3, ["policy/empty-glob"])


def test_rules_run_in_their_lanes() -> None:
    assert "words/nightly" not in {rule.id for rule in judge(BAD).rules}
    assert "words/nightly" in {rule.id for rule in judge(BAD, lane="schedule").rules}


def test_message_rules_see_the_commits_of_the_change(git: Git, work: Work) -> None:
    base = work.git("rev-parse", "HEAD")
    work.commit(message="a BAD subject")
    work.commit({"src/b.txt": "BAD\n"}, message="fine")
    report = run([change_of_commit(work.open(), "HEAD", base)], Cache(None))
    assert {f.rule for f in report.new} == {"words/forbidden", "words/subject"}
    assert next(r.examined for r in report.rules if r.id == "words/subject") == 2


def test_what_is_examined_is_counted() -> None:
    report = judge({"src/a.txt": "x", "src/b.txt": "", "other": "y"})
    assert next(r.examined for r in report.rules if r.id == "words/forbidden") == 2


def test_a_selected_check_is_judged_alone_beside_the_check_of_the_policy() -> None:
    report = judge(BAD, only=["words"])
    assert [check.name for check in report.checks] == ["policy", "words"]
    assert new(report) == ["words/forbidden src/a.txt:1"]
    report = judge(BAD, only=["policy"])
    assert [check.name for check in report.checks] == ["policy"]
    assert new(report) == []


def test_a_selection_does_not_call_the_exemptions_of_other_checks_malformed_or_unused() -> None:
    files = {"src/a.py": "x = 1  # gate: allow words/forbidden (ada): BAD is a proper name\n"}
    report = judge(files)
    assert (new(report), len(report.exempted)) == ([], 1)
    devices = {"policy/device-leakage.toml": DEVICES, "src/cuda.py": "import torch\ntorch.cuda.synchronize()\n"}
    for only in ([], ["words"], ["device-leakage"], ["policy"]):
        assert new(judge({**files, **devices}, only=only)) == []


DEVICES = """
shared = ["src/a.py"]
[rooms]
cuda = ["src/cuda.py"]
[bucket.torch_cuda]
kind = "attribute"
words = ["torch.cuda"]
instead = "the platform object"
"""


def test_a_policy_of_an_unknown_check_is_refused() -> None:
    for name in ("nowhere", "__init__", "os.path", "Words", "_env_judge", "device_leakage", ".."):
        with pytest.raises(PolicyError, match="there is no check named") as caught:
            judge({f"policy/{name}.toml": "", **BAD})
        assert "words" in caught.value.help


def test_several_changes_give_one_report_and_each_finding_once() -> None:
    one = Change(None, DictSnapshot({**POLICY, **BAD}, "one"))
    two = Change(None, DictSnapshot({**POLICY, **BAD, "src/b.txt": "BAD\n"}, "two"), notes=["said once"])
    report = run([one, two, two], Cache(None))
    assert new(report) == ["words/forbidden src/a.txt:1", "words/forbidden src/b.txt:1"]
    assert report.judged == "one, two"
    assert report.notes == ["one: 1 new findings", "two: 2 new findings", "said once"]


def test_r_15_a_check_without_its_policy_in_the_pushed_tree_is_named() -> None:
    """No tree brings its own checkers; what it can lose is the policy that switches one on."""
    head = DictSnapshot({"src/a.txt": "BAD\n"}, "head")
    report = run([Change(None, head, DictSnapshot({**POLICY, "src/a.txt": "fine\n"}, "base"))], Cache(None))
    assert new(report) == ["policy/loosened policy/words.toml:0"]
    assert "the policy of words is deleted, and with it 1 findings" in report.new[0].message


def test_the_report_says_whose_code_judged() -> None:
    report = judge(BAD)
    assert report.version
    assert len(report.digest) == 12


def test_a_file_that_no_check_looks_at_is_not_read() -> None:
    class Unreadable(DictSnapshot):
        def open(self) -> Reader:
            reader = super().open()
            read = reader.read

            def guarded(path: str, entry: Entry) -> bytes:
                assert path != "vendored/big.c"
                return read(path, entry)

            reader.read = guarded  # type: ignore[method-assign]
            return reader

    tree = Unreadable({**POLICY, "src/a.txt": "fine\n", "vendored/big.c": "// gate: allow\n"})
    assert run([Change(None, tree)], Cache(None)).exit_code == 0
