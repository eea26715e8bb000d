"""Times the gate on a tree beside other ways to find device words, process by process.

    python scripts/bench.py TREE [--runs N]

TREE is a clone of any repository, and stays as it is: it is cloned once more into a temporary folder,
where `gate init` writes a policy unless TREE has one, and a few commits are made. Run it with the
environment's own interpreter: a launcher in front of it would be timed as well.
"""

import argparse
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent
sys.path.insert(0, os.fspath(SCRIPTS))

from gatewright.checks._device_policy import Policy  # noqa: E402
from gatewright.core.cache import NAME, Cache  # noqa: E402
from gatewright.core.git import Repository  # noqa: E402
from gatewright.core.policy import load_policies  # noqa: E402
from gatewright.core.snapshot import Snapshot, work_tree_snapshot  # noqa: E402
from gatewright.core.tree import Tree  # noqa: E402
from gatewright.extractors.device_needles import needles  # noqa: E402
from gatewright.extractors.device_site import Vocabulary  # noqa: E402
from gatewright.readers.python import utf8  # noqa: E402
from gatewright.readers.python_lexer import code_hits  # noqa: E402

# What the installed command is: a script of two lines.
GATE = [sys.executable, "-c", "from gatewright.cli import main; main()"]
PUSHED = 3
_NULL = subprocess.DEVNULL


class Bench:
    """Runs commands in one folder; prints wall seconds, CPU seconds of all processes, MiB of the largest."""

    def __init__(self, folder: Path, runs: int) -> None:
        self.folder = folder
        self.runs = runs

    def row(
        self,
        name: str,
        command: Sequence[str],
        before: Callable[[], object] = lambda: None,
        input: bytes = b"",
        ok: Sequence[int] = (0,),
    ) -> None:
        walls: list[float] = []
        processor: list[float] = []
        memory = 0.0
        for _ in range(self.runs):
            before()
            with tempfile.TemporaryFile() as source:
                source.write(input)
                source.seek(0)
                started = time.perf_counter()
                child = subprocess.Popen(command, cwd=self.folder, stdin=source, stdout=_NULL, stderr=_NULL)
                _, status, usage = os.wait4(child.pid, 0)
            walls.append(time.perf_counter() - started)
            processor.append(usage.ru_utime + usage.ru_stime)
            memory = max(memory, usage.ru_maxrss / 1024)
            child.returncode = os.waitstatus_to_exitcode(status)
            if child.returncode not in ok:
                sys.exit(f"{name}: exit code {child.returncode} of {' '.join(command)}")
        median, cpu, spread = statistics.median(walls), statistics.median(processor), (min(walls), max(walls))
        print(f"| {name} | {median:.3f} | {spread[0]:.3f} to {spread[1]:.3f} | {cpu:.3f} | {memory:.0f} |", flush=True)


