"""Changes of one row of logits that a request asked for, before a token is chosen."""

import math
from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from engine.sampling.params import SamplingParams


def adjust(
    logits: Tensor,
    params: SamplingParams,
    prompt: Sequence[int],
    output: Sequence[int],
    position: int,
    stop_token_ids: Collection[int],
) -> Tensor:
    """The logits [vocab] after all of the request's own rules. `position` counts the tokens sampled so far."""
    logits = logits.clone()
    if params.allowed_token_ids is not None:
        allowed = torch.tensor(params.allowed_token_ids, device=logits.device)
        logits = torch.full_like(logits, -math.inf).index_copy_(0, allowed, logits[allowed])
    for words in params.bad_word_ids:
        if _ends_with(output, words[:-1]):
            logits[words[-1]] = -math.inf
    if position < params.min_tokens:
        for token in stop_token_ids:
            if token < len(logits):
                logits[token] = -math.inf
    for token, bias in params.logit_bias.items():
        logits[token] += bias
    logits = penalise(logits, params, prompt, output)
    for processor in params.logits_processors:
        logits = processor(output, logits)
    return logits


def penalise(logits: Tensor, params: SamplingParams, prompt: Sequence[int], output: Sequence[int]) -> Tensor:
    """Repetition counts prompt and output; presence and frequency count the output alone."""
    if params.repetition_penalty != 1:
        seen = torch.tensor(sorted({*prompt, *output}), device=logits.device)
        seen = seen[seen < len(logits)]
        values = logits[seen]
        values = torch.where(values > 0, values / params.repetition_penalty, values * params.repetition_penalty)
        logits = logits.index_copy(0, seen, values)
    if output and (params.presence_penalty or params.frequency_penalty):
        ids, counts = torch.tensor(output, device=logits.device).unique(return_counts=True)
        logits = logits.index_add(0, ids, -(params.presence_penalty + params.frequency_penalty * counts))
    return logits


def _ends_with(output: Sequence[int], words: Sequence[int]) -> bool:
    return not words or tuple(output[-len(words) :]) == tuple(words)
