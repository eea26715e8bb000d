"""`gate init` on trees of several shapes, and the first run after it."""

import os
import tomllib
from pathlib import Path

import pytest
from gates.repositories import Content, Git, Work
from hypothesis import given
from hypothesis import strategies as st

from gatewright.core.errors import CannotJudge
from gatewright.core.globs import compile_globs
from gatewright.core.policy import load_policies, policy_globs
from gatewright.core.snapshot import work_tree_snapshot
from gatewright.init import notes, write_policy
from gatewright.init.environment import Environment, guess_prefixes
from gatewright.init.layout import guess_layout
from gatewright.init.rooms import guess_rooms

LEAK = "import torch\n\n\ndef wait():\n    torch.cuda.synchronize()\n"
FLAT: dict[str, Content] = {
    "nano/__init__.py": "",
    "nano/engine/__init__.py": "",
    "nano/engine/runner.py": LEAK,
    "nano/layers/norm.py": "x = 1\n",
    "bench.py": LEAK,
    "README.md": "# nano\n",
}
PLATFORMS: dict[str, Content] = {
    "src/serve_all/__init__.py": "",
    "src/serve_all/core/scheduler.py": 'import os\n\nDEPTH = os.environ.get("SERVE_ALL_DEPTH", "4")\n',
    "src/serve_all/envs.py": (
        'import os\n\nMODE = os.environ.get("SERVE_ALL_MODE")\nHOST = os.environ["HOST_IP"]\n'
        'PORT = os.environ.get("SERVE_ALL_PORT")\n'
    ),
    "src/serve_all/odd/thing.py": "x = 1\n",
    "src/serve_all/platforms/cuda/stream.py": LEAK,
    "src/serve_all/platforms/rocm/stream.py": LEAK.replace("cuda", "version.hip"),
    "src/serve_all/platforms/zeta/stream.py": "x = 1\n",
    "src/serve_all/worker/cpu_worker.py": "x = 1\n",
    "src/serve_all/worker/gpu_worker.py": LEAK,
    "src/serve_all/worker/gpu_memory.py": "x = 1\n",
    "src/serve_all/third_party/copied.py": LEAK,
    "src/serve_all/core/test_scheduler.py": LEAK,
    "tests/test_all.py": LEAK,
    "docs/environment.md": "# Environment\n\n| Variable | Default |\n| --- | --- |\n"
    "| `SERVE_ALL_DEPTH` | `4` |\n| `SERVE_ALL_MODE` | |\n",
    "docs/changelog.md": "SERVE_ALL_DEPTH SERVE_ALL_MODE SERVE_ALL_PORT\n",
    ".env.example": "SERVE_ALL_DEPTH=4\n",
}
NATIVE: dict[str, Content] = {
    "src/engine/step.cpp": "#include <cuda_runtime.h>\nint step(Device d) { return d == kCUDA; }\n",
    "src/engine/queue.cpp": '#include <cstdlib>\nauto n = std::getenv("TOY_DEPTH");\n',
    "src/backend/cuda/gemm.cu": '#include <cuda_runtime.h>\nauto s = std::getenv("TOY_STREAMS");\n',
    "src/backend/metal/gemm.mm": "int gemm;\n",
    "src/backend/hiai/gemm.cpp": "int gemm;\n",
    "src/backend/common/gemm.h": "int gemm;\n",
    "include/toy/step.h": "int step;\n",
    "third_party/json/json.h": "#include <cuda_runtime.h>\n",
    "docs/design.md": "TOY_DEPTH and TOY_STREAMS are read.\n",
}
SHAPES = {"flat": FLAT, "platforms": PLATFORMS, "native": NATIVE}


def published(git: Git, files: dict[str, Content]) -> Work:
    """A clone whose origin has the same commit."""
    source = git.init("source")
    source.commit(files, "begin")
    return git.clone(source, "clone")


def policy(work: Work, name: str) -> dict[str, object]:
    return tomllib.loads((work.path / f"policy/{name}.toml").read_text("utf-8"))


