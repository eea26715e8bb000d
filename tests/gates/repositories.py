"""Real git repositories for tests: private home, no user configuration, fixed identity and time."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from gatewright.core.git import Repository

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
CHECKS = Path(__file__).resolve().parent / "data" / "checks"

# src/ is judged, and BAD is the word that must not stand there.
POLICY = {"policy/words.toml": 'where = ["src/**"]\n'}

_GATE = f"""#!{sys.executable}
import sys
sys.path.insert(0, {os.fspath(SCRIPTS)!r})
import gatewright.checks
gatewright.checks.__path__.append({os.fspath(CHECKS)!r})
from gatewright.cli import main
main(prog_name="gate")
"""

_CONFIGURATION = """[init]
\tdefaultBranch = main
[protocol "file"]
\tallow = always
[gc]
\tauto = 0
"""

Content = str | bytes | None


class Git:
    """Where a test's repositories live, and the environment that its processes see."""

    def __init__(self, root: Path) -> None:
        self.root = root
        home, programs = root / "home", root / "bin"
        home.mkdir()
        programs.mkdir()
        gate = programs / "gate"
        gate.write_text(_GATE)
        gate.chmod(0o755)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        who = {
            f"GIT_{role}_{part}": value
            for role in ("AUTHOR", "COMMITTER")
            for part, value in (("NAME", "Ada"), ("EMAIL", "ada@example.org"), ("DATE", "2026-01-01T00:00:00Z"))
        }
        self.environ = {
            **inherited,
            **who,
            "HOME": os.fspath(home),
            "XDG_CONFIG_HOME": os.fspath(home),
            "PATH": os.pathsep.join([os.fspath(programs), inherited["PATH"]]),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TEMPLATE_DIR": "",
            "PYTHONDONTWRITEBYTECODE": "",
        }
        home.joinpath(".gitconfig").write_text(_CONFIGURATION)

    def configure(self, settings: Mapping[str, str]) -> None:
        """User configuration: what `git config --global` writes."""
        for name, value in settings.items():
            subprocess.run(["git", "config", "--global", name, value], env=self.environ, check=True)

    def init(self, name: str = "work", *arguments: str) -> "Work":
        path = self.root / name
        subprocess.run(["git", "init", "-q", *arguments, path], env=self.environ, check=True)
        return Work(self, path)

    def clone(self, source: "Work | str", name: str, *arguments: str) -> "Work":
        path = self.root / name
        origin = source if isinstance(source, str) else os.fspath(source.path)
        subprocess.run(["git", "clone", "-q", *arguments, origin, path], env=self.environ, check=True)
        return Work(self, path)


class Work:
    """One repository, or one of its work trees."""

    def __init__(self, git: Git, path: Path) -> None:
        self.place = git
        self.path = path

    def git(self, *arguments: str, ok: bool = True, input: bytes | None = None, **environ: str) -> str:
        result = self.run("git", *arguments, input=input, **environ)
        assert result.returncode == 0 or not ok, result.stderr
        return result.stdout.strip()

    def run(
        self, *command: str, input: bytes | None = None, folder: str = ".", **environ: str
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command,
            cwd=self.path / folder,
            env={**self.place.environ, **environ},
            input=None if input is None else input.decode("utf-8", "surrogateescape"),
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=60,
        )

    def gate(self, *arguments: str, input: bytes | None = None, folder: str = ".", **environ: str):
        """The installed command, in a process of its own."""
        return self.run("gate", *arguments, input=input, folder=folder, **environ)

    def write(self, files: Mapping[str, Content]) -> None:
        """Put files on disk; None removes one."""
        for name, content in files.items():
            path = self.path / name
            if content is None:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content)

    def commit(self, files: Mapping[str, Content] | None = None, message: str = "change") -> str:
        """Commit everything on disk after writing `files`; returns the id."""
        self.write(files or {})
        self.git("add", "-A")
        self.git("commit", "-q", "--no-verify", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def open(self, folder: str = ".", **environ: str) -> Repository:
        """As the gate reads it, with the test's environment."""
        return Repository(self.path / folder, {**self.place.environ, **environ})
