"""Runs requests through a core engine built on a tiny model, and looks inside it after every step."""

from collections.abc import Callable, Sequence
from typing import Any

import tiny_models as tiny

from engine.config import EngineConfig
from engine.core.block_pool import NULL_BLOCK
from engine.core.engine import EngineCore, SequenceUpdate
from engine.core.startup import BuiltEngine, build
from engine.platforms.interface import Platform
from engine.sampling.params import SamplingParams
from engine.weights.checkpoint import open_checkpoint

GREEDY = SamplingParams(temperature=0, max_tokens=24)


def tiny_engine(family: str = "llama", platform: Platform | None = None, **settings: Any) -> BuiltEngine:
    """An engine in float32 with a megabyte or two of KV cache."""
    folder = tiny.folder(family)
    defaults = {"dtype": "float32", "kv_cache_memory": 2**22, "seed": 0, "max_model_len": 256}
    config = EngineConfig(model=folder, **{**defaults, **settings})
    return build(config, open_checkpoint(folder), platform)


def memory_for(family: str, tokens: int, **settings: Any) -> int:
    """Bytes of KV cache in which one request of `tokens` just fits."""
    built = tiny_engine(family, **{**settings, "max_model_len": tokens})
    cache = built.core.cache
    page = built.effective.kv_cache_bytes // built.effective.num_blocks
    return (cache.blocks_for(tokens, built.config.max_num_batched_tokens) + 1) * page


def collect(core: EngineCore, watch: bool = True) -> dict[tuple[str, int], list[SequenceUpdate]]:
    """Step until nothing is left to do; updates by request and choice."""
    updates: dict[tuple[str, int], list[SequenceUpdate]] = {}
    for _ in range(5000):
        if not core.has_work:
            return updates
        for update in core.step():
            updates.setdefault((update.request_id, update.index), []).append(update)
        if watch:
            check_invariants(core)
    raise AssertionError("the engine makes no progress")


def step_until(core: EngineCore, reached: Callable[[], bool]) -> None:
    """Step until something holds."""
    for _ in range(5000):
        if reached():
            return
        assert core.has_work, "the engine has nothing left to do"
        core.step()
    raise AssertionError("the engine makes no progress")


def generate(
    core: EngineCore, prompts: Sequence[list[int]], params: SamplingParams | Sequence[SamplingParams] = GREEDY
) -> list[list[int]]:
    """Tokens of each prompt's first choice, all served together."""
    each = [params] * len(prompts) if isinstance(params, SamplingParams) else params
    start = core._num_added
    for index, (prompt, own) in enumerate(zip(prompts, each, strict=True)):
        core.add_request(f"{start}-{index}", prompt, own)
    updates = collect(core)
    return [tokens(updates[f"{start}-{index}", 0]) for index in range(len(prompts))]


def tokens(updates: Sequence[SequenceUpdate]) -> list[int]:
    return [update.token_id for update in updates if update.token_id is not None]


def check_invariants(core: EngineCore) -> None:
    """Blocks are counted right, none is lost, none is written by two sequences."""
    pool = core.cache.pool
    holders = [0] * pool.num_blocks
    writers: dict[int, object] = {}
    for sequence in (*core.scheduler.running, *core.scheduler.waiting):
        for group, table in zip(core.cache.groups, sequence.tables, strict=False):
            for index, block in enumerate(table):
                if block == NULL_BLOCK:
                    continue
                holders[block] += 1
                if (index + 1) * group.block_size > sequence.num_computed:
                    assert block not in writers, f"{sequence} and {writers[block]} both write block {block}"
                    writers[block] = sequence
    assert holders == pool.refs
    assert all(pool.refs[block] == 1 for block in writers)
    free = set(pool._free)
    assert free == {block for block in range(1, pool.num_blocks) if pool.refs[block] == 0}
    assert all(sequence.tables == [] for sequence in core.scheduler.waiting)


def assert_idle(core: EngineCore) -> None:
    """Nothing runs and every block is free."""
    assert not core.has_work
    assert not core.requests
    assert core.cache.pool.num_free == core.cache.pool.num_blocks - 1
