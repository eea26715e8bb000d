"""What the shared layers may ask of the device they run on."""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from engine.ops.table import Provider


class Readback(Protocol):
    """Sampled tokens on their way to the host."""

    def wait(self) -> tuple[list[int], list[float]]:
        """Token ids and scores, once they are there."""
        ...


class ReadNow:
    """The readback of a platform whose results are on the host as soon as they are asked for."""

    def __init__(self, tokens: Tensor, scores: Tensor) -> None:
        self._tokens = tokens
        self._scores = scores

    def wait(self) -> tuple[list[int], list[float]]:
        return self._tokens.tolist(), self._scores.tolist()


class Platform:
    """Capabilities with safe defaults. A platform overrides what it can do better."""

    name: str
    device: torch.device
    # `auto` takes the usable platform with the lowest rank.
    rank = 0
    # Whether a step may be launched before the tokens of the one before it are on the host.
    supports_async_sampled_token_readback = False
    # Whether a step of fixed shape can be recorded and replayed.
    supports_graph_capture = False

    def unavailable(self) -> str | None:
        """Why this machine cannot be used through this platform; None when it can."""
        raise NotImplementedError

    def supported_dtypes(self) -> tuple[torch.dtype, ...]:
        """Dtypes that run at a useful speed, the preferred one first."""
        return (torch.float32,)

    @property
    def preferred_dtype(self) -> torch.dtype:
        return self.supported_dtypes()[0]

    def providers(self) -> Sequence[Provider]:
        """Faster ops, the preferred one of each op first."""
        return ()

    def start_readback(self, tokens: Tensor, scores: Tensor) -> Readback:
        """Begin to bring tokens [rows] and scores [rows] to the host."""
        return ReadNow(tokens, scores)

    def set_num_threads(self, count: int) -> None:
        """Threads that one operator may use on the host; 0 leaves it as it is."""
        if count:
            torch.set_num_threads(count)

    def describe(self) -> dict[str, str]:
        """What a bug report should say of the device."""
        return {}
