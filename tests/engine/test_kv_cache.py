"""Blocks, cache groups and the prefix cache."""

import engine_harness as harness
import pytest
import tiny_models as tiny
from hypothesis import given
from hypothesis import strategies as st

from engine.core.block_pool import NULL_BLOCK, BlockPool
from engine.core.cache_groups import CacheGroup, LayerCache, SlidingGroup, group_layers
from engine.core.prefix_keys import BlockKey, PrefixKeys
from engine.sampling.params import SamplingParams


def chain(keys: PrefixKeys, count: int) -> list[BlockKey]:
    result: list[BlockKey] = []
    for index in range(count):
        result.append(keys.intern(result[-1] if result else None, (index,)))
    return result


def test_keys_are_equal_exactly_when_everything_before_them_is() -> None:
    keys = PrefixKeys()
    first = keys.intern(None, (1, 2))
    assert keys.intern(None, (1, 2)) is first
    second = keys.intern(first, (3, 4))
    different = {first, second, keys.intern(None, (3, 4)), keys.intern(None, (1, 2), "salt"), keys.intern(None, (2, 1))}
    assert len(different) == 5


def test_hash_collisions_cannot_serve_foreign_content() -> None:
    class Colliding(int):
        def __hash__(self) -> int:
            return 0

    keys = PrefixKeys()
    assert keys.intern(None, (Colliding(1),)) is not keys.intern(None, (Colliding(2),))


def test_keys_that_nothing_uses_are_forgotten() -> None:
    keys = PrefixKeys()
    kept = chain(keys, 3)
    assert len(keys._keys) == 3
    del kept[2]
    assert len(keys._keys) == 2
    kept.clear()
    assert len(keys._keys) == 0


def test_the_pool_takes_the_least_recently_used_block_and_keeps_content_until_then() -> None:
    pool, (a, b, c) = BlockPool(4), chain(PrefixKeys(), 3)
    blocks = pool.allocate(3)
    assert blocks == [1, 2, 3]
    for key, block in zip((a, b, c), blocks, strict=True):
        pool.remember(0, key, block)
    pool.release([3, 2, 1])
    assert pool.num_free == 3
    pool.share([3])
    assert pool.lookup(0, c) == 3
    pool.release([3])
    assert pool.allocate(1) == [2]
    assert pool.lookup(0, b) is None
    assert pool.lookup(0, a) == 1
    assert pool.lookup(1, a) is None


def test_free_blocks_without_content_are_taken_first() -> None:
    pool, (key,) = BlockPool(3), chain(PrefixKeys(), 1)
    with_content, without = pool.allocate(2)
    pool.remember(0, key, with_content)
    pool.release([with_content, without])
    assert pool.allocate(1) == [without]


def test_of_two_equal_blocks_one_is_found() -> None:
    pool, (key,) = BlockPool(3), chain(PrefixKeys(), 1)
    first, second = pool.allocate(2)
    pool.remember(0, key, first)
    pool.remember(0, key, second)
    pool.release([first])
    pool.allocate(1)
    assert pool.lookup(0, key) is None


def test_a_full_group_hits_the_longest_unbroken_prefix() -> None:
    keys = chain(PrefixKeys(), 4)
    cached = {keys[0]: 5, keys[1]: 6, keys[3]: 8}
    assert CacheGroup(0, [0], 4).longest_hit(keys, cached.get) == [5, 6]


def test_a_sliding_group_needs_only_its_last_window() -> None:
    keys = chain(PrefixKeys(), 5)
    group = SlidingGroup(0, [0], block_size=4, window=6)
    # Position 16 sees 11 and later: blocks 2 and 3.
    assert group.free_before(16) == 2
    assert group.longest_hit(keys[:4], {keys[2]: 7, keys[3]: 8}.get) == [NULL_BLOCK, NULL_BLOCK, 7, 8]
    assert group.longest_hit(keys, {keys[1]: 6, keys[2]: 7, keys[4]: 9}.get) == [NULL_BLOCK, 6, 7]
    assert group.longest_hit(keys, {keys[4]: 9}.get) == []


@given(
    cached=st.sets(st.integers(0, 11)),
    length=st.integers(0, 12),
    block_size=st.integers(1, 5),
    window=st.integers(1, 20),
)
def test_a_sliding_hit_is_the_longest_there_is(cached: set[int], length: int, block_size: int, window: int) -> None:
    keys = chain(PrefixKeys(), length)
    lookup = {key: index + 1 for index, key in enumerate(keys) if index in cached}.get
    group = SlidingGroup(0, [0], block_size, window)

    def valid(end: int) -> bool:
        first_seen = max(0, end * block_size - window + 1) // block_size
        return all(index in cached for index in range(first_seen, end))

    expected = max(end for end in range(length + 1) if valid(end))
    table = group.longest_hit(keys, lookup)
    assert len(table) == expected
    for index, block in enumerate(table):
        if index >= group.free_before(len(table) * block_size):
            assert block == index + 1
        else:
            assert block == NULL_BLOCK


