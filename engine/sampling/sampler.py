"""Chooses one token per row. A row's choice depends on that row alone."""

import math
from collections.abc import Collection, Sequence

import msgspec
import torch
from torch import Tensor

from engine.sampling.filters import keep_min_p, keep_top_k, keep_top_p
from engine.sampling.logprobs import RowLogprobs
from engine.sampling.params import SamplingParams
from engine.sampling.processors import adjust
from engine.sampling.random import uniform

NOTHING_LEFT = (
    "no token is left to sample: allowed_token_ids, bad_words, min_tokens and logit_bias exclude them all; relax one"
)
NOT_A_NUMBER = "the model's logits are not numbers at this position; the checkpoint or its dtype is at fault"


class SampleRow(msgspec.Struct, frozen=True):
    """What decides one row beside its logits. `position` is the index of the output token to choose."""

    params: SamplingParams
    prompt_token_ids: Sequence[int]
    output_token_ids: Sequence[int]
    stop_token_ids: Collection[int]
    seed: int
    choice: int
    position: int

    @property
    def plain(self) -> bool:
        """Whether the row is the argmax of its logits and nothing more."""
        params = self.params
        wants_logprobs = params.logprobs is not None or params.logprob_token_ids
        return params.greedy and not params.adjusts_logits and not wants_logprobs


class Sampled(msgspec.Struct):
    """Tokens [rows] int64 and their adjusted logits [rows], on the device; logprobs and errors by row.

    A score of minus infinity or NaN means that no token could be chosen: see `failure`.
    """

    tokens: Tensor
    scores: Tensor
    logprobs: dict[int, RowLogprobs]
    errors: dict[int, str]


def sample(logits: Tensor, rows: Sequence[SampleRow]) -> Sampled:
    """`logits` [rows, vocab] float32, left as they are. An error in one row is that row's result."""
    tokens = logits.argmax(-1) if len(rows) else torch.empty(0, dtype=torch.int64, device=logits.device)
    scores = logits.gather(-1, tokens[:, None])[:, 0] if len(rows) else torch.empty(0, device=logits.device)
    result = Sampled(tokens, scores, {}, {})
    for index, row in enumerate(rows):
        if row.plain:
            continue
        try:
            tokens[index], scores[index] = _choose(logits[index], row)
            params = row.params
            if params.logprobs is not None or params.logprob_token_ids:
                result.logprobs[index] = RowLogprobs.of(
                    logits[index], tokens[index], params.logprobs or 0, params.logprob_token_ids
                )
        # Whatever a request's own processor or parameter raises must end that request only.
        except Exception as error:
            result.errors[index] = f"sampling failed: {type(error).__name__}: {error}"
    return result


def failure(score: float) -> str | None:
    """Why a row with this score has no token, or None when it has one."""
    if math.isnan(score) or score == math.inf:
        return NOT_A_NUMBER
    return NOTHING_LEFT if score == -math.inf else None


def _choose(logits: Tensor, row: SampleRow) -> tuple[Tensor, Tensor]:
    params = row.params
    if params.adjusts_logits:
        logits = adjust(logits, params, row.prompt_token_ids, row.output_token_ids, row.position, row.stop_token_ids)
    if params.greedy:
        token = logits.argmax(-1)
    else:
        kept = keep_min_p(logits / params.temperature, params.min_p)
        kept = keep_top_p(keep_top_k(kept, params.top_k), params.top_p)
        token = _draw(kept, uniform(row.seed, row.choice, row.position))
    return token, logits[token]


def _draw(logits: Tensor, point: float) -> Tensor:
    """The token [] under which `point` of the distribution's mass lies, in the order of token ids."""
    mass = torch.softmax(logits.double(), dim=-1).cumsum(-1)
    # Half open: a token without mass is never the first that exceeds the point.
    return torch.searchsorted(mass, mass[-1:] * point, right=True)[0].clamp_(max=len(mass) - 1)
