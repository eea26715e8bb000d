"""The `gate` command. Each subcommand imports what it needs, so that a warm run starts quickly."""

import errno
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import click

from gatewright import __version__
from gatewright.core.errors import CannotJudge, GateError

FORMATS = ("text", "json", "sarif", "github", "gitlab", "rdjson", "junit")
_INTERRUPTED = 130
# Of a file without a name: the disk that standard output goes to is full or gone.
_NO_OUTPUT = (errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EDQUOT)
LANES = ("hook", "pr", "main", "schedule")


class Gate(click.Group):
    """Turns every ending without a verdict into one message and its exit code; never a bare traceback."""

    # Declared beside what they do, and imported only where they are asked for.
    elsewhere: ClassVar = {"mutate": "gatewright.mutation.command"}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *self.elsewhere])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.elsewhere:
            return super().get_command(ctx, cmd_name)
        command: click.Command = getattr(importlib.import_module(self.elsewhere[cmd_name]), cmd_name)
        return command

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        with _endings():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:
        with _endings():
            return super().invoke(ctx)


@contextmanager
def _endings() -> Iterator[None]:
    try:
        yield
    except GateError as error:
        _say(error.message, error.help)
        raise SystemExit(error.exit_code) from None
    except (click.ClickException, click.exceptions.Exit):
        raise
    except (KeyboardInterrupt, click.Abort):
        raise SystemExit(_INTERRUPTED) from None
    except BrokenPipeError:
        # The reader of the output is gone; what is left in the buffer must not raise at exit.
        sys.stdout = None
        raise SystemExit(CannotJudge.exit_code) from None
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _NO_OUTPUT and error.filename is None:
            sys.stdout = None
            _say(f"cannot write standard output: {error.strerror}")
            raise SystemExit(CannotJudge.exit_code) from None
        import traceback

        traceback.print_exc()
        _say(f"internal error, nothing was judged: {type(error).__name__}: {error}")
        raise SystemExit(CannotJudge.exit_code) from None


def _say(message: str, help: str = "") -> None:
    """On stderr. What a judged tree brings into it begins no line and holds no control character."""
    from gatewright.reporters.escape import one_line, printable_lines

    first, *more = printable_lines(message)
    lines = [f"gate: {first}", *(f"  | {line}" for line in more)]
    lines += [f"  help: {one_line(help)}"] if help else []
    click.echo("\n".join(lines), err=True)


