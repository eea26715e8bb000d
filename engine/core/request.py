"""Requests and their sequences, as the scheduler sees them."""

from collections.abc import Hashable
from collections.abc import Sequence as Seq
from enum import Enum, auto
from typing import Literal

import msgspec

from engine.core.prefix_keys import BlockKey
from engine.sampling.params import SamplingParams

FinishReason = Literal["stop", "length", "abort", "error"]


class Status(Enum):
    WAITING = auto()
    RUNNING = auto()
    FINISHED = auto()


class TokenLogprob(msgspec.Struct, frozen=True):
    """Natural logarithm of a token's probability and its 1-based rank in the whole vocabulary."""

    logprob: float
    rank: int


# Token id -> its logprob; the sampled (or prompt) token comes first.
Logprobs = dict[int, TokenLogprob]


class Sequence:
    """One choice of one request: its tokens, how many of them are in the KV cache, and its blocks."""

    def __init__(self, request: "Request", index: int, seed: int) -> None:
        self.request = request
        self.index = index
        self.seed = seed
        self.status = Status.WAITING
        self.token_ids = list(request.prompt_token_ids)
        # Positions whose keys and values are stored, or will be by a step that was launched.
        self.num_computed = 0
        # Tokens sampled by a launched step whose ids are not on the host yet.
        self.num_in_flight = 0
        self.num_preemptions = 0
        # Prompt tokens found in the prefix cache when the sequence was first admitted.
        self.num_cached: int | None = None
        # One block table per cache group; empty while the sequence holds no blocks.
        self.tables: list[list[int]] = []
        self.keys: list[BlockKey] = []
        self.num_remembered = 0
        self.logprobs: list[Logprobs] = []
        self.prompt_logprobs: list[Logprobs | None] = []
        self.finish_reason: FinishReason | None = None
        # The token id that ended the sequence, where one did.
        self.stop_token: int | None = None
        self.error: str | None = None

    @property
    def params(self) -> SamplingParams:
        return self.request.params

    @property
    def num_prompt(self) -> int:
        return len(self.request.prompt_token_ids)

    @property
    def output_token_ids(self) -> list[int]:
        return self.token_ids[self.num_prompt :]

    @property
    def num_output(self) -> int:
        return len(self.token_ids) - self.num_prompt

    @property
    def num_tokens(self) -> int:
        """Known tokens and those in flight."""
        return len(self.token_ids) + self.num_in_flight

    @property
    def finished(self) -> bool:
        return self.status is Status.FINISHED

    @property
    def wants_prompt_logprobs(self) -> bool:
        return self.params.prompt_logprobs is not None and self.index == 0

    def __repr__(self) -> str:
        return f"<Sequence {self.request.id}/{self.index} {self.status.name} {self.num_computed}/{self.num_tokens}>"


class Request:
    """One prompt with its parameters, and `n` sequences."""

    def __init__(
        self,
        id: str,
        prompt_token_ids: Seq[int],
        params: SamplingParams,
        seed: int,
        max_total_tokens: int,
        eos_token_ids: Seq[int] = (),
        cache_salt: Hashable = None,
    ) -> None:
        """`max_total_tokens` bounds prompt and output together; `cache_salt` keeps cached prefixes apart."""
        self.id = id
        self.prompt_token_ids = list(prompt_token_ids)
        self.params = params
        self.max_total_tokens = max_total_tokens
        self.cache_salt = cache_salt
        self.stop_token_ids = frozenset(params.stop_token_ids).union(() if params.ignore_eos else eos_token_ids)
        self.sequences = [Sequence(self, index, seed) for index in range(params.n)]

    @property
    def finished(self) -> bool:
        return all(sequence.finished for sequence in self.sequences)
