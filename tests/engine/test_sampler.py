"""The sampler: filters, penalties, randomness, logprobs, and their ties."""

import math
from typing import Any

import engine_harness as harness
import pytest
import tiny_models as tiny
import torch

from engine.errors import RequestError
from engine.sampling.filters import keep_min_p, keep_top_k, keep_top_p, top_ids
from engine.sampling.logprobs import RowLogprobs
from engine.sampling.params import SamplingParams
from engine.sampling.processors import adjust, penalise
from engine.sampling.random import uniform
from engine.sampling.sampler import Sampled, SampleRow, failure, sample


def row(position: int = 0, output: tuple[int, ...] = (), prompt: tuple[int, ...] = (), **settings: Any) -> SampleRow:
    params = SamplingParams(**{"max_tokens": 100, "seed": 7, **settings})
    return SampleRow(params, prompt, output, frozenset(params.stop_token_ids), params.seed or 0, 0, position)


def choose(logits: list[list[float]], *rows: SampleRow, dtype: torch.dtype = torch.float32) -> Sampled:
    return sample(torch.tensor(logits, dtype=dtype).float(), rows)


def kept(logits: torch.Tensor) -> list[int]:
    return (logits > -math.inf).nonzero().flatten().tolist()


def test_sl_04_top_k_1_equals_greedy_on_ties() -> None:
    tied = [2.0, 2, 2, 1]
    for position in range(50):
        sampled = choose([tied, tied], row(position, temperature=0), row(position, top_k=1), dtype=torch.bfloat16)
        assert sampled.tokens.tolist() == [0, 0]


def test_sl_04_top_k_keeps_exactly_k_and_the_lower_ids_of_ties() -> None:
    assert kept(keep_top_k(torch.tensor([2.0, 2, 2, 1]), 2)) == [0, 1]
    assert top_ids(torch.tensor([1.0, 3, 2, 3, 2]), 4).tolist() == [1, 3, 2, 4]


def test_sl_05_a_greedy_row_is_the_same_beside_a_random_one() -> None:
    tied = [1.0, 5, 5, 5, 0]
    for position in range(20):
        sampled = choose([tied, [0.0] * 5], row(position, temperature=0), row(position))
        assert sampled.tokens[0] == 1


def test_sl_07_a_seed_decides_whatever_stands_beside_it() -> None:
    core = harness.tiny_engine().core
    prompt, other = tiny.prompts()[1:3]
    seeded = SamplingParams(temperature=1.5, seed=42, max_tokens=20)
    free = SamplingParams(temperature=1.5, max_tokens=20)
    (alone,) = harness.generate(core, [prompt], seeded)
    assert harness.generate(core, [prompt, other], [seeded, free])[0] == alone
    assert harness.generate(core, [other, other, prompt], [free, free, seeded])[2] == alone
    assert harness.generate(core, [prompt, prompt], seeded) == [alone, alone]
    assert harness.generate(core, [prompt], SamplingParams(temperature=1.5, seed=43, max_tokens=20)) != [alone]


def test_output_positions_are_counted_from_zero() -> None:
    prompt = tiny.prompts()[1]
    params = SamplingParams(temperature=1.5, seed=42, max_tokens=2)
    first, second = harness.generate(harness.tiny_engine().core, [prompt], params)[0]
    for position, (text, token) in enumerate([(prompt, first), ([*prompt, first], second)]):
        with torch.no_grad():
            logits = tiny.model("llama")(torch.tensor([text])).logits[:, -1]
        assert sample(logits, [row(position, temperature=1.5, seed=42)]).tokens.tolist() == [token]


def test_an_unseeded_request_follows_the_engines_seed() -> None:
    params = SamplingParams(temperature=1.5, max_tokens=12)
    prompt = tiny.prompts()[1]
    first = harness.generate(harness.tiny_engine(seed=1).core, [prompt, prompt], params)
    assert harness.generate(harness.tiny_engine(seed=1).core, [prompt, prompt], params) == first
    assert first[0] != first[1]
    assert harness.generate(harness.tiny_engine(seed=2).core, [prompt, prompt], params) != first


def test_sl_08_n_choices_of_one_request() -> None:
    core = harness.tiny_engine().core
    prompt = tiny.prompts()[3]
    params = SamplingParams(n=3, seed=7, temperature=1.5, max_tokens=12)
    runs = []
    for run in range(2):
        request = core.add_request(f"run{run}", prompt, params)
        updates = harness.collect(core)
        runs.append([harness.tokens(updates[f"run{run}", index]) for index in range(3)])
        assert [sequence.index for sequence in request.sequences] == [0, 1, 2]
    assert len({tuple(choice) for choice in runs[0]}) > 1
    assert runs[0] == runs[1]
    # A choice alone, as the first of its own request, is the same text: it does not depend on the others.
    assert harness.generate(core, [prompt], SamplingParams(seed=7, temperature=1.5, max_tokens=12)) == runs[0][:1]


