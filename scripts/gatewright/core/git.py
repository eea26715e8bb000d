"""Git plumbing, in bytes. The only module that starts git for reading a judged repository."""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gatewright.core.errors import CannotJudge, Unrelated

# What `git rev-parse --local-env-vars` lists: they bind a process to one repository.
LOCAL_VARIABLES = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
    "GIT_OBJECT_DIRECTORY",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_REPLACE_REF_BASE",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_COMMON_DIR",
    "GIT_INTERNAL_SUPER_PREFIX",
)

# A read never takes a lock, takes a path for a pattern of another kind, follows a replacement or a
# graft (the receiving side has neither), asks a person, or fetches in a partial clone (older git knows
# no GIT_NO_LAZY_FETCH; without an allowed protocol its fetch fails at once).
READ_ONLY = {
    "GIT_OPTIONAL_LOCKS": "0",
    **dict.fromkeys([f"GIT_{kind}_PATHSPECS" for kind in ("LITERAL", "GLOB", "NOGLOB", "ICASE")], "0"),
    "GIT_NO_REPLACE_OBJECTS": "1",
    # No such file can be; git remarks on one that is there, even an empty one.
    "GIT_GRAFT_FILE": os.path.join(os.devnull, "none"),  # noqa: PTH118
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}

_EMPTY_TREES = {
    "sha1": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "sha256": "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}

_REMEDIES = (
    (b"promisor", "this is a partial clone; fetch what it lacks: git fetch --refetch --no-filter"),
    (b"dubious ownership", "run git as the owner of the repository, or add it to safe.directory as git says"),
    (b"not a git repository", "run gate inside a git repository, or name one with -C"),
    (b"shallow", "fetch the missing history: git fetch --unshallow"),
    (b"missing", "fetch the missing objects: git fetch, or git fsck to see what is damaged"),
    (b"could not get object info", "fetch the missing objects: git fetch, or git fsck to see what is damaged"),
    (b"unmerged", "finish the merge: git status lists the conflicted paths"),
)


def foreign_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment for a child that works on any other repository: no variable binds it to this one."""
    return {name: value for name, value in environ.items() if name not in LOCAL_VARIABLES}


def git_failed(arguments: Sequence[str], stderr: bytes) -> CannotJudge:
    """Git's own words and the remedy."""
    words = stderr.decode(errors="replace").strip() or "it printed nothing"
    help = next((text for needle, text in _REMEDIES if needle in stderr.lower()), "run the command by hand to see more")
    return CannotJudge(f"git {' '.join(arguments[:3])} failed: {words}", help)


class Repository:
    """One repository: where it lies and how its objects are read.

    `root` is the top of the work tree, or None where there is none (a bare repository).
    """

    def __init__(self, start: Path, environ: Mapping[str, str] = os.environ, *, in_hook: bool = False) -> None:
        """Find the repository of the folder `start`.

        Inside a hook git's own variables name the repository; elsewhere the folder does, and
        variables left behind by another repository's hook are dropped.
        """
        self.start = start
        self.environ = {**environ, **READ_ONLY}
        inherited = environ.get("GIT_DIR")
        if inherited is not None and not in_hook:
            found = self._describe({**foreign_environment(environ), **READ_ONLY})
            if found is not None:
                same = Path(found[1]) == (start / inherited).resolve()
                kept = environ if same else foreign_environment(environ)
                self.environ = {**kept, **READ_ONLY}
                for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_PREFIX"):
                    self.environ.pop(name, None)
        described = self._describe(self.environ)
        if described is None:
            raise git_failed(["rev-parse"], self._stderr)
        bare, git_dir, common, self.object_format, inside, up = described
        self.git_dir = Path(git_dir)
        self.common_dir = (start / common).resolve()
        self.bare = bare == "true"
        self.root = (start / up).resolve() if inside == "true" else None
        if not in_hook and self._index_is_of_another():
            del self.environ["GIT_INDEX_FILE"]

    def _index_is_of_another(self) -> bool:
        """Whether a variable that a hook of another repository left behind names that one's index."""
        folder = (self.root or self.start).joinpath(self.environ.get("GIT_INDEX_FILE", ".")).resolve().parent
        return folder not in (self.git_dir, self.common_dir) and folder.joinpath("HEAD").is_file()

    def _describe(self, environ: Mapping[str, str]) -> list[str] | None:
        arguments = ["--is-bare-repository", "--absolute-git-dir", "--git-common-dir", "--show-object-format"]
        arguments += ["--is-inside-work-tree", "--show-cdup"]
        result = self._spawn(["rev-parse", *arguments], environ)
        out, self._stderr = result.communicate()
        if result.returncode != 0:
            return None
        answers = os.fsdecode(out).split("\n")[:-1]
        if len(answers) <= len(arguments):
            # A bare repository has no answer to the last.
            return answers + [""] * (len(arguments) - len(answers))
        # A line end in a path: each answer is asked for alone.
        return [os.fsdecode(self._spawn(["rev-parse", a], environ).communicate()[0])[:-1] for a in arguments]

    def _spawn(
        self, arguments: Sequence[str], environ: Mapping[str, str] | None = None, stdin: int | None = None
    ) -> "subprocess.Popen[bytes]":
        command = ["git", "-c", "core.fsmonitor=false", *arguments]
        try:
            return subprocess.Popen(
                command,
                cwd=self.start,
                env=self.environ if environ is None else environ,
                stdin=subprocess.DEVNULL if stdin is None else stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except OSError as error:
            missing = "git" if self.start.is_dir() else str(self.start)
            words = "not found" if isinstance(error, FileNotFoundError) else f"cannot be used: {error.strerror}"
            raise CannotJudge(f"{missing} {words}", "install git, or name an existing folder") from None

    def git(self, *arguments: str, ok: Sequence[int] = (0,), input: bytes | None = None) -> bytes:
        """Standard output of one git command. Raises CannotJudge with git's words on any other exit code."""
        return self.git_all([arguments], ok=ok, input=input)[0]

    def git_all(
        self, commands: Sequence[Sequence[str]], ok: Sequence[int] = (0,), input: bytes | None = None
    ) -> list[bytes]:
        """The outputs of several commands that run side by side."""
        stdin = subprocess.PIPE if input is not None else None
        children = [self._spawn(arguments, stdin=stdin) for arguments in commands]
        outputs = [child.communicate(input) for child in children]
        for arguments, child, (_, err) in zip(commands, children, outputs, strict=True):
            if child.returncode not in ok:
                raise git_failed(arguments, err)
        return [out for out, _ in outputs]

    def commit_id(self, revision: str) -> str | None:
        """Full id of the commit that `revision` names or, for an annotated tag, points to.

        Raises CannotJudge where the name has two meanings: a branch and a tag, or a short id of two objects.
        """
        if revision.startswith("-"):
            raise CannotJudge(f"{revision!r} is not a revision", "a revision does not begin with '-'")
        arguments = ["rev-parse", "--verify", "--end-of-options", revision + "^{commit}"]
        child = self._spawn(["-c", "core.warnAmbiguousRefs=true", *arguments])
        out, err = child.communicate()
        # A full id means the object, even where a branch bears its name.
        if b"ambiguous" in err and not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", revision):
            raise CannotJudge(
                f"{revision!r} is ambiguous: {err.decode(errors='replace').strip()}",
                "write refs/heads/... or more digits",
            )
        # Older git prints the option as well.
        return out.decode().split()[-1] if child.returncode == 0 else None

    def head_id(self) -> str | None:
        """The commit of HEAD, or None on a branch without one. Raises CannotJudge where it cannot be read."""
        commit = self.commit_id("HEAD")
        if commit is None:
            child = self._spawn(["log", "-1"])
            _, err = child.communicate()
            if b"does not have any commits yet" not in err:
                raise git_failed(["log", "-1", "HEAD"], err)
        return commit

    @property
    def empty_tree(self) -> str:
        """The id of the tree without entries, which git knows without an object."""
        return _EMPTY_TREES[self.object_format]

    def merge_base(self, *commits: str) -> str:
        """The best common ancestor, or one of several. Raises CannotJudge as `merge_bases` does."""
        return self.merge_bases(*commits)[0]

    def merge_bases(self, commit: str, *others: str) -> list[str]:
        """The best common ancestors of a commit and a merge of the others.

        Several where histories merged each other. Raises CannotJudge where there is none, and says why.
        """
        out = self.git("merge-base", "--all", commit, *others, ok=(0, 1)).decode().split()
        if out:
            return out
        pair = " and ".join(c[:12] for c in (commit, *others))
        if self.git("rev-parse", "--is-shallow-repository").strip() == b"true":
            raise CannotJudge(f"no merge base of {pair}: this is a shallow clone", "git fetch --unshallow")
        alone = f"judge it alone: gate run --commit {commit[:12]} --absolute; or name another base with --base"
        raise Unrelated(f"no merge base of {pair}: unrelated histories", alone)

    def configuration(self, name: str) -> tuple[str, str] | None:
        """(value, origin) of a setting, or None where it is not set."""
        out = self.git("config", "--show-origin", "-z", "--get", name, ok=(0, 1))
        origin, _, value = os.fsdecode(out).rstrip("\0").partition("\0")
        return (value, origin) if out else None

    def objects(self) -> "Objects":
        return Objects(self)


class Objects:
    """Reads blobs by id through one `git cat-file --batch` child, one request at a time.

    A request is written only after the last answer was read, so neither pipe can fill.
    """

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self.child: subprocess.Popen[bytes] | None = None

    def read(self, object_id: str) -> bytes:
        if self.child is None:
            self.child = self.repository._spawn(["cat-file", "--batch"], stdin=subprocess.PIPE)
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        try:
            self.child.stdin.write(object_id.encode() + b"\n")
            self.child.stdin.flush()
        except BrokenPipeError:
            raise self._died(object_id) from None
        header = self.child.stdout.readline().split()
        if len(header) != 3:
            raise self._died(object_id, b" ".join(header))
        size = int(header[2])
        data = self.child.stdout.read(size + 1)
        if len(data) != size + 1:
            raise self._died(object_id)
        return data[:-1]

    def _died(self, object_id: str, answer: bytes = b"") -> CannotJudge:
        child, self.child = self.child, None
        assert child is not None
        _, err = child.communicate()
        return git_failed(["cat-file", "--batch", object_id], err + answer)

    def close(self) -> None:
        if self.child is not None:
            self.child.communicate()
            self.child = None


def records(output: bytes) -> Iterator[bytes]:
    """The NUL-terminated records of a `-z` output."""
    return iter(output.split(b"\0")[:-1])
