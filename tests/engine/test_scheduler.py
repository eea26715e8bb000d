"""Token budget, admission, preemption, aborts, failures, asynchronous readback."""

import math
import random
from collections.abc import Sequence as Seq
from typing import Any

import engine_harness as harness
import pytest
import tiny_models as tiny
import torch
from torch import Tensor

from engine import platforms
from engine.core.engine import EngineCore
from engine.core.request import Sequence, Status
from engine.errors import ConfigError, RequestError
from engine.platforms.interface import Platform, Readback
from engine.sampling.params import SamplingParams
from engine.sampling.sampler import NOT_A_NUMBER


def test_a_step_mixes_prefill_chunks_and_decodes_within_the_budget() -> None:
    core = harness.tiny_engine(max_num_batched_tokens=32).core
    first = core.add_request("first", tiny.prompts()[2], harness.GREEDY).sequences[0]
    core.step()
    second = core.add_request("second", tiny.prompts()[3], harness.GREEDY).sequences[0]
    items = core.scheduler.schedule()
    assert [(item.sequence, item.count, item.samples) for item in items] == [(first, 1, True), (second, 31, False)]


def test_at_most_max_num_seqs_run() -> None:
    core = harness.tiny_engine(max_num_seqs=3).core
    for index, prompt in enumerate(tiny.prompts()):
        core.add_request(str(index), prompt, harness.GREEDY)
    most = 0
    while core.has_work:
        core.step()
        most = max(most, len(core.scheduler.running))
    assert most == 3


def test_a_cache_smaller_than_one_request_is_refused_with_both_numbers_and_the_knobs() -> None:
    memory = harness.memory_for("llama", 256)
    harness.tiny_engine(kv_cache_memory=memory, max_model_len=256)
    with pytest.raises(ConfigError) as refused:
        harness.tiny_engine(kv_cache_memory=memory - 1, max_model_len=256)
    for part in (f"needs {memory} bytes", f"kv_cache_memory is {memory - 1}", "--kv-cache-memory", "--max-model-len"):
        assert part in str(refused.value)


@pytest.mark.parametrize("family", ["llama", "gemma3"])
@pytest.mark.parametrize("budget", [5, 64])
def test_the_smallest_cache_that_starts_can_serve_its_longest_request(family: str, budget: int) -> None:
    memory = harness.memory_for(family, 120, max_num_batched_tokens=budget)
    core = harness.tiny_engine(family, kv_cache_memory=memory, max_model_len=120, max_num_batched_tokens=budget).core
    prompt = tiny.prompts()[3]
    (tokens,) = harness.generate(core, [prompt], SamplingParams(temperature=0, max_tokens=None))
    assert len(prompt) + len(tokens) == 120


def test_sc_04_preempted_requests_wait_until_they_fit_and_progress_goes_on() -> None:
    memory = harness.memory_for("llama", 160, max_num_batched_tokens=16)
    core = harness.tiny_engine(
        kv_cache_memory=memory, max_model_len=160, max_num_batched_tokens=16, enable_prefix_caching=False
    ).core
    params = SamplingParams(temperature=0, max_tokens=70)
    prompts = [prompt[:80] for prompt in tiny.prompts()]
    sequences = [core.add_request(str(index), prompt, params).sequences[0] for index, prompt in enumerate(prompts)]
    progress, stalled = -1, 0
    while core.has_work:
        before = {sequence: sequence.status for sequence in sequences}
        free = core.cache.pool.num_free
        core.step()
        for sequence in sequences:
            resumed = before[sequence] is Status.WAITING and sequence.status is Status.RUNNING
            if resumed and sequence.num_preemptions:
                assert core.cache.blocks_for(len(sequence.token_ids) - 1, 16) <= free
        now = sum(sequence.num_output for sequence in sequences)
        stalled = 0 if now > progress else stalled + 1
        progress = max(progress, now)
        # The longest recomputation takes 160 / 16 steps.
        assert stalled <= 12
    assert any(sequence.num_preemptions > 1 for sequence in sequences)
    assert [sequence.output_token_ids for sequence in sequences] == [
        list(tiny.reference("llama", tuple(prompt), 70)) for prompt in prompts
    ]


def test_a_preempted_sequence_is_the_next_to_be_admitted() -> None:
    core = harness.tiny_engine(max_num_seqs=2).core
    first, second, third = (core.add_request(str(i), tiny.prompts()[i], harness.GREEDY).sequences[0] for i in range(3))
    core.step()
    core.scheduler.preempt(second)
    assert list(core.scheduler.waiting) == [second, third]
    core.step()
    assert core.scheduler.running == [first, second]


def _reached(sequence: Sequence, when: str) -> bool:
    return {"queued": True, "prefill": sequence.num_computed > 0, "decode": sequence.num_output == 3}[when]


