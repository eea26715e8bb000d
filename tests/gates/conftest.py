"""Fixtures that tests of the gates share: real repositories, and a small check to judge them with."""

import os
import shutil
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


@pytest.fixture(scope="session")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `work` starts as; made once, because each git process costs time."""
    place = Git(tmp_path_factory.mktemp("begun"))
    repository = place.init()
    repository.commit({**POLICY, "src/a.txt": "fine\n"}, "begin")
    return repository.path


@pytest.fixture
def work(git: Git, begun: Path) -> Work:
    """A repository with a policy and one clean file on main."""
    path = git.root / "work"
    shutil.copytree(begun, path, symlinks=True)
    repository = Work(git, path)
    repository.git("update-index", "-q", "--refresh")
    return repository
