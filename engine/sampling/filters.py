"""Filters over one row of logits [vocab]. What a filter removes becomes minus infinity; the best token stays.

Among equal logits the lower token id counts as the better one, as in a greedy choice.
"""

import math

import torch
from torch import Tensor


def top_ids(logits: Tensor, count: int) -> Tensor:
    """The ids [count] of the largest logits, best first."""
    count = min(count, len(logits))
    if count == 0:
        return torch.empty(0, dtype=torch.int64, device=logits.device)
    # topk alone breaks ties in no particular order.
    threshold = torch.topk(logits, count).values[-1]
    candidates = (logits >= threshold).nonzero().flatten()
    order = torch.sort(logits[candidates], descending=True, stable=True).indices
    return candidates[order[:count]]


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    """Exactly the `k` best tokens; 0 keeps all."""
    if k == 0 or k >= len(logits):
        return logits
    kept = top_ids(logits, k)
    return torch.full_like(logits, -math.inf).index_copy_(0, kept, logits[kept])


def keep_top_p(logits: Tensor, p: float) -> Tensor:
    """The fewest best tokens whose probabilities reach `p` together; 1 keeps all."""
    if p >= 1:
        return logits
    ordered, ids = torch.sort(logits, descending=True, stable=True)
    probabilities = torch.softmax(ordered, dim=-1)
    removed = probabilities.cumsum(-1) - probabilities >= p
    removed[0] = False
    return logits.index_fill(0, ids[removed], -math.inf)


def keep_min_p(logits: Tensor, min_p: float) -> Tensor:
    """Tokens at least `min_p` times as probable as the best; 0 keeps all."""
    if min_p == 0:
        return logits
    return logits.masked_fill(logits < logits.max() + math.log(min_p), -math.inf)
