"""A temporary folder with a copy of the tree for each worker: the judged tree itself is never written."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType

from gatewright.core.errors import CannotJudge
from gatewright.core.git import foreign_environment

_PREFIX = "gate-mutate-"


class Workspace:
    """Lives under TMPDIR in a folder that carries this process's id, so that leftovers are recognised."""

    def __init__(self) -> None:
        self.leftovers = _remove_leftovers()
        self.folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-")).resolve()

    @property
    def bytecode(self) -> Path:
        """Compiled modules of the copies. Fresh, as time and size of a file do not tell a mutant from the original."""
        return self.folder / "bytecode"

    def __enter__(self) -> "Workspace":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def copy(self, root: Path, files: Iterable[str], number: int, contents: Mapping[str, bytes]) -> Path:
        """A copy of `files`, some with the `contents` given, as a repository with one commit.

        Tests of the real tree expect a repository.
        """
        tree = self.folder / f"tree-{number}"
        for name in files:
            target = tree / name
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                shutil.copy2(root / name, target, follow_symlinks=False)
            except FileNotFoundError:
                # Removed since the tree was listed.
                continue
        for name, content in contents.items():
            (tree / name).write_bytes(content)
        identity = ["-c", "user.name=gate", "-c", "user.email=gate@localhost", "-c", "core.hooksPath="]
        for arguments in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-q", "--allow-empty", "-m", "copy"]):
            done = subprocess.run(["git", *arguments], cwd=tree, env=self.environment(), capture_output=True, text=True)
            if done.returncode:
                raise CannotJudge(f"git {arguments[-1]} failed in the copy: {done.stderr.strip()}", "see git's words")
        return tree

    def environment(self) -> dict[str, str]:
        """Of the workers: a private home, no user configuration of git."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        inherited = {
            k: v for k, v in foreign_environment().items() if not k.startswith(("PYTEST_", "COVERAGE", "GIT_"))
        }
        return {
            **inherited,
            "HOME": os.fspath(home),
            "XDG_CONFIG_HOME": os.fspath(home),
            "GIT_CONFIG_NOSYSTEM": "1",
            "TMPDIR": os.fspath(self.folder),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONHASHSEED": "0",
        }

    def compile(self, tree: Path, folders: Iterable[str]) -> None:
        """Fill the private bytecode cache, so that no child compiles what is not mutated."""
        command = [sys.executable, "-m", "compileall", "-q", *(os.fspath(tree / folder) for folder in folders)]
        environment = {**self.environment(), "PYTHONPYCACHEPREFIX": os.fspath(self.bytecode)}
        subprocess.run(command, env=environment, capture_output=True)


def _remove_leftovers() -> list[str]:
    """Folders of runs that were killed: their process is gone."""
    removed = []
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        owner = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if owner.isdecimal() and not _alive(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)
            removed.append(folder.name)
    return removed


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