@click.group(cls=Gate, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gate")
@click.option("-C", "folder", type=click.Path(path_type=Path), default=Path(), help="Run as if started in this folder.")
@click.pass_context
def main(ctx: click.Context, folder: Path) -> None:
    """Repository policy checks. Exit code 0: clean, 1: findings, 2: usage or policy error, 3: could not judge."""
    try:
        ctx.obj = folder.resolve()
    except (OSError, RuntimeError) as error:
        raise CannotJudge(f"the folder {folder} cannot be found: {error}", "name an existing folder with -C") from None


@main.command()
@click.option("--staged", is_flag=True, help="Judge the index: what a commit made now would hold.")
@click.option("--commit", metavar="REV", default="", help="Judge a commit.")
@click.option("--merge-with", metavar="REF", default="", help="Judge the tree that a merge with REF would give.")
@click.option("--base", metavar="REV", default="", help="Subtract the findings of the merge base with REV.")
@click.option("--absolute", is_flag=True, help="Subtract nothing: inherited findings fail as well.")
@click.option("--lane", type=click.Choice(LANES), default="hook", show_default=True, help="Which rules run.")
@click.option("--check", "only", metavar="NAME", multiple=True, help="Run only this check (may be repeated).")
@click.option("--output-format", type=click.Choice(FORMATS), default="text", show_default=True, help="How to print.")
@click.option("--output-file", type=click.Path(path_type=Path), default=None, help="Write there instead of to stdout.")
@click.option("--show-inherited", is_flag=True, help="List what the base already had, not only its count.")
@click.option("--no-cache", is_flag=True, help="Neither read nor write the facts cache.")
@click.pass_obj
def run(folder: Path, /, **options: Any) -> None:
    """Judge the work tree, relative to the remote's default branch."""
    from gatewright.command import Options, judge

    chosen = [name for name in ("staged", "commit", "merge_with") if options[name]]
    if len(chosen) > 1:
        raise click.UsageError(f"--{chosen[0].replace('_', '-')} and --{chosen[1].replace('_', '-')} name two trees")
    for other in ("merge_with", "absolute"):
        if options["base"] and options[other]:
            raise click.UsageError(f"--base and --{other.replace('_', '-')} do not go together")
    raise SystemExit(judge(folder, Options(**options)))


@main.command(name="list")
@click.option("--output-format", type=click.Choice(("text", "json")), default="text", show_default=True)
def list_rules(output_format: str) -> None:
    """List every rule with its scope and lanes."""
    import json

    from gatewright.core.contract import check_names, load_check

    checks = [load_check(name) for name in check_names()]
    if output_format == "json":
        rows = [{"id": r.id, "summary": r.summary, "scope": r.scope, "lanes": r.lanes} for c in checks for r in c.rules]
        click.echo(json.dumps(rows, indent=2))
        return
    for check in checks:
        click.echo(f"{check.name}: {check.summary}")
        for rule in check.rules:
            lanes = "" if rule.lanes == LANES else f" [{', '.join(rule.lanes)}]"
            click.echo(f"  {rule.id:32} {rule.scope:8}{lanes} {rule.summary}{' (advisory)' if rule.advisory else ''}")


@main.command()
@click.argument("rule")
def explain(rule: str) -> None:
    """Print a rule's manual: what it finds, why, and examples that are tests."""
    from gatewright.command import manual_of

    click.echo(manual_of(rule))


@main.command()
@click.pass_obj
def audit(folder: Path) -> None:
    """Check the four rooms of every check (module, policy, manual, suite), or a foreign policy folder alone."""
    from gatewright.core.audit import audit as run_audit
    from gatewright.core.git import Repository
    from gatewright.core.snapshot import printable, work_tree_snapshot

    findings, summary = run_audit(work_tree_snapshot(Repository(folder.resolve())))
    for finding in findings:
        click.echo(f"{printable(finding.path)}: {finding.rule} {finding.message}\n  help: {finding.help}")
    click.echo(f"audit: {summary}; {len(findings)} findings")
    raise SystemExit(1 if findings else 0)


@main.group()
def hook() -> None:
    """Entry points for git hooks; they read the refs from standard input."""


@hook.command(name="pre-push")
@click.argument("remote", default="")
@click.argument("url", default="")
@click.option("--then", metavar="PROGRAM", default="", help="Hand the same input to this hook afterwards.")
@click.pass_obj
def pre_push(folder: Path, remote: str, url: str, then: str) -> None:
    """Judge what is being pushed: `local-ref local-id remote-ref remote-id` lines."""
    from gatewright.hooks import run_pre_push

    raise SystemExit(run_pre_push(folder, remote, url, _standard_input(), then))


@hook.command(name="pre-receive")
@click.option("--then", metavar="PROGRAM", default="", help="Hand the same input to this hook afterwards.")
@click.pass_obj
def pre_receive(folder: Path, then: str) -> None:
    """Judge what is being received: `old-id new-id ref` lines."""
    from gatewright.hooks import run_pre_receive

    raise SystemExit(run_pre_receive(folder, _standard_input(), then))


def _standard_input() -> bytes:
    """All of it at once; a terminal is not waited for."""
    try:
        return b"" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.buffer.read()
    except (OSError, ValueError):
        return b""


@main.command()
@click.option(
    "--hook", "hook_name", type=click.Choice(("pre-push", "pre-receive")), default="pre-push", show_default=True
)
@click.pass_obj
def install(folder: Path, hook_name: str) -> None:
    """Install the hook where git looks for it; never over another one."""
    from gatewright.hooks import install_hook

    click.echo(install_hook(folder, hook_name))


@main.command()
@click.option("--force", is_flag=True, help="Replace policy files that exist.")
@click.pass_obj
def init(folder: Path, force: bool) -> None:
    """Write a first policy/ for this repository, and say what was guessed."""
    from gatewright.init import write_policy

    for line in write_policy(folder, force=force):
        click.echo(line)


if __name__ == "__main__":
    main()
