"""What `gate run` and `gate explain` do, apart from parsing their command line."""

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from gatewright.core.cache import NAME, Cache
from gatewright.core.change import Change, change_of_commit, change_of_work_tree
from gatewright.core.contract import Lane, check_names, load_check
from gatewright.core.errors import CannotJudge, PolicyError
from gatewright.core.git import Repository
from gatewright.core.policy import CORE, FOLDER, is_linked, policy_names
from gatewright.core.report import Report
from gatewright.core.runner import run
from gatewright.reporters.terminal import Progress, use_colour, write


class Options(msgspec.Struct, kw_only=True):
    """The options of `gate run`, named as on its command line."""

    staged: bool = False
    commit: str = ""
    merge_with: str = ""
    base: str = ""
    absolute: bool = False
    lane: Lane = "hook"
    only: Sequence[str] = ()
    output_format: str = "text"
    output_file: Path | None = None
    show_inherited: bool = False
    no_cache: bool = False


def judge(folder: Path, options: Options) -> int:
    """Judge what the options name, print the report, return the exit code."""
    started = time.perf_counter()
    unknown = [name for name in options.only if name not in check_names()]
    if unknown:
        raise PolicyError(f"there is no check named {unknown[0]!r}", f"the checks are: {', '.join(check_names())}")
    repository = Repository(folder.resolve())
    change = _change(repository, options)
    if not has_policy(change):
        if f"{FOLDER}{CORE}.toml" in change.head.entries:
            checks = ", ".join(name for name in check_names() if name != CORE)
            raise PolicyError(
                f"{FOLDER}{CORE}.toml alone switches no check on: nothing is enforced",
                f"write {FOLDER}NAME.toml for a check; there are: {checks}",
            )
        raise PolicyError(
            f"no {FOLDER}*.toml in the {change.head.label}: nothing is enforced", "gate init writes a first one"
        )
    named = {name for s in (change.head, change.base) if s is not None for name in policy_names(s)}
    absent = [name for name in options.only if name not in named]
    if absent:
        raise PolicyError(f"no policy/{absent[0]}.toml in the {change.head.label}", "write it, or name another check")
    cache = open_cache(repository, use=not options.no_cache)
    progress = Progress()
    report = run(
        [change], cache, lane=options.lane, absolute=options.absolute, only=options.only, progress=progress.update
    )
    progress.close()
    cache.close()
    report.seconds = time.perf_counter() - started
    publish(report, options)
    return report.exit_code


def _change(repository: Repository, options: Options) -> Change:
    if options.merge_with:
        from gatewright.core.merge import change_of_merge

        return change_of_merge(repository, options.merge_with)
    if options.commit:
        return change_of_commit(repository, options.commit, options.base, absolute=options.absolute)
    return change_of_work_tree(repository, options.base, staged=options.staged, absolute=options.absolute)


def has_policy(change: Change) -> bool:
    """Whether one of its trees names a check. A tree that lost its policy is judged by its base's."""
    return any(policy_names(s) != [CORE] or is_linked(s) for s in (change.head, change.base) if s is not None)


def open_cache(repository: Repository, *, use: bool = True) -> Cache:
    return Cache(repository.common_dir / NAME if use else None)


def publish(report: Report, options: Options) -> None:
    """Write the report in its format to stdout or a file."""
    from gatewright.reporters import load

    if sys.stdout is None and options.output_file is None:
        raise CannotJudge("standard output is closed", "name a file with --output-file")
    if options.output_format == "text":
        from gatewright.reporters import text

        colour = options.output_file is None and use_colour(sys.stdout, os.environ)
        output = text.render(report, colour=colour, show_inherited=options.show_inherited)
    else:
        output = load(options.output_format).render(report)
    try:
        if options.output_file is not None:
            options.output_file.write_text(output, encoding="utf-8")
        else:
            write(output, sys.stdout, data=options.output_format != "text")
    except BrokenPipeError:
        raise
    except OSError as error:
        place = options.output_file or "standard output"
        raise CannotJudge(f"cannot write {place}: {error.strerror}", "name another file with --output-file") from None
    if options.output_format == "github":
        from gatewright.reporters import github

        note = github.append_job_summary(report, os.environ)
        if note:
            print(f"gate: {note}", file=sys.stderr)


def manual_of(rule: str) -> str:
    """The manual of a rule (`check/rule`) or of a whole check. Raises PolicyError for an unknown name."""
    from gatewright.core.manual import page_path, sections

    name = rule.partition("/")[0]
    if name not in check_names():
        raise PolicyError(f"there is no check named {name!r}", f"the checks are: {', '.join(check_names())}")
    text = page_path(name).read_text(encoding="utf-8")
    if "/" not in rule:
        return text.rstrip()
    for section in sections(text):
        if section.rule == rule:
            return section.text.rstrip()
    known = ", ".join(r.id for r in load_check(name).rules)
    raise PolicyError(f"the check {name} has no rule {rule!r}", f"its rules are: {known}")
