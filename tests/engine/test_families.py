"""Greedy tokens of every family equal transformers', whatever the settings of the scheduler and the cache."""

import engine_harness as harness
import pytest
import tiny_models as tiny

MAX_TOKENS = 24
PARAMS = harness.GREEDY


def references(family: str, prompts: list[list[int]]) -> list[list[int]]:
    return [list(tiny.reference(family, tuple(prompt), MAX_TOKENS)) for prompt in prompts]


@pytest.mark.parametrize("family", tiny.FAMILIES)
@pytest.mark.parametrize(
    ("block_size", "budget", "caching"), [(16, 7, True), (32, 33, False), (16, 512, False), (32, 512, True)]
)
def test_mixed_batches_equal_the_reference(family: str, block_size: int, budget: int, caching: bool) -> None:
    core = harness.tiny_engine(
        family, block_size=block_size, max_num_batched_tokens=budget, enable_prefix_caching=caching
    ).core
    prompts = tiny.prompts()
    expected = references(family, prompts)
    assert harness.generate(core, prompts) == expected
    # The second time the cache is warm.
    assert harness.generate(core, prompts) == expected
    harness.assert_idle(core)


@pytest.mark.slow
@pytest.mark.parametrize("family", tiny.FAMILIES)
@pytest.mark.parametrize("block_size", [16, 32])
@pytest.mark.parametrize("budget", [7, 33, 512])
@pytest.mark.parametrize("caching", [True, False])
@pytest.mark.parametrize(("seqs", "room"), [(1, "ample"), (8, "ample"), (8, "tight")])
def test_the_full_cross_of_settings_at_64_tokens(
    family: str, block_size: int, budget: int, caching: bool, seqs: int, room: str
) -> None:
    settings = {"block_size": block_size, "max_num_batched_tokens": budget, "enable_prefix_caching": caching}
    memory = harness.memory_for(family, 176, **settings) if room == "tight" else 2**23
    core = harness.tiny_engine(family, max_model_len=176, kv_cache_memory=memory, max_num_seqs=seqs, **settings).core
    params = harness.SamplingParams(temperature=0, max_tokens=64)
    prompts = tiny.prompts()
    expected = [list(tiny.reference(family, tuple(prompt), 64)) for prompt in prompts]
    for _ in ("cold", "warm"):
        assert harness.generate(core, prompts, params) == expected
        harness.assert_idle(core)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_one_at_a_time_equals_the_reference(family: str) -> None:
    core = harness.tiny_engine(family).core
    prompts = tiny.prompts()
    assert [harness.generate(core, [prompt])[0] for prompt in prompts] == references(family, prompts)


@pytest.mark.parametrize("family", tiny.FAMILIES)
@pytest.mark.parametrize("block_size", [16, 32])
@pytest.mark.parametrize("caching", [True, False])
def test_preemption_does_not_change_the_answer(family: str, block_size: int, caching: bool) -> None:
    settings = {"block_size": block_size, "enable_prefix_caching": caching, "max_num_batched_tokens": 64}
    room = harness.memory_for(family, 176, **settings)
    core = harness.tiny_engine(family, max_model_len=176, kv_cache_memory=room, **settings).core
    preempted = []
    preempt = core.scheduler.preempt
    core.scheduler.preempt = lambda sequence: (preempted.append(sequence), preempt(sequence))[1]  # type: ignore[assignment,func-returns-value,return-value]
    prompts = tiny.prompts()
    assert harness.generate(core, prompts) == references(family, prompts)
    assert preempted
    harness.assert_idle(core)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_portable_ops_alone_give_the_same_tokens(family: str) -> None:
    built = harness.tiny_engine(family, disable_ops=("onednn", "sdpa"))
    assert set(built.effective.ops.values()) == {"portable"}
    prompts = tiny.prompts()
    assert harness.generate(built.core, prompts) == references(family, prompts)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_the_reference_is_worth_comparing_with(family: str) -> None:
    texts = references(family, tiny.prompts())
    assert len({token for text in texts for token in text}) > 20
    assert len({tuple(text) for text in texts}) == len(texts)
