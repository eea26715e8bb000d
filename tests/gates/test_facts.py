"""Facts of one kind are cached by content, and selected by path."""

import pytest

from gatewright.core.facts import Extractor
from gatewright.core.globs import PathSet
from gatewright.core.tree import Tree
from gatewright.extractors.exemption import Exemption

ALLOW = "# gate: allow policy/unread (OWNER): because it is so\n"


def extractor(*globs: str, options: object = None) -> Extractor:
    return Extractor(
        name="exemption-python",
        paths=PathSet(globs),
        function="gatewright.extractors.exemption:of_python",
        fact=Exemption,
        options=options,
    )


def test_two_path_sets_of_one_extractor_do_not_share_a_result() -> None:
    tree = Tree.of({"a/x.py": ALLOW, "b/y.py": ALLOW})
    assert list(tree.facts(extractor("a/*.py"))) == ["a/x.py"]
    assert list(tree.facts(extractor("**/*.py"))) == ["a/x.py", "b/y.py"]
    assert tree.examined(extractor("a/*.py")) == 1


def test_a_key_holds_what_shapes_the_facts_and_no_path() -> None:
    one = extractor("a/*.py")
    assert one.key() == extractor("b/*.py").key()
    assert one.key() != extractor("a/*.py", options=("flag",)).key()


def test_options_in_another_order_give_the_same_key() -> None:
    from gatewright.core.facts import sorted_data

    assert sorted_data({"b": (1, 2), "a": None}) == sorted_data({"a": None, "b": (1, 2)})
    assert sorted_data({"a": (1, 2)}) != sorted_data({"a": (2, 1)})


def test_a_changed_reader_changes_every_key(monkeypatch: pytest.MonkeyPatch) -> None:
    from gatewright.core import facts

    before = extractor("a/*.py").key()
    facts._key.cache_clear()
    monkeypatch.setattr(facts, "code_digest", lambda module: "other code")
    assert extractor("a/*.py").key() != before
    facts._key.cache_clear()
