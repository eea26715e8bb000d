"""What a request may ask of the sampler, validated where it is made."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from engine.errors import RequestError

# At or below this temperature, sampling is greedy: dividing by less gives infinities.
GREEDY_TEMPERATURE = 1e-5
MAX_LOGPROBS = 128

# (output token ids so far, float32 logits [vocab]) -> logits [vocab]
LogitsProcessor = Callable[[Sequence[int], Any], Any]


class SamplingParams(msgspec.Struct, frozen=True, kw_only=True):
    """Sampling settings of one request.

    Applied in this order: `allowed_token_ids`, `bad_words`, `min_tokens`, `logit_bias`, penalties,
    `logits_processors`, then greedy choice or `temperature`, `min_p`, `top_k`, `top_p`. Logprobs are
    those of the model's own logits, before any of it.

    `max_tokens` None means up to the model's limit. `top_k` 0 and `top_p` 1 switch the filter off.
    `seed` makes choice `i` of the request a function of (seed, i, output position) alone.
    """

    n: int = 1
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: dict[int, float] = {}
    allowed_token_ids: tuple[int, ...] | None = None
    bad_words: tuple[str, ...] = ()
    bad_word_ids: tuple[tuple[int, ...], ...] = ()
    logits_processors: tuple[LogitsProcessor, ...] = ()
    max_tokens: int | None = 16
    min_tokens: int = 0
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    include_stop_str: bool = False
    ignore_eos: bool = False
    seed: int | None = None
    logprobs: int | None = None
    logprob_token_ids: tuple[int, ...] = ()
    prompt_logprobs: int | None = None
    skip_special_tokens: bool = True

    def __post_init__(self) -> None:
        for name in ("stop", "bad_words"):
            value = getattr(self, name)
            # A lone string is one stop, not one per letter.
            msgspec.structs.force_setattr(self, name, (value,) if isinstance(value, str) else tuple(value))
        _require(self.n >= 1, "n", self.n, "at least 1")
        _require(
            self.temperature >= 0 and math.isfinite(self.temperature), "temperature", self.temperature, "0 or more"
        )
        _require(self.top_k >= 0, "top_k", self.top_k, "0 (off) or more")
        _require(0 <= self.top_p <= 1, "top_p", self.top_p, "between 0 and 1")
        _require(0 <= self.min_p <= 1, "min_p", self.min_p, "between 0 and 1")
        _require(0 < self.repetition_penalty < math.inf, "repetition_penalty", self.repetition_penalty, "above 0")
        for name in ("presence_penalty", "frequency_penalty"):
            _require(math.isfinite(getattr(self, name)), name, getattr(self, name), "finite")
        for token, bias in self.logit_bias.items():
            _require(not math.isnan(bias) and bias < math.inf, f"logit_bias[{token}]", bias, "a number below infinity")
        _require(self.max_tokens is None or self.max_tokens >= 1, "max_tokens", self.max_tokens, "at least 1")
        _require(self.min_tokens >= 0, "min_tokens", self.min_tokens, "0 or more")
        if self.max_tokens is not None:
            _require(self.min_tokens <= self.max_tokens, "min_tokens", self.min_tokens, f"at most {self.max_tokens}")
        if self.allowed_token_ids is not None:
            _require(len(self.allowed_token_ids) > 0, "allowed_token_ids", self.allowed_token_ids, "not empty")
        _require(all(self.stop), "stop", self.stop, "without empty strings")
        _require(all(self.bad_words), "bad_words", self.bad_words, "without empty strings")
        _require(all(self.bad_word_ids), "bad_word_ids", self.bad_word_ids, "without empty sequences")
        for name in ("logprobs", "prompt_logprobs"):
            value = getattr(self, name)
            _require(value is None or 0 <= value <= MAX_LOGPROBS, name, value, f"between 0 and {MAX_LOGPROBS}")

    @property
    def greedy(self) -> bool:
        return self.temperature <= GREEDY_TEMPERATURE

    @property
    def needs_output_tokens(self) -> bool:
        """Whether the next logits depend on tokens that were sampled, so that they must be on the host."""
        return bool(
            self.repetition_penalty != 1
            or self.presence_penalty
            or self.frequency_penalty
            or self.bad_word_ids
            or self.logits_processors
        )

    @property
    def adjusts_logits(self) -> bool:
        """Whether anything but the temperature and the filters changes the model's logits."""
        return bool(
            self.needs_output_tokens or self.allowed_token_ids is not None or self.min_tokens or self.logit_bias
        )

    def named_token_ids(self) -> set[int]:
        """Every vocabulary id that the settings name; each must exist in the model's head."""
        ids = {*self.logit_bias, *self.stop_token_ids, *self.logprob_token_ids, *(self.allowed_token_ids or ())}
        return ids.union(*self.bad_word_ids)


def _require(holds: bool, name: str, value: object, expected: str) -> None:
    if not holds:
        raise RequestError(f"{name} is {value!r}; it must be {expected}")