@pytest.mark.parametrize("shape", SHAPES)
def test_every_glob_matches_a_file(git: Git, shape: str) -> None:
    work = published(git, SHAPES[shape])
    write_policy(work.path)
    snapshot = work_tree_snapshot(work.open())
    globs = [glob for file in load_policies(snapshot).files.values() for _, glob in policy_globs(file)]
    env = policy(work, "env-doc")
    globs += [*env["pages"], *env["code"]["exclude"]]  # type: ignore[misc, index]
    assert globs
    assert [glob for glob in globs if not any(compile_globs((glob,)).fullmatch(path) for path in snapshot.files)] == []


@pytest.mark.parametrize(
    ("shape", "path", "site"),
    [
        ("flat", "nano/layers/norm.py", LEAK),
        ("flat", "nano/new/folder.py", LEAK),
        ("flat", "nano/layers/norm.py", 'import os\n\nx = os.environ["NANO_NEW"]\n'),
        ("platforms", "src/serve_all/core/scheduler.py", LEAK),
        ("platforms", "src/serve_all/odd/thing.py", 'import os\n\nx = os.environ["SERVE_ALL_NEW"]\n'),
        ("native", "src/backend/common/gemm.h", "#include <cuda_runtime.h>\n"),
        ("native", "include/toy/step.h", 'auto n = std::getenv("TOY_NEW");\n'),
    ],
)
def test_first_run_is_green_and_one_new_site_is_red(git: Git, shape: str, path: str, site: str) -> None:
    work = published(git, SHAPES[shape])
    assert work.gate("init").returncode == 0
    first = work.gate("run")
    assert first.returncode == 0, first.stdout + first.stderr
    before = (work.path / path).read_text("utf-8") if (work.path / path).exists() else None
    work.write({path: (before or "") + site})
    second = work.gate("run")
    assert second.returncode == 1, second.stdout + second.stderr
    assert f"{path}:" in second.stdout
    work.write({path: before})
    assert work.gate("run").returncode == 0


def test_inherited_sites_are_listed_by_bucket(git: Git) -> None:
    work = published(git, FLAT)
    said = work.gate("init").stdout
    assert "1 sites in the shared layers today (torch_cuda 1)" in said
    listed = work.gate("run").stdout
    assert "inherited (1)" in listed and "device-leakage/attribute (torch_cuda)" in listed


def test_later_pushes_are_judged_against_the_committed_policy(git: Git) -> None:
    work = published(git, FLAT)
    work.gate("init")
    work.commit(message="policy")
    work.git("push", "-q", "origin", "HEAD:refs/heads/topic")
    assert work.gate("run").returncode == 0
    work.commit({"nano/layers/norm.py": LEAK}, "leak")
    assert work.gate("run", "--commit", "HEAD").returncode == 1


def test_layers_rooms_tests_and_vendored_code_are_told_apart(git: Git) -> None:
    work = published(git, PLATFORMS)
    said = "\n".join(write_policy(work.path))
    device = policy(work, "device-leakage")
    assert device["shared"] == ["src/serve_all/**/*.py"]
    assert device["rooms"] == {
        "cpu": ["src/serve_all/worker/cpu_worker.py"],
        "cuda": ["src/serve_all/platforms/cuda/**"],
        "gpu": ["src/serve_all/worker/gpu_worker.py"],
        "rocm": ["src/serve_all/platforms/rocm/**"],
        "zeta": ["src/serve_all/platforms/zeta/**"],
    }
    assert device["tests"] == ["tests/**"]
    assert device["exclude"] == ["src/serve_all/**/test_*", "src/serve_all/**/third_party/**"]
    assert "shared: not sure, these are no names of layers: src/serve_all/odd" in said
    assert "rooms: not sure, taken for rooms because they lie beside others: src/serve_all/platforms/zeta" in said


def test_native_sources_and_device_languages(git: Git) -> None:
    work = published(git, NATIVE)
    write_policy(work.path)
    device = policy(work, "device-leakage")
    assert device["shared"] == ["include/toy/**/*.h", "src/**/*.{cpp,h}"]
    assert device["rooms"] == {
        "cuda": ["src/backend/cuda/**"],
        "hiai": ["src/backend/hiai/**"],
        "metal": ["src/backend/metal/**"],
    }
    assert device["exclude"] == ["third_party/**"]