def test_sl_08_choices_share_the_prompt_in_the_cache() -> None:
    core = harness.tiny_engine().core
    prompt = tiny.prompts()[3]
    request = core.add_request("r", prompt, SamplingParams(n=3, seed=7, max_tokens=4))
    updates = harness.collect(core)
    assert updates["r", 0][0].num_cached == 0
    assert [sequence.num_cached for sequence in request.sequences] == [0, 80, 80]


def test_sl_10_nothing_left_to_sample() -> None:
    sampled = choose([[0.0, 1, 2, 3, 4, 5]], row(allowed_token_ids=(5,), bad_word_ids=((5,),)))
    reason = failure(sampled.scores[0].item())
    assert reason is not None and "no token is left to sample" in reason
    core = harness.tiny_engine().core
    core.add_request("bad", tiny.prompts()[1], SamplingParams(allowed_token_ids=(5,), bad_word_ids=((5,),)))
    core.add_request("good", tiny.prompts()[1], harness.GREEDY)
    updates = harness.collect(core)
    assert [(u.token_id, u.finish_reason) for u in updates["bad", 0]] == [(None, "error")]
    assert "no token is left to sample" in (updates["bad", 0][0].error or "")
    assert len(harness.tokens(updates["good", 0])) == harness.GREEDY.max_tokens
    harness.assert_idle(core)


@pytest.mark.parametrize("temperature", [1e-38, 1e-45, 1e-6, 0.0])
def test_sl_11_a_tiny_temperature_is_greedy(temperature: float) -> None:
    assert SamplingParams(temperature=temperature).greedy
    assert choose([[1.0, 3, 2]], row(temperature=temperature)).tokens.tolist() == [1]


@pytest.mark.parametrize("temperature", [-1.0, math.nan, math.inf])
def test_sl_11_an_impossible_temperature_is_refused(temperature: float) -> None:
    with pytest.raises(RequestError, match="temperature is"):
        SamplingParams(temperature=temperature)


@pytest.mark.parametrize(
    "settings", [{"top_p": 0.0}, {"top_p": 1e-6}, {"min_p": 1.0}, {"top_p": 0.0, "min_p": 1.0, "top_k": 1}]
)
def test_sl_13_the_best_token_stays(settings: dict[str, float]) -> None:
    for position in range(20):
        assert choose([[0.5, 3, 1, 2.5]], row(position, temperature=5.0, **settings)).tokens.tolist() == [1]


def test_sl_14_penalties_count_tokens_from_before_a_preemption() -> None:
    params = SamplingParams(
        temperature=0, frequency_penalty=1.5, presence_penalty=0.3, repetition_penalty=1.2, max_tokens=16
    )
    prompt = tiny.prompts()[2]
    core = harness.tiny_engine().core
    (expected,) = harness.generate(core, [prompt], params)
    assert harness.generate(core, [prompt], harness.GREEDY)[0][:16] != expected
    request = core.add_request("again", prompt, params)
    harness.step_until(core, lambda: request.sequences[0].num_output == 5)
    core.scheduler.preempt(request.sequences[0])
    harness.collect(core)
    assert request.sequences[0].output_token_ids == expected
    assert request.sequences[0].num_preemptions == 1


def test_repetition_divides_positive_and_multiplies_negative_logits() -> None:
    params = SamplingParams(repetition_penalty=2.0, presence_penalty=0.25, frequency_penalty=0.5)
    logits = penalise(torch.tensor([4.0, -4, 1, 1]), params, prompt=[0], output=[1, 2, 2])
    assert logits.tolist() == [2.0, -8 - 0.75, 0.5 - 1.25, 1.0]


def test_rules_apply_to_the_row_that_asked() -> None:
    logits = torch.tensor([0.0, 1, 2, 3])
    params = SamplingParams(logit_bias={0: 10.0, 3: -math.inf}, bad_word_ids=((1, 2),), stop_token_ids=(3,))
    assert adjust(logits, params, [], [0], 1, frozenset()).tolist() == [10, 1, 2, -math.inf]
    assert adjust(logits, params, [], [0, 1], 2, frozenset()).tolist() == [10, 1, -math.inf, -math.inf]
    waiting = SamplingParams(min_tokens=2, stop_token_ids=(3,))
    assert kept(adjust(logits, waiting, [], [], 1, {3})) == [0, 1, 2]
    assert kept(adjust(logits, waiting, [], [], 2, {3})) == [0, 1, 2, 3]
    assert logits.tolist() == [0, 1, 2, 3]


