"""A package with a suite, small enough to be mutated whole in a test."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from gatewright.mutation import campaign
from gatewright.mutation.campaign import Result
from gatewright.mutation.mutant import Mutant
from gatewright.mutation.project import Project, reaching_suites
from gatewright.mutation.selection import select
from gatewright.mutation.store import Store
from gatewright.mutation.verdict import Outcome

PYPROJECT = '[tool.pytest.ini_options]\npythonpath = ["scripts"]\nmarkers = ["slow: slow"]\n'
MODULE = "scripts/gatewright/core/limits.py"
SUITE = "tests/gates/test_limits.py"


class Small:
    """A repository whose package is named as the real one, so that the command finds it."""

    def __init__(self, root: Path, files: Mapping[str, str]) -> None:
        self.root = root
        root.mkdir(exist_ok=True)
        subprocess.run(["git", "init", "-q", "-b", "main", root], check=True)
        packages = {f"scripts/gatewright/{folder}__init__.py": "" for folder in ("", "core/")}
        self.write({"pyproject.toml": PYPROJECT, **packages, **files})

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def commit(self) -> None:
        identity = ["-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "core.hooksPath="]
        subprocess.run(["git", "add", "-A"], cwd=self.root, check=True)
        subprocess.run(["git", *identity, "commit", "-qm", "change"], cwd=self.root, check=True)

    @property
    def project(self) -> Project:
        return Project(root=self.root)

    def status(self) -> str:
        return subprocess.run(
            ["git", "status", "--porcelain"], cwd=self.root, check=True, capture_output=True, text=True
        ).stdout

    def run(self, store: Store | None = None, target: str = MODULE, jobs: int = 1) -> Result:
        """Mutate one file against the suites that reach it."""
        project = self.project
        plan = select(project, [target], None, None, 0)
        files = [
            p.relative_to(self.root).as_posix() for p in self.root.rglob("*") if p.is_file() and ".git/" not in str(p)
        ]
        return campaign.run(
            project,
            files,
            plan,
            store or Store(None),
            suites=reaching_suites(project, [target]),
            tool=campaign.tool_digest(),
            jobs=jobs,
            budget=5.0,
            progress=lambda *_: None,
        )


def outcome(result: Result, operator: str, source: str, becomes: str = "") -> Outcome:
    """Of the one mutant that is named so."""
    (mutant,) = named(result, operator, source, becomes)
    return result.outcomes[mutant.identity]


def named(result: Result, operator: str, source: str, becomes: str = "") -> list[Mutant]:
    return [
        mutant
        for mutant in result.plan.mutants
        if (mutant.operator, mutant.source) == (operator, source) and becomes in ("", mutant.becomes)
    ]
