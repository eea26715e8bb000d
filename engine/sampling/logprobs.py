"""Logprobs of the model's own logits: of the chosen token, of the best ones and of those asked for."""

from collections.abc import Sequence

import msgspec
import torch
from torch import Tensor

from engine.core.request import Logprobs, TokenLogprob
from engine.sampling.filters import top_ids


class RowLogprobs(msgspec.Struct, frozen=True):
    """Of one position, on the device: ids [k] int64, logprobs [k], ranks [k] int64."""

    ids: Tensor
    logprobs: Tensor
    ranks: Tensor

    @classmethod
    def of(cls, logits: Tensor, token: Tensor, top: int, explicit: Sequence[int] = ()) -> "RowLogprobs":
        """`logits` [vocab]; `token` the id [1] that comes first, then `explicit` ids, or else the `top` best."""
        chosen = token.reshape(1)
        others = torch.tensor(explicit, device=logits.device) if explicit else top_ids(logits, top)
        ids = torch.cat([chosen, others])
        values = logits[ids]
        ranks = (logits[None, :] > values[:, None]).sum(-1) + 1
        return cls(ids, values - torch.logsumexp(logits, dim=-1), ranks)

    def read(self) -> Logprobs:
        entries = zip(self.ids.tolist(), self.logprobs.tolist(), self.ranks.tolist(), strict=True)
        return {token: TokenLogprob(logprob, rank) for token, logprob, rank in entries}


class PromptLogprobs(msgspec.Struct, frozen=True):
    """Of consecutive prompt positions."""

    rows: list[RowLogprobs]

    @classmethod
    def of(cls, logits: Tensor, targets: Sequence[int], top: int) -> "PromptLogprobs":
        """`logits` [n, vocab]; row i predicts `targets[i]`."""
        tokens = torch.tensor(targets, device=logits.device)
        return cls([RowLogprobs.of(row, token, top) for row, token in zip(logits, tokens, strict=True)])

    def read(self) -> list[Logprobs]:
        return [row.read() for row in self.rows]
