"""Which files a target names, and which suites reach them."""

from pathlib import Path

import pytest
from gates.small_package import Small

from gatewright.core.errors import PolicyError
from gatewright.mutation.project import Project, reaching_suites, stands_on, target_files

CHECK = """from gatewright.extractors.words_site import Site
from gatewright.core.finding import Finding

EXTRACTOR = "gatewright.extractors.words:extract"
BY_LANGUAGE = f"gatewright.extractors.words_in_{language}:extract"
"""
FILES = {
    "scripts/gatewright/checks/__init__.py": "",
    "scripts/gatewright/checks/words.py": CHECK,
    "scripts/gatewright/extractors/__init__.py": "",
    "scripts/gatewright/extractors/words.py": "def extract():\n    from gatewright.readers.text import read\n",
    "scripts/gatewright/extractors/words_site.py": "class Site: ...\n",
    "scripts/gatewright/extractors/words_in_c.py": "",
    "scripts/gatewright/extractors/other.py": "",
    "scripts/gatewright/readers/__init__.py": "",
    "scripts/gatewright/readers/text.py": "",
    "scripts/gatewright/core/finding.py": "",
    "scripts/gatewright/core/load.py": """import importlib


def load(name):
    return importlib.import_module(f"gatewright.checks.{name}")
""",
    "scripts/gatewright/command.py": "",
    "policy/words.toml": "limit = 1\n",
    "tests/gates/helper.py": "from gatewright.core.load import load\n",
    "tests/gates/test_words.py": "from gatewright.checks.words import EXTRACTOR\n",
    "tests/gates/test_load.py": "from gates import helper\n",
    "tests/gates/test_finding.py": "import gatewright.core.finding\n",
    "tests/gates/deeper/conftest.py": "import gatewright.readers.text\n",
    "tests/gates/deeper/test_nothing.py": "",
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Small(tmp_path / "small", FILES).project


def names(paths: list[str]) -> list[str]:
    return [path.rpartition("gatewright/")[2] for path in paths]


def test_a_check_stands_on_what_it_imports_or_names_in_a_string_but_not_on_the_core(project: Project) -> None:
    assert set(names(stands_on(project, "scripts/gatewright/checks/words.py"))) == {
        "checks/words.py",
        "extractors/words.py",
        "extractors/words_in_c.py",
        "extractors/words_site.py",
        "readers/text.py",
    }


def test_targets_are_checks_packages_and_paths(project: Project) -> None:
    assert "policy/words.toml" in target_files(project, ["words"])["words"]
    assert names(target_files(project, ["core"])["core"]) == ["core/__init__.py", "core/finding.py", "core/load.py"]
    path = "scripts/gatewright/readers/text.py"
    assert target_files(project, [path]) == {path: [path]}
    assert names(target_files(project, ["commands"])["commands"]) == ["__init__.py", "command.py"]
    with pytest.raises(PolicyError, match="nothing to mutate is named 'sparks'") as error:
        target_files(project, ["sparks"])
    assert error.value.help == "there are: checks, commands, core, extractors, readers, words"


def test_without_a_target_everything_is_mutated_and_no_file_twice(project: Project) -> None:
    targets = target_files(project, [])
    files = [path for paths in targets.values() for path in paths]
    assert sorted(files) == sorted([*project.modules(), "policy/words.toml"])
    assert len(set(files)) == len(files)
    assert "readers/text.py" in names(targets["readers"]), "a reader counts as one, whoever stands on it"
    assert names(targets["extractors"]) == ["extractors/__init__.py", "extractors/other.py"]


@pytest.mark.parametrize(
    ("mutated", "suites"),
    [
        ("checks/words.py", ["test_load.py", "test_words.py"]),
        ("core/finding.py", ["test_finding.py", "test_load.py", "test_words.py"]),
        ("core/load.py", ["test_load.py"]),
        ("readers/text.py", ["deeper/test_nothing.py", "test_load.py", "test_words.py"]),
        ("extractors/words_in_c.py", ["test_load.py", "test_words.py"]),
        ("command.py", []),
    ],
)
def test_suites_reach_a_module_through_helpers_loaders_and_conftests(
    project: Project, mutated: str, suites: list[str]
) -> None:
    reached = reaching_suites(project, [f"scripts/gatewright/{mutated}"])
    assert [path.removeprefix("tests/gates/") for path in reached] == suites


def test_any_suite_may_read_a_policy(project: Project) -> None:
    assert reaching_suites(project, ["policy/words.toml"]) == project.suite_files()


def test_module_names(project: Project) -> None:
    assert project.module_name("scripts/gatewright/core/load.py") == "gatewright.core.load"
    assert project.module_name("scripts/gatewright/core/__init__.py") == "gatewright.core"
