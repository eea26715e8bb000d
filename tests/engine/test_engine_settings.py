"""Settings, environment variables, platforms."""

from typing import Any

import engine_harness as harness
import pytest

from engine import env, platforms
from engine.config import EngineConfig, format_bytes, parse_bytes
from engine.errors import ConfigError
from engine.llm import LLM
from engine.platforms.interface import Platform


def test_names_that_have_no_effect_are_told_with_what_to_use_instead() -> None:
    environ = {"ENGINE_LOG_LEVL": "1", "ENGINE_XYZZY": "1", "ENGINE_OLD": "1", "ENGINE_LOG_LEVEL": "info", "HOME": "/"}
    assert env.complaints(environ, {"ENGINE_OLD": "--new"}) == [
        "ENGINE_LOG_LEVL is not a variable of the engine and has no effect; did you mean ENGINE_LOG_LEVEL?",
        "ENGINE_OLD was removed and has no effect; use --new",
        "ENGINE_XYZZY is not a variable of the engine and has no effect; `engine doctor` lists the names that are read",
    ]


def test_an_unknown_name_warns_or_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    warnings: list[str] = []
    env.check(True, warnings.append)
    monkeypatch.setenv("ENGINE_XYZZY", "1")
    env.check(False, warnings.append)
    assert len(warnings) == 1 and warnings[0].startswith("ENGINE_XYZZY ")
    with pytest.raises(ConfigError, match=r"ENGINE_XYZZY .*without --strict-env"):
        env.check(True, warnings.append)
    with pytest.raises(ConfigError, match="ENGINE_XYZZY"):
        harness.tiny_engine(strict_env=True)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ENGINE_STRICT_ENV", "yes"),
        ("ENGINE_NUM_THREADS", "-1"),
        ("ENGINE_NUM_THREADS", "two"),
        ("ENGINE_LOG_LEVEL", "x"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_its_name(
    name: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(ConfigError, match=f"^{name}='{text}': "):
        env.REGISTRY[name].value()


def test_every_variable_has_a_meaning_and_a_default_that_parses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ENGINE_STRICT_ENV")
    assert set(env.effective()) == set(env.REGISTRY)
    for variable in env.REGISTRY.values():
        assert variable.name.startswith(env.PREFIX)
        assert variable.meaning.endswith(".")
        assert variable.value() == variable.parse(variable.default)


def test_flags_win_over_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGINE_PLATFORM", "cuda")
    monkeypatch.setenv("ENGINE_DISABLE_OPS", "sdpa, onednn")
    monkeypatch.setenv("ENGINE_NUM_THREADS", "3")
    resolved = EngineConfig(model="m", disable_ops=("onednn",), num_threads=1).resolved()
    assert (resolved.platform, resolved.disable_ops, resolved.num_threads) == ("cuda", ("onednn", "sdpa"), 1)
    assert EngineConfig(model="m", platform="cpu").resolved().platform == "cpu"
    assert EngineConfig(model="m").resolved().num_threads == 3


@pytest.mark.parametrize(
    ("text", "count"), [("1", 1), ("2K", 2048), ("1.5M", 3 * 2**19), ("1GiB", 2**30), ("3 mb", 3 * 2**20)]
)
def test_sizes(text: str, count: int) -> None:
    assert parse_bytes(text) == count


def test_sizes_are_shown_as_people_write_them() -> None:
    assert [format_bytes(count) for count in (5, 2048, 3 * 2**19, 2**30)] == ["5 B", "2.0 KiB", "1.5 MiB", "1.0 GiB"]
    with pytest.raises(ConfigError, match="'12Q' is not a size"):
        parse_bytes("12Q")


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"block_size": 0}, "block_size is 0"),
        ({"kv_cache_memory": -1}, "kv_cache_memory is -1"),
        ({"max_model_len": 1}, "max_model_len is 1"),
        ({"colour": "red"}, "settings are model, platform"),
    ],
)
def test_impossible_settings_are_refused_by_name(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        LLM("nowhere", **settings)


def test_platforms_are_found_and_say_why_they_cannot_be_used() -> None:
    assert platforms.names() == ["cuda", "rocm", "cpu"]
    assert platforms.select("cpu").unavailable() is None
    for name in platforms.names():
        reason = platforms.find(name).unavailable()
        if reason:
            with pytest.raises(ConfigError, match=f"platform '{name}' is not usable here: "):
                platforms.select(name)
    usable = [name for name in platforms.names() if platforms.find(name).unavailable() is None]
    assert platforms.select().name == usable[0]


def test_a_dtype_the_platform_does_not_run_is_refused_with_those_it_does() -> None:
    with pytest.raises(ConfigError, match=r"dtype float16 does not run usefully on platform cpu; use .*float32"):
        harness.tiny_engine(platform=platforms.find("cpu"), dtype="float16")


def test_a_bare_platform_has_safe_defaults() -> None:
    bare = Platform()
    assert not bare.supports_async_sampled_token_readback
    assert not bare.supports_graph_capture
    assert str(bare.preferred_dtype) == "torch.float32"
    assert list(bare.providers()) == []
