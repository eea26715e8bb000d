"""Seeded edits of this repository's own tree: planted faults turn the run red, correct work leaves it green."""

import random
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from gates.repositories import Git

from gatewright.core.cache import Cache
from gatewright.core.change import change_of_work_tree
from gatewright.core.git import Repository
from gatewright.core.report import Report
from gatewright.core.runner import run

ROOT = Path(__file__).resolve().parents[3]
PAGE = "docs/ENVIRONMENT.md"
DEVICES = "policy/device-leakage.toml"
VARIABLES = "policy/env-doc.toml"

pytestmark = pytest.mark.slow

Edit = Callable[["Copy", random.Random], None]


class Copy:
    """A repository that holds this one's files as main, and what a change does to it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
        for name in filter(None, listed.decode().split("\0")):
            if (ROOT / name).is_file():
                target = root / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes((ROOT / name).read_bytes())
        self.git("add", "-A")
        self.git("commit", "-qm", "main")
        self.git("update-ref", "refs/remotes/origin/main", "HEAD")
        self.repository = Repository(root)
        self.cache = Cache(root / ".git" / "facts.sqlite3")

    def git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self.root, check=True, capture_output=True)

    def judge(self) -> Report:
        return run([change_of_work_tree(self.repository)], self.cache)

    def undo(self) -> None:
        self.git("reset", "-q", "--hard")
        self.git("clean", "-qfd")

    def read(self, name: str) -> str:
        return (self.root / name).read_text()

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def replace(self, name: str, pattern: str, replacement: str) -> None:
        text, count = re.subn(pattern, replacement, self.read(name), count=1, flags=re.MULTILINE)
        assert count == 1, f"{pattern!r} is not in {name}"
        self.write(name, text)

    def shared(self, pick: random.Random) -> str:
        """A shared module, none that is empty."""
        layers = ("core", "models", "layers", "sampling", "ops", "weights")
        names = [p for layer in layers for p in sorted((self.root / "engine" / layer).glob("*.py")) if p.stat().st_size]
        return pick.choice(names).relative_to(self.root).as_posix()

    def append(self, name: str, text: str) -> None:
        self.write(name, f"{self.read(name).rstrip()}\n\n\n{text}")

    def row(self, pick: random.Random) -> tuple[str, str]:
        """(variable, its row) of the page."""
        rows = re.findall(r"^\| `(ENGINE_\w+)` .*$", self.read(PAGE), re.MULTILINE)
        name = pick.choice(rows)
        row = re.search(rf"^\| `{name}` .*$", self.read(PAGE), re.MULTILINE)
        assert row is not None
        return name, row[0]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in Git(tmp_path_factory.mktemp("place")).environ.items():
            patch.setenv(name, value)
        root = tmp_path_factory.mktemp("copy")
        subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
        copied = Copy(root)
        copied.write("planted.txt", "the tree differs from its base\n")
        report = copied.judge()
        assert report.exit_code == 0, report.new
        copied.undo()
        yield copied


def code(text: str) -> Edit:
    return lambda copy, pick: copy.append(copy.shared(pick), text)


def source(name: str, text: str) -> Edit:
    return lambda copy, pick: copy.write(name, text)


def in_function(statement: str, header: str = "import torch\n\n\n") -> Edit:
    return code(f"{header}def planted(x, i):\n    return {statement}\n")


def remove_row(copy: Copy, pick: random.Random) -> None:
    _, row = copy.row(pick)
    copy.replace(PAGE, re.escape(row) + "\n", "")


def double_row(copy: Copy, pick: random.Random) -> None:
    _, row = copy.row(pick)
    copy.replace(PAGE, re.escape(row), lambda m: f"{row}\n{row}")  # type: ignore[arg-type]


def other_default(copy: Copy, pick: random.Random) -> None:
    copy.replace(PAGE, r"^(\| `ENGINE_NUM_THREADS` \| )`0`", r"\1`8`")


def rename_in_page(copy: Copy, pick: random.Random) -> None:
    copy.replace(PAGE, r"^\| `ENGINE_LOG_LEVEL`", "| `ENGINE_LOGLEVEL`")


def narrow_layers(copy: Copy, pick: random.Random) -> None:
    copy.append(copy.shared(pick), "import torch\n\n\ndef planted():\n    torch.cuda.synchronize()\n")
    copy.replace(DEVICES, r'"engine/\{core,[^"]*"', '"engine/core/engine.py"')


def delete_policy(copy: Copy, pick: random.Random) -> None:
    (copy.root / pick.choice([DEVICES, VARIABLES])).unlink()


FAULTS: dict[str, tuple[str, Edit]] = {
    "attribute": ("device-leakage/attribute", in_function("torch.cuda.synchronize()")),
    "attribute with a space": ("device-leakage/attribute", in_function("torch .cuda.current_device()")),
    "attribute of another vendor": ("device-leakage/attribute", in_function("torch.npu.synchronize()")),
    "predicate": ("device-leakage/predicate", in_function("x.is_cuda")),
    "literal": ("device-leakage/literal", in_function('x.to("cuda:0")')),
    "formatted literal": ("device-leakage/literal", in_function('torch.device(f"cuda:{i}")')),
    "joined literal": ("device-leakage/literal", in_function('x.to("cu" "da")')),
    "method": ("device-leakage/call", in_function("x.cuda()")),
    "dynamic": ("device-leakage/dynamic", in_function('getattr(torch, "cuda").empty_cache()')),
    "vendor's word": ("device-leakage/word", in_function('x.timer("nccl_all_reduce")')),
    "device package": ("device-leakage/import", code("def planted():\n    import triton\n")),
    "device room": ("device-leakage/import", code("def planted():\n    from engine.platforms.cuda import platform\n")),
    "import-time probe": ("device-leakage/import-time", code("import torch\n\nFAST = torch.cuda.is_available()\n")),
    "header": ("device-leakage/include", source("engine/core/planted.cpp", "#include <cuda_runtime.h>\n")),
    "gate": ("device-leakage/preprocessor", source("engine/core/planted.h", "#if defined(USE_CUDA)\n#endif\n")),
    "enumerator": ("device-leakage/enumerator", source("engine/core/planted.cc", "auto d = at::kCUDA;\n")),
    "a room's module moves to a shared layer": (
        "device-leakage/literal",
        lambda copy, pick: copy.git("mv", "engine/platforms/cuda/platform.py", "engine/core/platform.py"),
    ),
    "undocumented": ("env-doc/undocumented", code('import os\n\nPLANTED = os.environ.get("ENGINE_PLANTED")\n')),
    "undocumented, wrapped": (
        "env-doc/undocumented",
        code('import os\n\n\ndef _flag(name):\n    return os.getenv(name)\n\n\nPLANTED = _flag("ENGINE_PLANTED")\n'),
    ),
    "row removed": ("env-doc/undocumented", remove_row),
    "row doubled": ("env-doc/duplicate", double_row),
    "row renamed": ("env-doc/unread", rename_in_page),
    "other default": ("env-doc/default", other_default),
    "name put together": (
        "env-doc/dynamic",
        code('import os\n\n\ndef planted(name):\n    return os.environ[f"ENGINE_{name}"]\n'),
    ),
    "page deleted": ("env-doc/page", lambda copy, pick: (copy.root / PAGE).unlink()),
    "stale internal": (
        "env-doc/internal",
        lambda copy, pick: copy.append(VARIABLES, '[internal]\nENGINE_GONE = "an old switch of the tests"\n'),
    ),
    "policy narrowed": ("policy/loosened", narrow_layers),
    "policy deleted": ("policy/loosened", delete_policy),
    "pattern of nothing": (
        "policy/empty-glob",
        lambda copy, pick: copy.replace(DEVICES, r'"engine/\*\.py",', '"engine/*.py", "engine/gone/**",'),
    ),
    "exemption of nothing": (
        "policy/exemption-unused",
        code("# gate: allow device-leakage/call (ENG-CORE): nothing stands here to excuse\nPLANTED = 1\n"),
    ),
    "exemption without a reason": (
        "policy/exemption-malformed",
        code("# gate: allow device-leakage/call (ENG-CORE)\nPLANTED = 1\n"),
    ),
}


def move_module(copy: Copy, pick: random.Random) -> None:
    name = copy.shared(pick)
    copy.git("mv", name, name.replace(".py", "_moved.py"))


def move_room(copy: Copy, pick: random.Random) -> None:
    copy.git("mv", "engine/platforms/cuda/platform.py", "engine/platforms/cuda/device.py")


def new_room(copy: Copy, pick: random.Random) -> None:
    copy.write("engine/platforms/xpu/platform.py", "import torch\n\n\ndef wait():\n    torch.xpu.synchronize()\n")
    copy.replace(DEVICES, r"^\[rooms\]$", '[rooms]\nxpu = ["engine/platforms/xpu/**"]')


def new_variable(copy: Copy, pick: random.Random) -> None:
    copy.append("engine/env.py", 'PLANTED = _declare("ENGINE_PLANTED", "3", _count, "A number for tests.")\n')
    _, row = copy.row(pick)
    added = "| `ENGINE_PLANTED` | `3` | A number for tests. |"
    copy.replace(PAGE, re.escape(row), lambda m: f"{row}\n{added}")  # type: ignore[arg-type]


def remove_variable(copy: Copy, pick: random.Random) -> None:
    copy.replace("engine/env.py", r"^NUM_THREADS = .*\n", "")
    copy.replace(PAGE, r"^\| `ENGINE_NUM_THREADS`.*\n", "")


def typo(copy: Copy, pick: random.Random) -> None:
    _, row = copy.row(pick)
    cells = row.split(" | ")
    words = cells[-1].split(" ")
    words[pick.randrange(len(words) - 1)] += "s"
    copy.write(PAGE, copy.read(PAGE).replace(row, " | ".join([*cells[:-1], " ".join(words)])))


def exemption(copy: Copy, pick: random.Random) -> None:
    comment = "# gate: allow device-leakage/call (ENG-CORE): shows that a site can be excused"
    copy.append(copy.shared(pick), f"def planted(x):\n    {comment}\n    return x.cuda()\n")


def to_crlf(copy: Copy, pick: random.Random) -> None:
    path = copy.root / pick.choice([PAGE, copy.shared(pick)])
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


WORK: dict[str, Edit] = {
    "a module moves": move_module,
    "a device room's module moves": move_room,
    "a new device room": new_room,
    "a new documented variable": new_variable,
    "a variable goes, with its row": remove_variable,
    "a typo in a long cell": typo,
    "an excused site": exemption,
    "line ends change": to_crlf,
    "a comment": code("# torch.cuda is for the platform rooms only.\nPLANTED = 1\n"),
    "a docstring": code('def planted():\n    """Once held a torch.cuda.Stream; x.to("cuda") is gone."""\n'),
    "words that only look alike": code('CUDAS = "barracuda"\nhip_bone = {"shiplap": 1}\n'),
    "a clean module": source("engine/core/planted.py", "def planted(platform):\n    return platform.synchronize()\n"),
    "lines above": lambda copy, pick: (lambda n: copy.write(n, "# A remark.\n\n" + copy.read(n)))(copy.shared(pick)),
    "a module goes": lambda copy, pick: (copy.root / copy.shared(pick)).unlink(),
    "device words in tests": source("tests/engine/test_planted.py", 'def test_it(x):\n    assert x.to("cuda")\n'),
    "a guarded header": source(
        "engine/core/planted.h", '#pragma once\n// cuda_runtime.h\nconst char* s = "see cuda docs";\n'
    ),
    "a foreign variable": code('import os\n\nHOME = os.environ.get("HOME")\n'),
    "a variable that is written": code('import os\n\n\ndef planted():\n    os.environ["ENGINE_LOG_LEVEL"] = "debug"\n'),
    "a tighter vocabulary": lambda copy, pick: copy.append(
        DEVICES, '[bucket.vulkan]\nkind = "attribute"\nwords = ["torch.vulkan"]\ninstead = "the platform object"\n'
    ),
    "README corrected": lambda copy, pick: copy.append("README.md", "One more remark.\n"),
}


def seeded(kinds: Mapping[str, object], count: int, seed: int) -> list[tuple[str, int]]:
    """Every kind once, and more of them up to `count`, each with a seed of its own."""
    pick = random.Random(seed)
    names = [*kinds, *pick.choices(sorted(kinds), k=max(0, count - len(kinds)))]
    return [(name, pick.randrange(2**32)) for name in names]


@pytest.mark.parametrize(("kind", "seed"), seeded(FAULTS, 34, seed=1))
def test_planted_fault_turns_red(copy: Copy, kind: str, seed: int) -> None:
    rule, edit = FAULTS[kind]
    try:
        edit(copy, random.Random(seed))
        report = copy.judge()
        assert report.exit_code == 1
        assert rule in {finding.rule for finding in report.new}
    finally:
        copy.undo()
    copy.write("planted.txt", "as before\n")
    assert copy.judge().exit_code == 0
    copy.undo()


@pytest.mark.parametrize(("kind", "seed"), seeded(WORK, 24, seed=2))
def test_correct_work_stays_green(copy: Copy, kind: str, seed: int) -> None:
    try:
        edit = WORK[kind]
        edit(copy, random.Random(seed))
        report = copy.judge()
        assert report.exit_code == 0, report.new
        assert report.base
    finally:
        copy.undo()


def test_a_fault_says_where_it_came_from(copy: Copy) -> None:
    try:
        copy.git("mv", "engine/platforms/cuda/platform.py", "engine/core/platform.py")
        moved = [f for f in copy.judge().new if "moved in from" in f.message]
        assert moved
        assert all("engine/platforms/cuda/platform.py" in finding.message for finding in moved)
    finally:
        copy.undo()