def test_environment_page_prefix_and_example_file_are_found(git: Git) -> None:
    work = published(git, PLATFORMS)
    said = "\n".join(write_policy(work.path))
    env = policy(work, "env-doc")
    assert env["prefixes"] == ["SERVE_ALL_"]
    assert env["pages"] == ["docs/environment.md"] and env["documented_by"] == "table"
    assert env["env_files"] == [".env.example"]
    assert env["minimum"] == 1
    assert "documents 2 of 3 variables in its tables" in said
    assert "not judged are 1 with other ones: HOST_IP" in said


def test_a_page_of_another_subject_must_mention_half_of_the_names(git: Git) -> None:
    work = published(git, {**NATIVE, "docs/design.md": "nothing\n", "docs/speed.md": "TOY_DEPTH and TOY_STREAMS\n"})
    write_policy(work.path)
    assert policy(work, "env-doc")["pages"] == ["docs/speed.md"]
    assert policy(work, "env-doc")["documented_by"] == "mention"
    names = "".join(f'auto x{i} = std::getenv("TOY_X{i}");\n' for i in range(4))
    work.write({"src/engine/more.cpp": names})
    write_policy(work.path, force=True)
    assert policy(work, "env-doc")["pages"] == []


@pytest.mark.parametrize("page", ["docs/env_vars.md", "docs/env_vars.rst"])
def test_documentation_by_inclusion_is_found(git: Git, page: str) -> None:
    names = "".join(f'    "KIN_{name}": lambda: os.getenv("KIN_{name}"),\n' for name in ("A", "B", "C", "D"))
    registry = f"import os\n\n# begin-env-vars-definition\nvariables = {{\n{names}}}\n# end-env-vars-definition\n"
    shown = "```python\n--8<-- kin/envs.py\n```\n" if page.endswith(".md") else ".. literalinclude:: ../kin/envs.py\n"
    work = published(git, {"kin/__init__.py": "", "kin/envs.py": registry, page: f"# Variables\n\n{shown}"})
    write_policy(work.path)
    assert policy(work, "env-doc")["include"] == [
        {
            "page": page,
            "registry": "kin/envs.py",
            "begin": "begin-env-vars-definition",
            "end": "end-env-vars-definition",
        }
    ]
    assert work.gate("run").returncode == 0
    work.write({"kin/other.py": 'import os\n\nx = os.environ["KIN_NEW"]\n'})
    assert work.gate("run").returncode == 1


def test_rooms_that_name_no_device_are_dropped(git: Git) -> None:
    work = published(git, {"one/__init__.py": LEAK, "one/cuda/__init__.py": "x = 1\n"})
    said = "\n".join(write_policy(work.path))
    assert "rooms" not in policy(work, "device-leakage")
    assert "free of device words, so none: one/cuda/**" in said


def test_existing_files_are_kept_without_force(git: Git) -> None:
    work = published(git, FLAT)
    write_policy(work.path)
    written = {path.name: path.read_bytes() for path in (work.path / "policy").iterdir()}
    assert sorted(written) == ["device-leakage.toml", "env-doc.toml", "policy.toml"]
    mine = b'shared = ["nano/engine/**"]\n[bucket]\n'
    work.write({"policy/device-leakage.toml": mine})
    said = work.gate("init").stdout
    assert "kept policy/device-leakage.toml" in said and "wrote" not in said
    assert (work.path / "policy/device-leakage.toml").read_bytes() == mine
    work.gate("init", "--force")
    assert {path.name: path.read_bytes() for path in (work.path / "policy").iterdir()} == written


def test_from_a_sub_folder_it_writes_at_the_root(git: Git) -> None:
    work = published(git, FLAT)
    assert work.gate("init", folder="nano/engine").returncode == 0
    assert (work.path / "policy/device-leakage.toml").exists()


def test_a_repository_without_sources_is_told_so(git: Git) -> None:
    work = published(git, {"README.md": "words\n"})
    said = "\n".join(write_policy(work.path))
    assert "nothing to enforce yet" in said
    assert [path.name for path in (work.path / "policy").iterdir()] == ["policy.toml"]


