"""The `engine` command. Imports torch only in the commands that run a model."""

import importlib.util
import logging
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from engine import env
from engine.config import EngineConfig, parse_bytes
from engine.errors import EngineError, RequestError

if TYPE_CHECKING:
    from engine.llm import LLM

USAGE_ERROR = 2
FAILED = 1

_NEEDED = ("torch", "safetensors", "tokenizers", "jinja2")


class _Bytes(click.ParamType):  # type: ignore[type-arg]  # generic only in newer releases of click
    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return parse_bytes(value)
        except EngineError as error:
            self.fail(str(error), param, ctx)


def _engine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The settings that every command that runs a model takes."""
    defaults = EngineConfig(model="")
    options = [
        click.option("--model", help="Checkpoint folder or .gguf file. Default: the demo model, where installed."),
        click.option("--platform", default=defaults.platform, help="Platform to run on; `auto` takes the best."),
        click.option("--dtype", type=click.Choice(["auto", "float32", "bfloat16", "float16"]), default="auto"),
        click.option("--max-model-len", type=int, help="Most tokens of one request, prompt and output together."),
        click.option("--allow-long-context", is_flag=True, help="Let --max-model-len pass the checkpoint's own limit."),
        click.option("--kv-cache-memory", type=_Bytes(), default=defaults.kv_cache_memory, help="For example 512M."),
        click.option("--block-size", type=int, default=defaults.block_size, help="Tokens of one KV cache block."),
        click.option("--max-num-batched-tokens", type=int, default=defaults.max_num_batched_tokens),
        click.option("--max-num-seqs", type=int, default=defaults.max_num_seqs),
        click.option("--prefix-caching/--no-prefix-caching", "enable_prefix_caching", default=True),
        click.option("--attention-backend", default=defaults.attention_backend, help="`auto` or a provider's name."),
        click.option("--seed", type=int, help="Makes sampling repeatable; requests may have seeds of their own."),
        click.option("--strict-env", is_flag=True, help="Refuse to start while an unknown ENGINE_* name is set."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def _sampling_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The settings of one answer."""
    options = [
        click.option("--max-tokens", type=int, default=256, show_default=True, help="Most tokens of the answer."),
        click.option("--temperature", type=float, default=0.0, help="0 always takes the likeliest token."),
        click.option("--top-k", type=int, default=0, help="Sample among the k likeliest tokens; 0 among all."),
        click.option("--top-p", type=float, default=1.0, help="Sample among the likeliest that reach p together."),
        click.option("--min-p", type=float, default=0.0, help="Sample among tokens p times as likely as the best."),
        click.option("--stop", multiple=True, help="End the answer where this text appears. May be repeated."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Run language models on this machine."""


@cli.command()
@click.argument("prompt", required=False)
@_engine_options
@_sampling_options
@click.option("--raw", is_flag=True, help="Continue the prompt as it is, without the chat template.")
@click.option("--show-config", is_flag=True, help="Print every effective setting before the answer, on stderr.")
def generate(prompt: str | None, show_config: bool, raw: bool, **options: Any) -> None:
    """Answer PROMPT, or what comes on standard input, as it is written."""
    text = sys.stdin.read() if prompt is None else prompt
    llm = _load(options)
    if show_config:
        _print_config(llm)
    _stream(llm, _prompt_ids(llm, text, raw), options)


@cli.command()
@_engine_options
@_sampling_options
@click.option("--system", help="What the model is told before the conversation.")
def chat(system: str | None, **options: Any) -> None:
    """Hold a conversation: each line of standard input is a message, until it ends."""
    llm = _load(options)
    if llm.tokenizer is None or llm.tokenizer.chat_template is None:
        raise RequestError("the checkpoint has no chat template; use `engine generate`")
    messages = [{"role": "system", "content": system}] if system else []
    asked = sys.stdin.isatty()
    while True:
        if asked:
            click.echo("> ", nl=False, err=True)
        line = sys.stdin.readline()
        if not line:
            return
        if line.strip():
            messages.append({"role": "user", "content": line.strip()})
            answer = _stream(llm, llm.tokenizer.encode_chat(messages), options)
            messages.append({"role": "assistant", "content": answer})


@cli.command()
def models() -> None:
    """List the model families, and the demo model where it is installed."""
    from engine.models import ARCHITECTURES
    from engine.weights.demo import PACKAGE, demo_model

    for architecture in sorted(ARCHITECTURES):
        click.echo(architecture)
    path = demo_model()
    click.echo(f"demo: {path}" if path else f"demo: not installed ({PACKAGE}, extra `demo`)")


@cli.command()
def doctor() -> None:
    """Say what this machine offers, what would be used, and what is set but has no effect."""
    _require_engine_extra()
    import torch

    from engine import platforms
    from engine.weights.demo import demo_model

    click.echo(f"torch {torch.__version__}")
    chosen = platforms.select()
    for name in platforms.names():
        reason = platforms.find(name).unavailable()
        click.echo(f"platform {name}: {reason or 'usable'}{' (auto)' if name == chosen.name else ''}")
    for key, value in chosen.describe().items():
        click.echo(f"  {key}: {value}")
    dtypes = ", ".join(str(dtype).removeprefix("torch.") for dtype in chosen.supported_dtypes())
    click.echo(f"  dtypes: {dtypes}")
    for provider in chosen.providers():
        click.echo(f"  op {provider.op}: {provider.name}, else portable")
    click.echo(f"demo model: {demo_model() or 'not installed (extra `demo`)'}")
    for name, value in env.effective().items():
        click.echo(f"{name}={value}")
    for sentence in env.complaints():
        click.echo(f"warning: {sentence}")


def _load(options: dict[str, Any]) -> "LLM":
    _require_engine_extra()
    from engine.llm import LLM

    settings = {name: options[name] for name in EngineConfig.__struct_fields__ if name in options}
    return LLM(**settings)


def _stream(llm: "LLM", prompt: str | list[int], options: dict[str, Any]) -> str:
    """Write the answer as it comes; returns it."""
    from engine.sampling.params import SamplingParams

    names = ("max_tokens", "temperature", "top_k", "top_p", "min_p", "stop")
    params = SamplingParams(**{name: options[name] for name in names})
    answer = ""
    for piece in llm.stream(prompt, params):
        answer += piece
        click.echo(piece, nl=False)
        sys.stdout.flush()
    click.echo()
    return answer


def _prompt_ids(llm: "LLM", text: str, raw: bool) -> str | list[int]:
    tokenizer = llm.tokenizer
    if raw or tokenizer is None or tokenizer.chat_template is None:
        return text
    return tokenizer.encode_chat([{"role": "user", "content": text}])


def _print_config(llm: "LLM") -> None:
    import json

    variables = env.effective()
    click.echo(json.dumps({**llm.config(), "environment": variables}, indent=2, default=list), err=True)


def _require_engine_extra() -> None:
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        click.echo(
            f"error: running a model needs {', '.join(missing)}, which the base install leaves out; "
            "install the extra: pip install 'gatewright[engine]'",
            err=True,
        )
        raise SystemExit(USAGE_ERROR)


def main() -> None:
    """Entry point: errors that the engine raises on purpose are one line on stderr."""
    try:
        logging.basicConfig(
            level=env.LOG_LEVEL.value().upper(), format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr
        )
        cli()
    except EngineError as error:
        click.echo(f"error: {error}", err=True)
        raise SystemExit(FAILED) from None


if __name__ == "__main__":
    main()