@given(tokens=st.integers(1, 300), chunk=st.integers(1, 64), block_size=st.integers(1, 32), window=st.integers(1, 80))
def test_a_sliding_sequence_never_holds_more_than_was_reckoned(
    tokens: int, chunk: int, block_size: int, window: int
) -> None:
    group = SlidingGroup(0, [0], block_size, window)
    for start in range(0, tokens, chunk):
        end = min(start + chunk, tokens)
        held = group.table_length(end) - group.free_before(start)
        assert held <= group.blocks_needed(tokens, chunk)


def test_layers_are_grouped_by_window_into_groups_of_one_size() -> None:
    full, sliding = LayerCache(1, 8), LayerCache(1, 8, window=16)
    groups = group_layers([*([sliding] * 5), full] * 2, 16)
    assert [group.layers for group in groups] == [(0, 1), (2, 3), (4, 6), (7, 8), (9, 10), (5, 11)]
    assert [group.index for group in groups] == list(range(6))
    assert [type(group) for group in groups] == [SlidingGroup] * 5 + [CacheGroup]


def test_blocks_outside_the_window_are_given_back() -> None:
    built = harness.tiny_engine("gemma3", max_num_batched_tokens=16)
    core = built.core
    request = core.add_request("r", tiny.prompts()[3], SamplingParams(temperature=0, max_tokens=60))
    harness.step_until(core, lambda: request.sequences[0].num_output == 50)
    harness.check_invariants(core)
    sliding, full = request.sequences[0].tables[0], request.sequences[0].tables[5]
    assert len(sliding) == len(full)
    assert sum(block != NULL_BLOCK for block in sliding) <= 3
    assert NULL_BLOCK not in full


def test_a_fully_cached_prompt_recomputes_its_last_block_and_writes_no_shared_one() -> None:
    core = harness.tiny_engine().core
    prompt = tiny.prompts()[3][:64]
    harness.generate(core, [prompt])
    keys = [tensor.clone() for tensor in core.runner.cache.keys]
    request = core.add_request("r", prompt, harness.GREEDY)
    core.step()
    shared = request.sequences[0].tables[0][:3]
    assert request.sequences[0].num_cached == 48
    harness.collect(core)
    for before, after in zip(keys, core.runner.cache.keys, strict=True):
        assert (before[shared] == after[shared]).all()


def test_the_start_of_a_sequence_is_given_up_last() -> None:
    core = harness.tiny_engine().core
    prompt = tiny.prompts()[3]
    request = core.add_request("first", prompt, harness.GREEDY)
    harness.step_until(core, lambda: request.sequences[0].num_output == 1)
    core.abort("first")
    pool = core.cache.pool
    # Whoever takes nearly all blocks leaves the beginning, which is what others share.
    pool.release(pool.allocate(pool.num_free - 2))
    again = core.add_request("again", prompt, harness.GREEDY)
    core.step()
    assert again.sequences[0].num_cached == 32


def test_a_salt_keeps_prefixes_apart() -> None:
    core = harness.tiny_engine().core
    prompt = tiny.prompts()[3]
    hits = []
    for index, salt in enumerate([None, "x", "x", "y", None]):
        request = core.add_request(str(index), prompt, harness.GREEDY, cache_salt=salt)
        harness.collect(core)
        hits.append(request.sequences[0].num_cached)
    assert hits == [0, 0, 80, 0, 80]


def test_sc_08_full_blocks_of_an_aborted_request_are_hits() -> None:
    core = harness.tiny_engine().core
    prompt = tiny.prompts()[3]
    request = core.add_request("first", prompt, SamplingParams(temperature=0, max_tokens=60))
    harness.step_until(core, lambda: request.sequences[0].num_output == 20)
    longer = [*request.sequences[0].token_ids, *tiny.prompts()[2]]
    core.abort("first")
    harness.assert_idle(core)
    again = core.add_request("second", longer, harness.GREEDY)
    updates = harness.collect(core)["second", 0]
    assert again.sequences[0].num_cached == (len(prompt) + 19) // 16 * 16
    assert harness.tokens(updates) == list(tiny.reference("llama", tuple(longer), 24))


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_ml_10_a_second_turn_continues_from_the_cache(family: str) -> None:
    core = harness.tiny_engine(family).core
    turn = tiny.prompts()[1]
    answer = harness.generate(core, [turn])[0]
    longer = [*turn, *answer, *tiny.prompts()[4]]
    request = core.add_request("turn2", longer, harness.GREEDY)
    updates = harness.collect(core)["turn2", 0]
    assert harness.tokens(updates) == list(tiny.reference(family, tuple(longer), 24))
    assert request.sequences[0].num_cached == (len(turn) + len(answer) - 1) // 16 * 16
