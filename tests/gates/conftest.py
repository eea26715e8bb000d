"""Fixtures that tests of the gates share: real repositories, and a small check to judge them with."""

import os
from pathlib import Path

import pytest
from gates.repositories import CHECKS, POLICY, Git, Work

import gatewright.checks


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registers the check `words` of data/checks/ in this process."""
    monkeypatch.setattr(gatewright.checks, "__path__", [*gatewright.checks.__path__, os.fspath(CHECKS)])


@pytest.fixture
def git(tmp_path: Path, words: None, monkeypatch: pytest.MonkeyPatch) -> Git:
    """A place for repositories. This process sees its environment as well."""
    place = Git(tmp_path)
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    for name, value in place.environ.items():
        monkeypatch.setenv(name, value)
    return place


@pytest.fixture
def work(git: Git) -> Work:
    """A repository with a policy and one clean file on main."""
    repository = git.init()
    repository.commit({**POLICY, "src/a.txt": "fine\n"}, "begin")
    return repository