def prepare(tree: Path, work: Path) -> None:
    """Clone `tree`, commit a policy that origin has too, and on top PUSHED commits of one source file each."""
    subprocess.run(["git", "clone", "-q", "--shared", tree, work], check=True)
    git = ["git", "-C", os.fspath(work), "-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    if (tree / "policy").is_dir():
        shutil.copytree(tree / "policy", work / "policy", dirs_exist_ok=True)
    else:
        subprocess.run([*GATE, "-C", work, "init"], check=True, stdout=subprocess.DEVNULL)
    marks = {".py": "\n# bench\n", ".cpp": "\n// bench\n"}
    files = subprocess.run([*git, "ls-files", "*.py", "*.cpp"], check=True, capture_output=True, text=True).stdout
    for name in ["policy", *files.splitlines()[:PUSHED]]:
        if name != "policy":
            with (work / name).open("a", encoding="utf-8") as file:
                file.write(marks[Path(name).suffix])
        subprocess.run([*git, "add", name], check=True)
        subprocess.run([*git, "commit", "-q", "--no-verify", "-m", f"bench {name}"], check=True)
        if name == "policy":
            subprocess.run([*git, "update-ref", "refs/remotes/origin/HEAD", "HEAD"], check=True)


def peers(bench: Bench, policy: Policy, place: Path) -> None:
    """The same words looked for by git grep, and by ruff and ast-grep where these are installed."""
    words = {kind: [w for b in policy.bucket.values() if b.kind == kind for w in b.words] for kind in _KINDS}
    dotted = [word for word in (*words["attribute"], *words["import"]) if "*" not in word and ":" not in word]
    patterns = [word.replace(".", r"\.") for word in (*dotted, *words["predicate"])]
    patterns += [f"[\"']{word}[\"':]" for word in words["literal"]] + [rf"\.{word}\(" for word in words["call"]]
    bench.row("`git grep -nE`, the device words", ["git", "grep", "-nE", "|".join(patterns), "--", "*.py"], ok=(0, 1))
    if ruff := _installed("ruff"):
        settings = place / "ruff.toml"
        banned = "".join(f'"{word}".msg = "ask the platform"\n' for word in dotted)
        settings.write_text(f'[lint]\nselect = ["TID251"]\n[lint.flake8-tidy-imports.banned-api]\n{banned}')
        command = [ruff, "check", "-q", "--no-cache", "--config", os.fspath(settings), "."]
        bench.row("ruff TID251 (imports, attributes), no cache", command, ok=(0, 1))
    if ast_grep := _installed("ast-grep"):
        rule = place / "rule.yml"
        searched = [
            *dotted,
            *(f"$X.{word}" for word in words["predicate"]),
            *(f'"{word}"' for word in words["literal"]),
        ]
        searched += [f"$X.{word}($$$A)" for word in words["call"]]
        items = "".join(f"    - pattern: '{pattern}'\n" for pattern in searched)
        rule.write_text(f"id: device\nlanguage: python\nrule:\n  any:\n{items}")
        command = [ast_grep, "scan", "--rule", os.fspath(rule), "--json=stream", "."]
        bench.row("ast-grep, the same patterns", command, ok=(0, 1))


_KINDS = ("attribute", "import", "predicate", "literal", "call")


def _installed(program: str) -> str | None:
    beside = Path(sys.executable).parent / program
    return os.fspath(beside) if beside.exists() else shutil.which(program)


def gates(bench: Bench, place: Path) -> None:
    """`gate run` in its ways, each relative to the clone's origin."""
    cache, kept = Repository(bench.folder).common_dir / NAME, place / NAME

    def forget() -> None:
        cache.unlink(missing_ok=True)

    revisions = ["git", "rev-parse", "HEAD", f"HEAD~{PUSHED}"]
    output = subprocess.run(revisions, cwd=bench.folder, check=True, capture_output=True, text=True).stdout
    tip, before = output.split()
    bench.row("interpreter's start", [sys.executable, "-c", "pass"])
    bench.row("gate, cold, device words: bytes, comments, docstrings", [sys.executable, __file__, "--words", "."])
    bench.row("gate, cold, device-leakage", [*GATE, "run", "--check", "device-leakage"], forget)
    bench.row("gate, cold, both checks", [*GATE, "run"], forget)
    bench.row("gate, cold, from commit objects", [*GATE, "run", "--commit", tip], forget)
    bench.row("gate, warm, a change of some files", [*GATE, "run"])
    bench.row("gate, warm, from commit objects", [*GATE, "run", "--commit", tip])
    # The tip of origin is judged absolutely, so what is inherited elsewhere fails here.
    bench.row("gate, warm, nothing changed", [*GATE, "run", "--commit", before], ok=(0, 1))
    forget()
    subprocess.run([*GATE, "run", "--commit", before], cwd=bench.folder, stdout=_NULL, stderr=_NULL)
    shutil.copyfile(cache, kept)
    push = f"refs/heads/topic {tip} refs/heads/topic {before}\n".encode()
    command = [*GATE, "hook", "pre-push", "origin"]
    bench.row(f"gate as a pre-push hook, {PUSHED} new commits", command, lambda: shutil.copyfile(kept, cache), push)


def words_alone(tree: Path) -> int:
    """The stage of device-python that needs no syntax tree, on all cores: how many files have a word in code."""
    snapshot = work_tree_snapshot(Repository(tree.resolve()))
    policy = load_policies(snapshot).files["device-leakage"]
    paths = Tree(snapshot).select(policy.check.extractors(policy.policy)[0].paths)
    cores = os.cpu_count() or 1
    with multiprocessing.get_context("fork").Pool(cores) as pool:
        return sum(pool.starmap(_count, [(snapshot, paths[n::cores], policy.policy.vocabulary) for n in range(cores)]))


def _count(snapshot: Snapshot, paths: Sequence[str], vocabulary: Vocabulary) -> int:
    words, reader = needles(vocabulary), snapshot.open()
    sources = (utf8(reader.read(path, snapshot.entries[path])) for path in paths)
    count = sum(1 for source in sources if (hits := words.hits(source)) and code_hits(source, hits))
    reader.close()
    return count


def split(work: Path) -> Iterator[tuple[str, float]]:
    """Seconds of one process for each stage of a cold run."""
    started = time.perf_counter()
    snapshot = work_tree_snapshot(Repository(work))
    yield "listing the work tree", time.perf_counter() - started
    policies = load_policies(snapshot).files
    checks = [file for name, file in policies.items() if name != "policy"]
    tree = Tree(snapshot, Cache(None))
    extractors = [extractor for file in checks for extractor in file.check.extractors(file.policy)]
    started = time.perf_counter()
    reader = snapshot.open()
    paths = sorted({path for extractor in extractors for path in tree.select(extractor.paths)})
    contents = {path: reader.read(path, snapshot.entries[path]) for path in paths}
    reader.close()
    size = sum(map(len, contents.values())) / 1e6
    yield f"reading {len(contents)} files, {size:.1f} MB", time.perf_counter() - started
    words = needles(policies["device-leakage"].policy.vocabulary)
    started = time.perf_counter()
    for source in (utf8(data) for path, data in contents.items() if path.endswith(".py")):
        if hits := words.hits(source):
            code_hits(source, hits)
    byte_stage = time.perf_counter() - started
    yield "device-python, words: bytes, comments, docstrings", byte_stage
    for extractor in extractors:
        function = extractor.load()
        started = time.perf_counter()
        for path in tree.select(extractor.paths):
            function(contents[path], extractor.options)
        took = time.perf_counter() - started
        exact = extractor.name == "device-python"
        yield (f"{extractor.name}, exact: ast", took - byte_stage) if exact else (extractor.name, took)
    for file in checks:
        file.check.judge(tree, file.policy)
    started = time.perf_counter()
    for file in checks:
        file.check.judge(tree, file.policy)
    yield "judging, facts at hand", time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path, help="a clone of the repository to time")
    parser.add_argument("--words", action="store_true", help="run the words stage once on the tree, for one row")
    parser.add_argument("--runs", type=int, default=5, help="whole-process runs of each row (default: 5)")
    options = parser.parse_args()
    if options.words:
        print(words_alone(options.tree))
        return
    os.environ["PYTHONPATH"] = os.fspath(SCRIPTS)
    # An installed package has its bytecode.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder, "work")
        prepare(options.tree.resolve(), work)
        policy = load_policies(work_tree_snapshot(Repository(work))).files["device-leakage"].policy
        print(f"median of {options.runs} runs, {os.cpu_count()} cores, Python {sys.version.split()[0]}\n")
        print("| command | seconds | range | CPU | MiB |\n| --- | --- | --- | --- | --- |")
        bench = Bench(work, options.runs)
        peers(bench, policy, Path(folder))
        gates(bench, Path(folder))
        print("\n| stage, in one process | seconds |\n| --- | --- |")
        for name, seconds in split(work):
            print(f"| {name} | {seconds:.3f} |", flush=True)


if __name__ == "__main__":
    main()
