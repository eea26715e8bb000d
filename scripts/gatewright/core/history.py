"""Commits with their whole messages, and the branch they are on.

GitPython opens the repository; importing it takes longer than a warm run, so only what needs
history imports this module. Two things are asked of git itself: paths (`commit.diff()` is empty
where one is not UTF-8; use Snapshot), and commits (its objects ignore the encoding of a message
and know ids of 40 digits only).
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import git
import msgspec

from gatewright.core.errors import CannotJudge
from gatewright.core.git import READ_ONLY, Repository, records

_FORMAT = "%H%n%P%n%an%n%ae%n%B"


class Commit(msgspec.Struct, frozen=True):
    """`message` is all of it, without the newlines at its end."""

    id: str
    parents: tuple[str, ...]
    author: str
    email: str
    message: str

    @property
    def subject(self) -> str:
        return self.message.partition("\n")[0]


class History:
    """The history of one repository. Made by `open_history`, which ends GitPython's child processes."""

    def __init__(self, repository: Repository, repo: git.Repo) -> None:
        self.repository = repository
        self.repo = repo

    @property
    def branch(self) -> str | None:
        """The branch that HEAD names, also one without a commit yet; None where HEAD is detached."""
        head = self.repo.head
        try:
            return str(head.reference.path).removeprefix("refs/heads/")
        except TypeError:
            # GitPython's word for a HEAD that is a commit.
            return None

    def commits(self, *revisions: str) -> Iterator[Commit]:
        """The commits that are reachable from `revisions` (`^` before one excludes it), newest first.

        Messages are decoded from their own encoding. Raises CannotJudge where git cannot walk them.
        """
        options = [revision for revision in revisions if revision.startswith("-")]
        if options:
            raise CannotJudge(f"{options[0]!r} is not a revision", "a revision does not begin with '-'")
        if not revisions:
            return
        pinned = ["-c", "log.showSignature=false", "-c", "i18n.logOutputEncoding=UTF-8"]
        output = self.repository.git(*pinned, "log", "-z", f"--format={_FORMAT}", "--end-of-options", *revisions, "--")
        for record in records(output):
            id, parents, author, email, message = record.decode("utf-8", "replace").split("\n", 4)
            yield Commit(id, tuple(parents.split()), author, email, message.rstrip("\n"))


@contextmanager
def open_history(repository: Repository) -> Iterator[History]:
    """The history of a repository; GitPython's child processes end with the block."""
    try:
        repo = git.Repo(repository.git_dir)
    except git.InvalidGitRepositoryError as error:
        raise CannotJudge(f"GitPython finds no repository in {error}", "git fsck tells more") from None
    objects = repository.common_dir / "objects"
    # Its children inherit this process's variables, so each that binds to a repository is set.
    repo.git.update_environment(
        **READ_ONLY,
        GIT_DIR=os.fspath(repository.git_dir),
        GIT_COMMON_DIR=os.fspath(repository.common_dir),
        GIT_OBJECT_DIRECTORY=repository.environ.get("GIT_OBJECT_DIRECTORY", os.fspath(objects)),
        GIT_ALTERNATE_OBJECT_DIRECTORIES=repository.environ.get("GIT_ALTERNATE_OBJECT_DIRECTORIES", ""),
    )
    try:
        yield History(repository, repo)
    finally:
        repo.close()
