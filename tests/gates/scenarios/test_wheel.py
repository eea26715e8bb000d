"""The built wheel, installed outside the checkout: commands, manuals and a verdict."""

import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.slow


def call(*command: str | Path, cwd: Path) -> "subprocess.CompletedProcess[str]":
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "PYTHON"))}
    arguments = [str(part) for part in command]
    return subprocess.run(arguments, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The scripts folder of an environment that holds the wheel and nothing of the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    built = call(sys.executable, "-m", "pip", "wheel", "--no-deps", "-q", "-w", folder, ROOT, cwd=folder)
    assert built.returncode == 0, built.stderr
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    (wheel,) = folder.glob("gatewright-*.whl")
    done = call(python, "-m", "pip", "install", "-q", wheel, cwd=folder)
    assert done.returncode == 0, done.stderr
    yield python.parent


def test_base_install_is_light(installed: Path, tmp_path: Path) -> None:
    listed = call(installed / "python", "-m", "pip", "list", "--format=freeze", cwd=tmp_path).stdout.lower()
    assert "gatewright" in listed
    assert not {"torch", "transformers", "numpy", "triton"} & {line.partition("==")[0] for line in listed.split()}


def test_manuals_are_packaged(installed: Path, tmp_path: Path) -> None:
    listed = call(installed / "gate", "list", cwd=tmp_path)
    rules = [line.split()[0] for line in listed.stdout.splitlines() if line.startswith("  ")]
    assert len(rules) > 15
    for name in {rule.partition("/")[0] for rule in rules}:
        explained = call(installed / "gate", "explain", name, cwd=tmp_path)
        assert explained.returncode == 0, explained.stderr
        assert all(f"## {rule}" in explained.stdout for rule in rules if rule.startswith(name + "/"))


def test_a_verdict_in_a_new_repository(installed: Path, tmp_path: Path) -> None:
    package = tmp_path / "engine"
    for name, text in {
        "core/runner.py": "def step(platform):\n    platform.synchronize()\n",
        "models/llama.py": "class Llama:\n    pass\n",
        "platforms/cuda/device.py": "import torch\n\n\ndef synchronize():\n    torch.cuda.synchronize()\n",
    }.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    identity = ["-c", "user.name=n", "-c", "user.email=n@example.org"]
    for command in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-qm", "one"]):
        assert call("git", *command, cwd=tmp_path).returncode == 0
    assert call(installed / "gate", "init", cwd=tmp_path).returncode == 0
    clean = call(installed / "gate", "run", cwd=tmp_path)
    assert clean.returncode == 0, clean.stdout + clean.stderr
    (package / "core/runner.py").write_text("import torch\n\n\ndef step(platform):\n    torch.cuda.synchronize()\n")
    dirty = call(installed / "gate", "run", cwd=tmp_path)
    assert dirty.returncode == 1, dirty.stdout + dirty.stderr
    assert "engine/core/runner.py:5:5: device-leakage/attribute" in dirty.stdout


def test_engine_command_says_which_extra_is_missing(installed: Path, tmp_path: Path) -> None:
    result = call(installed / "engine", "generate", "hello", cwd=tmp_path)
    assert result.returncode == 2
    assert "engine" in result.stderr and "pip install" in result.stderr
