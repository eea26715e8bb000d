"""Runs one step on the device: batch in, sampled tokens out, possibly before they are read back."""

from collections.abc import Sequence as Seq

import msgspec
import torch
from torch import Tensor

from engine.core.batch import build_batch
from engine.core.cache_groups import CacheGroup
from engine.core.request import Sequence
from engine.core.scheduler import ScheduledSequence
from engine.layers.attention import KVCache
from engine.models.base import CausalLM
from engine.platforms.interface import Platform, Readback
from engine.sampling.logprobs import PromptLogprobs
from engine.sampling.sampler import Sampled, SampleRow, sample


class LaunchedStep(msgspec.Struct):
    """A step whose work is queued. `rows` gives a sampling sequence its row in `sampled`."""

    items: list[ScheduledSequence]
    rows: dict[Sequence, int]
    sampled: Sampled
    prompt_logprobs: list[tuple[ScheduledSequence, PromptLogprobs]]
    readback: Readback


class ModelRunner:
    """The model, its KV cache and the sampler. Knows nothing of queues or of text."""

    def __init__(
        self, model: CausalLM, cache: KVCache, groups: Seq[CacheGroup], platform: Platform, vocab: int
    ) -> None:
        """`vocab`: logits beyond it belong to no token and are never sampled."""
        self.model = model
        self.cache = cache
        self.groups = list(groups)
        self.platform = platform
        self.vocab = vocab

    @torch.inference_mode()
    def launch(self, items: list[ScheduledSequence], pending: Seq[LaunchedStep]) -> LaunchedStep:
        """Queue a step. Tokens in flight are taken from `pending` on the device."""
        batch = build_batch(items, self.groups, self.platform.device)
        self._fill_in_flight(items, batch.token_ids, pending)
        hidden = self.model.forward(batch, self.cache)
        rows, wanted = _logits_rows(items)
        logits = self.model.logits(hidden[torch.tensor(wanted, dtype=torch.int64).to(hidden.device)])[
            :, : self.vocab
        ].float()
        samplers = [item for item in items if item.samples]
        sampled = sample(logits[: len(samplers)], [_sample_row(item.sequence) for item in samplers])
        prompt_logprobs = [(item, _prompt_logprobs(item, logits[rows[item]])) for item in items if item in rows]
        return LaunchedStep(
            items,
            {item.sequence: row for row, item in enumerate(samplers)},
            sampled,
            prompt_logprobs,
            self.platform.start_readback(sampled.tokens, sampled.scores),
        )

    def _fill_in_flight(self, items: Seq[ScheduledSequence], tokens: Tensor, pending: Seq[LaunchedStep]) -> None:
        flat = 0
        for item in items:
            flat += item.count
            if item.end > len(item.sequence.token_ids):
                step = next(step for step in pending if item.sequence in step.rows)
                tokens[flat - 1] = step.sampled.tokens[step.rows[item.sequence]]


def _logits_rows(items: Seq[ScheduledSequence]) -> tuple[dict[ScheduledSequence, slice], list[int]]:
    """Flat rows whose logits are needed: first the sampling rows, then prompt rows as slices by item."""
    sampling: list[int] = []
    prompts: list[tuple[ScheduledSequence, range]] = []
    flat = 0
    for item in items:
        if item.samples:
            sampling.append(flat + item.count - 1)
        if item.sequence.wants_prompt_logprobs:
            targets = min(item.end, item.sequence.num_prompt - 1) - item.start
            if targets > 0:
                prompts.append((item, range(flat, flat + targets)))
        flat += item.count
    wanted = list(sampling)
    slices = {}
    for item, rows in prompts:
        slices[item] = slice(len(wanted), len(wanted) + len(rows))
        wanted.extend(rows)
    return slices, wanted


def _sample_row(sequence: Sequence) -> SampleRow:
    # This step's own token is already counted as in flight.
    position = sequence.num_tokens - 1 - sequence.num_prompt
    return SampleRow(
        params=sequence.params,
        prompt_token_ids=sequence.request.prompt_token_ids,
        output_token_ids=sequence.output_token_ids if sequence.params.needs_output_tokens else [],
        stop_token_ids=sequence.request.stop_token_ids,
        seed=sequence.seed,
        choice=sequence.index,
        position=position,
    )


def _prompt_logprobs(item: ScheduledSequence, logits: Tensor) -> PromptLogprobs:
    targets = item.sequence.request.prompt_token_ids[item.start + 1 : item.start + 1 + len(logits)]
    count = item.sequence.params.prompt_logprobs or 0
    return PromptLogprobs.of(logits, targets, count)
