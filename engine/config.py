"""The validated settings of one engine. Nothing else reads flags or environment variables."""

import re
from typing import Literal

import msgspec

from engine import env
from engine.errors import ConfigError

Dtype = Literal["auto", "float32", "bfloat16", "float16"]

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class EngineConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller asked for.

    `kv_cache_memory` is in bytes and is all that the KV cache may take. `block_size` is in tokens.
    `max_num_batched_tokens` is the token budget of one step, `max_num_seqs` how many sequences may
    hold blocks at once. `max_model_len` None means what the checkpoint's configuration states.
    """

    model: str
    platform: str = "auto"
    dtype: Dtype = "auto"
    max_model_len: int | None = None
    # Lets `max_model_len` pass the checkpoint's own limit where positions are rotary.
    allow_long_context: bool = False
    kv_cache_memory: int = 2**30
    block_size: int = 16
    max_num_batched_tokens: int = 512
    max_num_seqs: int = 64
    enable_prefix_caching: bool = True
    attention_backend: str = "auto"
    seed: int | None = None
    strict_env: bool = False
    # 0 leaves the choice to torch.
    num_threads: int = 0
    disable_ops: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("kv_cache_memory", "block_size", "max_num_batched_tokens", "max_num_seqs"):
            value = getattr(self, name)
            if value < 1:
                raise ConfigError(f"{name} is {value}; it must be at least 1")
        if self.max_model_len is not None and self.max_model_len < 2:
            raise ConfigError(f"max_model_len is {self.max_model_len}; one prompt token and one output need 2")

    def resolved(self) -> "EngineConfig":
        """With the environment's values where the caller left the choice open."""
        platform = env.PLATFORM.value() if self.platform == "auto" else self.platform
        return msgspec.structs.replace(
            self,
            platform=platform,
            strict_env=self.strict_env or env.STRICT_ENV.value(),
            num_threads=self.num_threads or env.NUM_THREADS.value(),
            disable_ops=tuple(dict.fromkeys((*self.disable_ops, *env.DISABLE_OPS.value()))),
        )


def parse_bytes(text: str) -> int:
    """Bytes from a number with an optional binary unit: `512M`, `1.5G`, `268435456`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if match is None:
        raise ConfigError(f"{text!r} is not a size; write bytes or a number with K, M, G or T, for example 512M")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def format_bytes(count: float) -> str:
    """The number of bytes as a person reads it."""
    if count < 1024:
        return f"{count:.0f} B"
    for unit in ("KiB", "MiB"):
        count /= 1024
        if count < 1024:
            return f"{count:.1f} {unit}"
    return f"{count / 1024:.1f} GiB"
