"""Bringing sampled tokens to the host without stopping the stream."""

import torch
from torch import Tensor


class EventReadback:
    """Copies into pinned memory behind the sampler; `wait` blocks on that copy alone."""

    def __init__(self, tokens: Tensor, scores: Tensor) -> None:
        self._host = [_pinned_copy(tokens), _pinned_copy(scores)]
        self._done = torch.cuda.Event()
        self._done.record()

    def wait(self) -> tuple[list[int], list[float]]:
        self._done.synchronize()
        tokens, scores = self._host
        return tokens.tolist(), scores.tolist()


def _pinned_copy(source: Tensor) -> Tensor:
    target = torch.empty(source.shape, dtype=source.dtype, pin_memory=True)
    return target.copy_(source, non_blocking=True)
