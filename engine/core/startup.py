"""Builds an engine from its settings: platform, checkpoint, ops, model, caches."""

import logging
import secrets
from collections.abc import Mapping
from typing import Any

import msgspec
import torch

from engine import env, models, platforms
from engine.config import EngineConfig, format_bytes
from engine.core.cache_groups import group_layers
from engine.core.engine import EngineCore
from engine.core.kv_cache import KVCacheManager
from engine.core.runner import ModelRunner
from engine.core.scheduler import Scheduler
from engine.errors import ConfigError
from engine.layers.attention import AttentionShape, KVCache, block_bytes
from engine.layers.context import BuildContext
from engine.models.base import Family
from engine.ops.table import Ops, OpSpec, select
from engine.platforms.interface import Platform
from engine.weights.checkpoint import Checkpoint
from engine.weights.reader import WeightReader

logger = logging.getLogger("engine")


class Effective(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine runs with, read back from what was built."""

    platform: str
    dtype: str
    max_model_len: int
    num_blocks: int
    block_size: int
    kv_cache_bytes: int
    cache_groups: list[str]
    ops: dict[str, str]
    seed: int


class BuiltEngine(msgspec.Struct, frozen=True):
    core: EngineCore
    config: EngineConfig
    effective: Effective


def build(
    config: EngineConfig, checkpoint: Checkpoint, platform: Platform | None = None, num_tokens: int | None = None
) -> BuiltEngine:
    """An engine that is ready for requests.

    `num_tokens` is the size of the tokenizer's vocabulary: logits beyond it are never sampled. Raises
    ConfigError or CheckpointError, with the numbers and the settings that decide.
    """
    env.check(config.strict_env, logger.warning)
    platform = platform or platforms.select(config.platform)
    platform.set_num_threads(config.num_threads)
    family = models.family_of(checkpoint.config)
    shapes = family.attention(checkpoint.config)
    dtype = _dtype(config, platform)
    max_model_len = _max_model_len(config, checkpoint.config, family)
    layers = [shape.cache for shape in shapes]
    groups = group_layers(layers, config.block_size)
    page = block_bytes(layers, groups, dtype)
    cache = KVCacheManager(groups, config.kv_cache_memory // page, config.enable_prefix_caching)
    _require_room(config, cache, page, max_model_len)
    ops = _select_ops(config, platform, shapes, dtype)
    weights = WeightReader(checkpoint.source, dtype, platform.device, family.prefixes)
    with torch.inference_mode():
        model = family.build(checkpoint.config, BuildContext(weights, ops, dtype, platform.device, max_model_len))
    if weights.unused():
        logger.warning("%s holds tensors that the model does not use: %s", checkpoint.where, weights.unused())
    head_size = checkpoint.config["vocab_size"]
    pages = KVCache(layers, groups, cache.pool.num_blocks, dtype, platform.device)
    runner = ModelRunner(model, pages, groups, platform, min(head_size, num_tokens or head_size))
    scheduler = Scheduler(cache, config.max_num_batched_tokens, config.max_num_seqs)
    seed = secrets.randbits(48) if config.seed is None else config.seed
    core = EngineCore(runner, cache, scheduler, max_model_len, head_size, checkpoint.eos_token_ids, seed)
    effective = Effective(
        platform=platform.name,
        dtype=str(dtype).removeprefix("torch."),
        max_model_len=max_model_len,
        num_blocks=cache.pool.num_blocks,
        block_size=config.block_size,
        kv_cache_bytes=cache.pool.num_blocks * page,
        cache_groups=[f"{type(group).__name__}{list(group.layers)}" for group in groups],
        ops={name: choice.provider for name, choice in ops.choices.items()},
        seed=seed,
    )
    return BuiltEngine(core, config, effective)


def _dtype(config: EngineConfig, platform: Platform) -> torch.dtype:
    if config.dtype == "auto":
        return platform.preferred_dtype
    dtype: torch.dtype = getattr(torch, config.dtype)
    if dtype not in platform.supported_dtypes():
        offered = ", ".join(str(each).removeprefix("torch.") for each in platform.supported_dtypes())
        raise ConfigError(f"dtype {config.dtype} does not run usefully on platform {platform.name}; use {offered}")
    return dtype


def _max_model_len(config: EngineConfig, checkpoint: Mapping[str, Any], family: Family) -> int:
    limit = int(checkpoint["max_position_embeddings"])
    wanted = config.max_model_len
    if wanted is None:
        return limit
    if wanted > limit and not family.extensible_positions:
        raise ConfigError(
            f"max_model_len is {wanted}, but the checkpoint learned {limit} positions and has no other; "
            f"use at most {limit}"
        )
    if wanted > limit and not config.allow_long_context:
        raise ConfigError(
            f"max_model_len is {wanted}, but the checkpoint's max_position_embeddings is {limit}; "
            f"use at most {limit}, or --allow-long-context to go beyond what the model was trained for"
        )
    return wanted


def _require_room(config: EngineConfig, cache: KVCacheManager, page: int, max_model_len: int) -> None:
    """One request of full length must fit, or the oldest request could wait for ever."""
    # The null block belongs to no request.
    needed = (cache.blocks_for(max_model_len, config.max_num_batched_tokens) + 1) * page
    if config.kv_cache_memory < needed:
        raise ConfigError(
            f"one request of max_model_len {max_model_len} needs {needed} bytes ({format_bytes(needed)}) of KV cache, "
            f"but kv_cache_memory is {config.kv_cache_memory} bytes ({format_bytes(config.kv_cache_memory)}); "
            f"raise --kv-cache-memory or lower --max-model-len"
        )


def _select_ops(config: EngineConfig, platform: Platform, shapes: list[AttentionShape], dtype: torch.dtype) -> Ops:
    spec = OpSpec(
        dtype=str(dtype).removeprefix("torch."),
        block_size=config.block_size,
        head_dims=frozenset(shape.head_dim for shape in shapes),
        windows=frozenset(shape.window for shape in shapes if shape.window is not None),
        softcaps=frozenset(shape.cap for shape in shapes if shape.cap is not None),
    )
    backend = config.attention_backend
    required = {} if backend == "auto" else {"paged_attention": backend}
    ops = select(platform.providers(), spec, config.disable_ops, required)
    logger.info("attention backend: %s", ops.choices["paged_attention"].provider)
    for name, choice in ops.choices.items():
        logger.info("op %s: %s%s", name, choice.provider, f" (not {choice.rejected})" if choice.rejected else "")
    return ops