def test_filters_keep_what_they_promise() -> None:
    logits = torch.tensor([0.4, 0.1, 0.3, 0.2]).log()
    assert kept(keep_top_p(logits, 0.4)) == [0]
    assert kept(keep_top_p(logits, 0.41)) == [0, 2]
    assert kept(keep_top_p(logits, 1.0)) == [0, 1, 2, 3]
    assert kept(keep_min_p(logits, 0.6)) == [0, 2]


def test_samples_follow_the_distribution() -> None:
    probabilities = torch.tensor([0.5, 0.0, 0.3, 0.2])
    counts = torch.zeros(4)
    for position in range(4000):
        counts[choose([probabilities.log().tolist()], row(position)).tokens] += 1
    assert counts[1] == 0
    assert torch.allclose(counts / 4000, probabilities, atol=0.03)


def test_uniforms_depend_on_every_counter() -> None:
    points = {uniform(seed, choice, position) for seed in range(9) for choice in range(9) for position in range(9)}
    assert len(points) == 9**3
    assert all(0 <= point < 1 for point in points)
    assert abs(sum(points) / len(points) - 0.5) < 0.04


def test_logprobs_are_of_the_models_own_logits_with_ranks() -> None:
    logits = torch.tensor([1.0, 3, 2, 3])
    entries = RowLogprobs.of(logits, torch.tensor(0), 2).read()
    expected = torch.log_softmax(logits, -1)
    assert list(entries) == [0, 1, 3]
    assert [entries[token].rank for token in entries] == [4, 1, 1]
    for token, entry in entries.items():
        assert entry.logprob == pytest.approx(expected[token].item(), abs=1e-6)
    explicit = RowLogprobs.of(logits, torch.tensor(1), 2, explicit=(2, 0)).read()
    assert list(explicit) == [1, 2, 0]


@pytest.mark.parametrize("block_size", [16, 32])
def test_sl_02_prompt_logprobs_with_a_warm_cache(block_size: int) -> None:
    core = harness.tiny_engine(block_size=block_size, max_num_batched_tokens=20).core
    prompt = tiny.prompts()[3][:50]
    params = SamplingParams(temperature=0, max_tokens=2, prompt_logprobs=1)
    runs = []
    for run in range(2):
        core.add_request(f"{run}", prompt, params)
        updates = harness.collect(core)[f"{run}", 0]
        assert updates[0].num_cached == 0
        runs.append(updates[0].prompt_logprobs)
    first, second = runs
    assert first is not None and second is not None
    assert len(first) == 50 and first[0] is None
    with torch.no_grad():
        expected = torch.log_softmax(tiny.model("llama")(torch.tensor([prompt])).logits[0], -1)
    for index in range(1, 50):
        entry, again = first[index], second[index]
        assert entry is not None and again is not None
        assert list(entry) == list(again)
        assert entry[prompt[index]].logprob == pytest.approx(expected[index - 1, prompt[index]].item(), abs=1e-4)
        assert entry[prompt[index]].logprob == pytest.approx(again[prompt[index]].logprob, abs=1e-5)


def test_logprobs_end_with_the_tokens() -> None:
    core = harness.tiny_engine().core
    prompt = tiny.prompts()[1]
    plain = harness.generate(core, [prompt])[0]
    core.add_request("r", prompt, SamplingParams(temperature=0, max_tokens=9, logprobs=3))
    updates = harness.collect(core)["r", 0]
    assert harness.tokens(updates) == plain[:9]
    for update in updates:
        assert update.logprobs is not None
        first = next(iter(update.logprobs))
        assert first == update.token_id
        assert update.logprobs[first].rank == 1
        assert len(update.logprobs) == 3


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"n": 0}, "n"),
        ({"top_p": 1.5}, "top_p"),
        ({"top_k": -1}, "top_k"),
        ({"min_p": -0.1}, "min_p"),
        ({"repetition_penalty": 0.0}, "repetition_penalty"),
        ({"presence_penalty": math.nan}, "presence_penalty"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"min_tokens": 20}, "min_tokens"),
        ({"stop": ("",)}, "stop"),
        ({"allowed_token_ids": ()}, "allowed_token_ids"),
        ({"logit_bias": {3: math.inf}}, r"logit_bias\[3\]"),
        ({"logprobs": 129}, "logprobs"),
    ],
)
def test_params_out_of_range_are_refused_by_name(settings: dict[str, Any], name: str) -> None:
    with pytest.raises(RequestError, match=f"^{name} is .*; it must be"):
        SamplingParams(**settings)
