"""The `engine` command, as a person runs it."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import tiny_models as tiny
from click.testing import CliRunner, Result

from engine.cli import cli, main
from engine.errors import EngineError
from engine.llm import LLM
from engine.sampling.params import SamplingParams

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def test_models_lists_every_family() -> None:
    result = run("models")
    assert result.exit_code == 0
    for architecture in ("LlamaForCausalLM", "Qwen3ForCausalLM", "OPTForCausalLM", "Gemma3ForCausalLM"):
        assert architecture in result.output.splitlines()


def test_doctor_names_platforms_ops_and_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGINE_LOG_LEVL", "info")
    result = run("doctor")
    assert result.exit_code == 0
    assert "platform cpu: usable (auto)" in result.output
    assert "op linear: onednn, else portable" in result.output
    assert "ENGINE_LOG_LEVEL=warning" in result.output
    assert "ENGINE_LOG_LEVL is not a variable of the engine and has no effect; did you mean ENGINE_LOG_LEVEL?" in (
        result.output
    )


def test_a_checkpoint_without_a_tokenizer_is_refused_by_name() -> None:
    result = run("generate", "hello", "--model", tiny.folder("llama"))
    assert isinstance(result.exception, EngineError)
    assert f"{tiny.folder('llama')} holds no tokenizer" in str(result.exception)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--model", "/no/such/folder"], "/no/such/folder is neither a folder nor a .gguf file"),
        (["--kv-cache-memory", "lots"], "'lots' is not a size"),
        (["--platform", "abacus"], "there is no platform 'abacus'; there are cuda, rocm, cpu"),
        (["--attention-backend", "abacus"], "op 'paged_attention' cannot use 'abacus': no such provider"),
        (["--max-model-len", "4096"], "max_model_len is 4096, but the checkpoint's max_position_embeddings is 512"),
        (["--temperature", "-1"], "temperature is -1.0; it must be 0 or more"),
    ],
)
def test_settings_that_cannot_be_honoured(arguments: list[str], expected: str) -> None:
    result = run("generate", "hello", "--model", tiny.chat_folder(), *arguments)
    assert result.exit_code != 0
    assert expected in result.output + str(result.exception)


def test_generate_streams_the_same_text_as_the_library() -> None:
    expected = LLM(tiny.chat_folder(), dtype="float32").chat(
        [{"role": "user", "content": "hello"}], SamplingParams(temperature=0, max_tokens=12)
    )
    settings = ("--model", tiny.chat_folder(), "--dtype", "float32", "--max-tokens", "12")
    result = run("generate", "hello", *settings, "--show-config")
    assert result.exit_code == 0
    assert result.stdout == expected.outputs[0].text + "\n"
    shown = json.loads(result.stderr)
    assert shown["effective"]["dtype"] == "float32"
    assert shown["effective"]["ops"]["linear"] == "onednn"
    assert shown["environment"]["ENGINE_STRICT_ENV"] is True
    assert run("generate", "hello", *settings, "--raw").stdout != result.stdout


def test_chat_answers_each_line_with_all_that_came_before() -> None:
    settings = ["--model", tiny.chat_folder(), "--dtype", "float32", "--max-tokens", "6"]
    result = CliRunner().invoke(cli, ["chat", *settings, "--system", "be brief"], input="one\n\ntwo\n")
    assert result.exit_code == 0
    llm = LLM(tiny.chat_folder(), dtype="float32")
    messages = [{"role": "system", "content": "be brief"}]
    expected = ""
    for line in ("one", "two"):
        messages.append({"role": "user", "content": line})
        answer = llm.chat(messages, SamplingParams(temperature=0, max_tokens=6)).outputs[0].text
        messages.append({"role": "assistant", "content": answer})
        expected += answer + "\n"
    assert result.stdout == expected


def test_an_unknown_variable_is_refused_when_strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGINE_PLATFORMS", "cpu")
    monkeypatch.setenv("ENGINE_STRICT_ENV", "0")
    arguments = ("generate", "hello", "--model", tiny.chat_folder(), "--max-tokens", "2")
    assert run(*arguments).exit_code == 0
    refused = run(*arguments, "--strict-env")
    assert "ENGINE_PLATFORMS is not a variable of the engine" in str(refused.exception)
    assert "did you mean ENGINE_PLATFORM?" in str(refused.exception)


def test_without_torch_the_extra_is_named(tmp_path: Path) -> None:
    script = textwrap.dedent("""
        import importlib.util, sys
        find = importlib.util.find_spec
        importlib.util.find_spec = lambda name, *rest: None if name == "torch" else find(name, *rest)
        sys.argv = ["engine", "generate", "hello"]
        from engine.cli import main
        main()
    """)
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "needs torch" in done.stderr
    assert "pip install 'gatewright[engine]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_importing_the_command_does_not_import_torch() -> None:
    code = "import sys, engine.cli; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60).returncode == 0


def test_errors_are_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["engine", "generate", "hello", "--model", "/no/such/folder"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("error: /no/such/folder is neither")
