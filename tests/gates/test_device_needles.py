"""The byte stage finds the same offsets with google-re2 and without."""

import importlib
import sys
import tomllib
from types import ModuleType

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.checks._device_policy import Policy, default_vocabulary
from gatewright.extractors import device_needles
from gatewright.extractors.device_needles import Needles

VOCABULARY = msgspec.convert(tomllib.loads('shared = ["**"]\n' + default_vocabulary()), Policy).vocabulary
WORDS = sorted(
    word.rpartition(".")[2].strip("*")
    for entry in VOCABULARY.entries
    if entry.kind in ("attribute", "predicate", "literal", "call", "import", "word")
    for word in entry.words
    if "::" not in word
)


def fresh() -> Needles:
    device_needles.needles.cache_clear()
    found = device_needles.needles(VOCABULARY)
    device_needles.needles.cache_clear()
    return found


def without(monkeypatch: pytest.MonkeyPatch, module: ModuleType | None) -> Needles:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "re2", module)
        return fresh()


@pytest.fixture(scope="module")
def both() -> tuple[Needles, Needles]:
    importlib.import_module("re2")
    with pytest.MonkeyPatch.context() as patch:
        return fresh(), without(patch, None)


@given(
    st.lists(
        st.one_of(st.sampled_from(WORDS), st.sampled_from([" ", ".", "_", "x", "9", '"', "\\", "\n", "é"])), max_size=9
    )
)
def test_google_re2_changes_no_offset(both: tuple[Needles, Needles], parts: list[str]) -> None:
    data = "".join(parts).encode()
    fast, plain = both
    assert fast.hits(data) == plain.hits(data)


def test_the_fast_way_is_another_one(both: tuple[Needles, Needles]) -> None:
    fast, plain = both
    assert fast.present.__code__ is not plain.present.__code__  # type: ignore[attr-defined]


@pytest.mark.parametrize("word", WORDS)
def test_every_word_is_hit_inside_it(both: tuple[Needles, Needles], word: str) -> None:
    for needles in both:
        hits = needles.hits(f"x = {word}\n".encode())
        assert hits and all(4 <= hit < 4 + len(word) for hit in hits)


def test_another_package_of_that_name_is_no_help(monkeypatch: pytest.MonkeyPatch) -> None:
    assert without(monkeypatch, ModuleType("re2")).hits(b"import torch\ntorch.cuda.x()\n") == [19]