@pytest.mark.parametrize("when", ["queued", "prefill", "decode"])
def test_sc_05_an_aborted_request_leaves_nothing_behind(when: str) -> None:
    core = harness.tiny_engine(max_num_batched_tokens=16).core
    stays = core.add_request("stays", tiny.prompts()[1], harness.GREEDY).sequences[0]
    gone = core.add_request("goes", tiny.prompts()[3], harness.GREEDY).sequences[0]
    harness.step_until(core, lambda: _reached(gone, when))
    core.abort("goes")
    core.abort("goes")
    assert (gone.status, gone.finish_reason, gone.tables) == (Status.FINISHED, "abort", [])
    assert ("goes", 0) not in harness.collect(core)
    harness.assert_idle(core)
    assert stays.output_token_ids == list(tiny.reference("llama", tuple(tiny.prompts()[1]), 24))


def _raise_at(position: int) -> Any:
    def processor(output: Seq[int], logits: Tensor) -> Tensor:
        if len(output) == position:
            raise RuntimeError("planted fault")
        return logits

    return processor


@pytest.mark.parametrize("position", [0, 5])
def test_sc_07_a_failing_processor_ends_its_own_request_only(position: int) -> None:
    core = harness.tiny_engine().core
    prompts = tiny.prompts(4)
    bad = SamplingParams(temperature=0, max_tokens=24, logits_processors=(_raise_at(position),))
    for index, prompt in enumerate(prompts):
        core.add_request(str(index), prompt, bad if index == 2 else harness.GREEDY)
    updates = harness.collect(core)
    assert updates["2", 0][-1].finish_reason == "error"
    assert "RuntimeError: planted fault" in (updates["2", 0][-1].error or "")
    assert len(harness.tokens(updates["2", 0])) == position
    for index in (0, 1, 3):
        expected = list(tiny.reference("llama", tuple(prompts[index]), 24))
        assert harness.tokens(updates[str(index), 0]) == expected
    harness.assert_idle(core)


def test_a_step_that_fails_is_run_again_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    core = harness.tiny_engine().core
    poison = 319
    forward = core.runner.model.forward

    def fragile(batch: Any, cache: Any) -> Tensor:
        if (batch.token_ids == poison).any():
            raise RuntimeError("planted fault")
        return forward(batch, cache)

    monkeypatch.setattr(core.runner.model, "forward", fragile)
    prompts = [[token for token in prompt if token != poison] for prompt in tiny.prompts(4)]
    for index, prompt in enumerate(prompts):
        core.add_request(str(index), [*prompt, poison] if index == 1 else prompt, SamplingParams(temperature=0))
    updates = harness.collect(core)
    assert [updates[str(index), 0][-1].finish_reason for index in range(4)] == ["length", "error", "length", "length"]
    for index in (0, 2, 3):
        assert harness.tokens(updates[str(index), 0]) == list(tiny.reference("llama", tuple(prompts[index]), 16))
    harness.assert_idle(core)


def test_what_is_not_a_number_does_not_reach_the_next_holder_of_its_blocks() -> None:
    memory = harness.memory_for("llama", 128)
    core = harness.tiny_engine(kv_cache_memory=memory, max_model_len=128).core
    embedding = core.runner.model.embed.weight  # type: ignore[attr-defined]
    healthy = embedding.clone()
    with torch.inference_mode():
        embedding[7] = math.nan
    core.add_request("bad", [7] * 60, harness.GREEDY)
    bad = harness.collect(core)["bad", 0]
    assert [update.error for update in bad] == [NOT_A_NUMBER]
    with torch.inference_mode():
        embedding.copy_(healthy)
    prompt = tiny.prompts()[2]
    assert harness.generate(core, [prompt]) == [list(tiny.reference("llama", tuple(prompt), 24))]
    assert harness.generate(core, [[7] * 60]) == [list(tiny.reference("llama", (7,) * 60, 24))]


def test_requests_that_can_never_be_served_are_refused_with_numbers() -> None:
    core = harness.tiny_engine(max_model_len=64).core
    with pytest.raises(RequestError, match="prompt has no tokens"):
        core.add_request("empty", [], harness.GREEDY)
    with pytest.raises(RequestError, match=r"the prompt has 64 tokens; .* max_model_len 64"):
        core.add_request("long", [5] * 64, harness.GREEDY)
    with pytest.raises(RequestError, match="token id 320 is not in the model's vocabulary of 320"):
        core.add_request("foreign", [5, 320], harness.GREEDY)
    with pytest.raises(RequestError, match="token id 999 is not"):
        core.add_request("bias", [5], SamplingParams(logit_bias={999: 1.0}))
    core.add_request("twice", [5], harness.GREEDY)
    with pytest.raises(RequestError, match="'twice' is in use"):
        core.add_request("twice", [5], harness.GREEDY)
    assert list(core.requests) == ["twice"]