def test_an_obstacle_is_named(git: Git) -> None:
    work = published(git, {**FLAT, "policy": "a file\n"})
    with pytest.raises(CannotJudge, match="no regular folder"):
        write_policy(work.path)
    other = git.clone(git.root.joinpath("source").as_posix(), "other")
    other.write({"policy": None, "policy/policy.toml/x": ""})
    with pytest.raises(CannotJudge, match="no regular file"):
        write_policy(other.path)


def test_a_link_is_not_written_through(git: Git) -> None:
    work = published(git, FLAT)
    outside = work.place.root / "outside.toml"
    (work.path / "policy").mkdir()
    (work.path / "policy/policy.toml").symlink_to(outside)
    with pytest.raises(CannotJudge, match="no regular file"):
        write_policy(work.path, force=True)
    assert not outside.exists()


def test_a_write_that_fails_is_named(git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    work = published(git, FLAT)

    def full(*arguments: object, **options: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(CannotJudge, match=r"cannot write .*policy\.toml: No space left on device"):
        write_policy(work.path)


@pytest.mark.parametrize(
    ("names", "packages", "prefixes"),
    [
        (["LMD_A", "LMD_B", "LMD_C", "CUDA_HOME", "HF_TOKEN"], ["lmdeploy"], ["LMD_"]),
        (["KIN_A", "CUDA_HOME"], ["kin"], ["KIN_"]),
        (["USE_A", "USE_B", "USE_C"], ["my_pkg"], ["MY_PKG_"]),
        (["NCCL_A", "NCCL_B", "NCCL_C", "HOME"], ["kin"], ["KIN_"]),
        ([], ["kin"], ["KIN_"]),
    ],
)
def test_prefixes(names: list[str], packages: list[str], prefixes: list[str]) -> None:
    assert guess_prefixes(names, packages) == prefixes


WORD = st.sampled_from(
    ["src", "core", "cuda", "rocm", "backends", "gpu", "tests", "third_party", "odd", "a{b}", "q?", "zé", "csrc", "x*"]
)
NAME = st.sampled_from(
    ["__init__.py", "cuda.py", "gpu_worker.py", "cpu_worker.py", "a.cpp", "k.cu", "test_a.py", "b_test.cc", "é.h"]
)


@given(st.lists(st.tuples(st.lists(WORD, max_size=4), NAME), min_size=1, max_size=12))
def test_globs_of_any_tree_match_and_rooms_are_exact(tree: list[tuple[list[str], str]]) -> None:
    paths = sorted({"/".join([*folders, name]) for folders, name in tree})
    layout, packages = guess_layout(paths)
    rooms = guess_rooms(packages)
    by_device = [glob for globs in rooms.globs.values() for glob in globs]
    for glob in [*layout.python, *layout.cfamily, *layout.exclude, *layout.tests, *layout.vendored, *by_device]:
        assert any(compile_globs((glob,)).fullmatch(path) for path in paths), glob
    matched = {path for path in packages.files if compile_globs(tuple(by_device)).fullmatch(path)}
    assert set(rooms.paths) <= matched


def test_paths_that_cannot_be_written_in_toml_are_left_out() -> None:
    layout, _ = guess_layout([os.fsdecode(b"bad\xff/a.py"), "good/__init__.py", "good/a.py"])
    assert layout.python == ["good/**/*.py"]
    assert Path("good") not in [Path(glob) for glob in layout.aside]


def test_what_comes_next_depends_on_whether_there_is_a_base(git: Git) -> None:
    alone = git.init("alone")
    alone.commit({"nano/core/a.py": "x = 1\n"})
    assert "once a remote's default branch has it" in alone.gate("init").stdout
    clone = git.clone(alone, "clone")
    assert "gate run --show-inherited lists what is there already" in clone.gate("init").stdout


def test_sources_that_read_no_variable_are_said_to_read_none() -> None:
    assert notes.environment(Environment([], [], []))[0] == "prefixes: not sure, the code reads no variable"
