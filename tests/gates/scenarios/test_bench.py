"""The benchmark program runs on a small clone, leaves it as it was, and prints every row that it has a program for."""

import subprocess
import sys
from pathlib import Path

from gates.repositories import Git

BENCH = Path(__file__).resolve().parents[3] / "scripts" / "bench.py"
ROWS = [
    "`git grep -nE`, the device words",
    "interpreter's start",
    "gate, cold, device words: bytes, comments, docstrings",
    "gate, cold, device-leakage",
    "gate, cold, both checks",
    "gate, cold, from commit objects",
    "gate, warm, a change of some files",
    "gate, warm, from commit objects",
    "gate, warm, nothing changed",
    "gate as a pre-push hook, 3 new commits",
]


def test_bench_prints_its_rows(git: Git) -> None:
    leak = "import torch\n\n\ndef wait():\n    torch.cuda.synchronize()\n"
    source = git.init("source")
    source.commit({"nano/__init__.py": "", "nano/a.py": leak, "nano/b.py": leak, "nano/c.py": "x = 1\n"})
    clone = git.clone(source, "clone")
    result = subprocess.run(
        [sys.executable, BENCH, clone.path, "--runs", "1"], env=git.environ, capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
    table = {
        cells[1].strip(): cells[2].strip() for line in result.stdout.splitlines() if len(cells := line.split("|")) > 3
    }
    assert [name for name in ROWS if not float(table[name]) > 0] == []
    assert "| judging, facts at hand |" in result.stdout
    assert clone.git("status", "--porcelain") == ""