def test_a_request_ends_at_the_models_limit() -> None:
    core = harness.tiny_engine(max_model_len=64).core
    request = core.add_request("r", [5] * 63, SamplingParams(temperature=0, max_tokens=50))
    updates = harness.collect(core)["r", 0]
    assert [update.finish_reason for update in updates] == ["length"]
    assert len(request.sequences[0].token_ids) == 64


def test_stop_tokens_end_a_request_and_eos_can_be_ignored() -> None:
    core = harness.tiny_engine().core
    prompt = tiny.prompts()[1]
    plain = harness.generate(core, [prompt])[0]
    stop = plain[6]
    end = plain.index(stop) + 1
    by_id = SamplingParams(temperature=0, max_tokens=24, stop_token_ids=(stop,))
    core.add_request("r", prompt, by_id)
    last = harness.collect(core)["r", 0][-1]
    assert (last.finish_reason, last.stop_token) == ("stop", stop)
    core.eos_token_ids = (stop,)
    assert harness.generate(core, [prompt])[0] == plain[:end]
    ignoring = SamplingParams(temperature=0, max_tokens=24, ignore_eos=True)
    assert harness.generate(core, [prompt], ignoring)[0] == plain
    waiting = SamplingParams(temperature=0, max_tokens=24, min_tokens=end)
    tokens = harness.generate(core, [prompt], waiting)[0]
    assert tokens[: end - 1] == plain[: end - 1]
    assert stop not in tokens[:end]
    enough = SamplingParams(temperature=0, max_tokens=24, min_tokens=end - 1)
    assert harness.generate(core, [prompt], enough)[0] == plain[:end]


class Late:
    """Tokens that nobody may look at before `wait`."""

    def __init__(self, owner: "DelayedPlatform", tokens: Tensor, scores: Tensor) -> None:
        self.owner, self.tokens, self.scores = owner, tokens, scores
        owner.open_readbacks += 1
        owner.most_open = max(owner.most_open, owner.open_readbacks)

    def wait(self) -> tuple[list[int], list[float]]:
        self.owner.open_readbacks -= 1
        return self.tokens.tolist(), self.scores.tolist()


class DelayedPlatform(Platform):
    """The host, pretending that sampled tokens arrive a step late."""

    supports_async_sampled_token_readback = True

    def __init__(self) -> None:
        host = platforms.find("cpu")
        self.name, self.device = "delayed", host.device
        self.supported_dtypes, self.providers = host.supported_dtypes, host.providers  # type: ignore[method-assign]
        self.open_readbacks = self.most_open = 0

    def start_readback(self, tokens: Tensor, scores: Tensor) -> Readback:
        return Late(self, tokens, scores)


ASYNC_PARAMS = [
    harness.GREEDY,
    SamplingParams(temperature=1.2, seed=3, max_tokens=17),
    SamplingParams(temperature=0.8, seed=5, top_k=20, top_p=0.9, max_tokens=24, logprobs=2),
    SamplingParams(temperature=0, frequency_penalty=0.7, max_tokens=24),
    SamplingParams(temperature=0, max_tokens=1),
    SamplingParams(temperature=0, max_tokens=24, logprob_token_ids=(4, 9), prompt_logprobs=1),
    SamplingParams(temperature=0, max_tokens=24, stop_token_ids=tuple(range(0, 320, 9)), min_tokens=2),
    SamplingParams(n=2, temperature=1.0, seed=11, max_tokens=12),
]


def _everything(core: EngineCore, aborted: int | None = None) -> dict[Any, Any]:
    for index, prompt in enumerate(tiny.prompts()):
        core.add_request(str(index), prompt, ASYNC_PARAMS[index])
    if aborted is not None:
        for _ in range(5):
            core.step()
        core.abort(str(aborted))
    updates = harness.collect(core)
    harness.assert_idle(core)
    return {
        key: [(u.token_id, u.finish_reason, u.stop_token, u.logprobs and list(u.logprobs)) for u in each]
        for key, each in updates.items()
        if aborted is None or key[0] != str(aborted)
    }


@pytest.mark.parametrize("family", ["llama", "gemma3"])
@pytest.mark.parametrize("room", [None, 176])
@pytest.mark.parametrize("caching", [True, False])
def test_late_readback_gives_the_same_tokens(family: str, room: int | None, caching: bool) -> None:
    settings: dict[str, Any] = {"enable_prefix_caching": caching, "max_num_batched_tokens": 48}
    if room:
        settings |= {"kv_cache_memory": harness.memory_for(family, room, **settings), "max_model_len": room}
    delayed = DelayedPlatform()
    late = _everything(harness.tiny_engine(family, delayed, **settings).core)
    assert late == _everything(harness.tiny_engine(family, **settings).core)
    assert delayed.most_open == 2
    assert delayed.open_readbacks == 0


@pytest.mark.parametrize("limit", [{"max_tokens": 3}, {"max_tokens": None}])
def test_late_readback_launches_nothing_beyond_a_known_end(limit: dict[str, int | None]) -> None:
    core = harness.tiny_engine(platform=DelayedPlatform(), max_model_len=24).core
    core.add_request("r", [5] * 21, SamplingParams(temperature=0, **limit))
    launched = []
    schedule = core.scheduler.schedule
    core.scheduler.schedule = lambda: [launched.append(i.count) or i for i in schedule()]  # type: ignore[func-returns-value,method-assign]
    assert len(harness.tokens(harness.collect(core)["r", 0])) == 3
    assert launched == [21, 1, 1]


def test_late_readback_survives_an_abort() -> None:
    def run(platform: Platform | None) -> dict[Any, Any]:
        core = harness.tiny_engine(platform=platform).core
        everything = _everything(core, aborted=0)
        return {key: [token for token, *_ in each if token is not None][-5:] for key, each in everything.items()}

    assert run(DelayedPlatform()) == run(None)


def _workload(rng: random.Random) -> tuple[dict[str, Any], list[tuple[int, list[int], SamplingParams, int | None]]]:
    """Settings, and requests as (step of arrival, prompt, params, step of abort)."""
    family = rng.choice(["llama", "gemma3"])
    settings = {
        "family": family,
        "block_size": rng.choice([4, 16]),
        "max_num_batched_tokens": rng.choice([3, 24, 200]),
        "max_num_seqs": rng.choice([2, 8]),
        "enable_prefix_caching": rng.random() < 0.7,
    }
    shared = [rng.randrange(3, tiny.VOCAB) for _ in range(30)]
    requests = []
    for _ in range(rng.randrange(2, 9)):
        own = [rng.randrange(3, tiny.VOCAB) for _ in range(rng.randrange(1, 40))]
        prompt = shared[: rng.randrange(31)] + own
        params = SamplingParams(
            temperature=rng.choice([0, 0, 1.3]),
            seed=rng.randrange(99),
            n=rng.choice([1, 1, 1, 2]),
            max_tokens=rng.randrange(1, 20),
            top_k=rng.choice([0, 5]),
            frequency_penalty=rng.choice([0, 0, 0.8]),
            stop_token_ids=tuple(rng.sample(range(tiny.VOCAB), 12)),
        )
        abort = rng.randrange(30) if rng.random() < 0.2 else None
        requests.append((rng.randrange(12), prompt, params, abort))
    return settings, requests


def _check_workload(seed: int) -> int:
    """Run a workload in a tight cache and compare with one request at a time in a roomy one; returns preemptions."""
    settings, requests = _workload(random.Random(seed))
    family = settings.pop("family")
    tight = harness.memory_for(family, 96, **settings)
    delayed = DelayedPlatform() if seed % 3 == 0 else None
    core = harness.tiny_engine(family, delayed, max_model_len=96, kv_cache_memory=tight, **settings).core
    alone = harness.tiny_engine(family, max_model_len=96, max_num_batched_tokens=200).core
    updates: dict[Any, list[int]] = {}
    live = {}
    preemptions = 0
    step = 0
    while core.has_work or step < 12:
        for index, (arrival, prompt, params, _) in enumerate(requests):
            if arrival == step:
                live[index] = core.add_request(str(index), prompt, params)
        for index, (arrival, _, _, abort) in enumerate(requests):
            if abort is not None and index in live and step == arrival + abort:
                core.abort(str(index))
        for update in core.step():
            assert update.error is None
            if update.token_id is not None:
                updates.setdefault((int(update.request_id), update.index), []).append(update.token_id)
        harness.check_invariants(core)
        step += 1
        assert step < 3000
    harness.assert_idle(core)
    for index, (_, prompt, params, abort) in enumerate(requests):
        alone.add_request(f"{index}", prompt, params)
        expected = harness.collect(alone, watch=False)
        for choice in range(params.n):
            tokens, whole = updates.get((index, choice), []), harness.tokens(expected[str(index), choice])
            assert tokens == whole if abort is None else tokens == whole[: len(tokens)]
        preemptions += sum(sequence.num_preemptions for sequence in live[index].sequences)
    return preemptions


def test_random_workloads_equal_one_request_at_a_time() -> None:
    assert sum(_check_workload(seed) for seed in range(12)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("start", range(100, 1100, 100))
def test_a_thousand_random_workloads(start: int) -> None:
    for seed in range(start, start + 100):
        _check_workload(seed)
