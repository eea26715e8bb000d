"""From sequence updates to text: detokenization, stop strings, and the outputs that callers see."""

from collections import deque
from collections.abc import Sequence

import msgspec

from engine.core.engine import SequenceUpdate
from engine.core.request import FinishReason, Logprobs
from engine.sampling.params import SamplingParams
from engine.tokens.detokenizer import Detokenizer
from engine.tokens.stop import StopStrings
from engine.tokens.tokenizer import Tokenizer


class CompletionOutput(msgspec.Struct, kw_only=True):
    """One choice. `token_ids` and `logprobs` end at the same token, the one that stopped it included.

    `stop_reason` is the stop string or the stop token's id where the text was stopped.
    """

    index: int
    text: str = ""
    token_ids: list[int] = []
    logprobs: list[Logprobs] | None = None
    finish_reason: FinishReason | None = None
    stop_reason: str | int | None = None
    error: str | None = None


class RequestOutput(msgspec.Struct, kw_only=True):
    """A prompt and its choices. `num_cached_tokens` counts prompt tokens that were not computed again."""

    request_id: str
    prompt_token_ids: list[int]
    outputs: list[CompletionOutput]
    prompt_logprobs: list[Logprobs | None] | None = None
    num_cached_tokens: int = 0

    @property
    def finished(self) -> bool:
        return all(output.finish_reason for output in self.outputs)


class _Stream:
    """The text of one choice as it grows."""

    def __init__(self, output: CompletionOutput, params: SamplingParams, tokenizer: Tokenizer | None) -> None:
        self.output = output
        self.params = params
        skip = params.skip_special_tokens
        self.detokenizer = Detokenizer(lambda ids: tokenizer.decode(ids, skip)) if tokenizer else None
        self.stops = StopStrings(params.stop, params.include_stop_str)

    def advance(self, update: SequenceUpdate) -> str:
        """Take in a token or an end; returns the new text. Sets the output's finish when a stop string is complete."""
        output = self.output
        delta = ""
        if update.token_id is not None:
            output.token_ids.append(update.token_id)
            if update.logprobs is not None:
                output.logprobs = [*(output.logprobs or []), update.logprobs]
            # The token that ends a text is counted, not shown.
            if self.detokenizer and update.stop_token is None:
                delta = self._let_through(self.detokenizer.add(update.token_id))
        if update.finish_reason and output.finish_reason is None:
            if self.detokenizer:
                delta += self._let_through(self.detokenizer.flush())
            if output.finish_reason is None:
                delta += self.stops.flush()
                output.finish_reason = update.finish_reason
                output.stop_reason = update.stop_token
                output.error = update.error
        output.text += delta
        return delta

    def _let_through(self, text: str) -> str:
        if self.output.finish_reason or not text:
            return ""
        if len(self.output.token_ids) < self.params.min_tokens:
            # Too early to stop: what is written now can no longer be the start of a stop string.
            return self.stops.flush() + text
        shown, stop = self.stops.feed(text)
        if stop is not None:
            self.output.finish_reason = "stop"
            self.output.stop_reason = stop
        return shown


class OutputProcessor:
    """Collects the updates of one request."""

    def __init__(
        self, request_id: str, prompt: Sequence[int], params: SamplingParams, tokenizer: Tokenizer | None
    ) -> None:
        choices = [CompletionOutput(index=index, token_ids=[]) for index in range(params.n)]
        self.output = RequestOutput(request_id=request_id, prompt_token_ids=list(prompt), outputs=choices)
        self._streams = [_Stream(choice, params, tokenizer) for choice in choices]
        # (choice, new text) of updates that the caller has not seen yet.
        self.news: deque[tuple[int, str]] = deque()

    def advance(self, update: SequenceUpdate) -> bool:
        """Take in an update; true when the engine must be told that a stop string ended the choice."""
        stream = self._streams[update.index]
        if stream.output.finish_reason:
            return False
        if update.prompt_logprobs is not None:
            self.output.prompt_logprobs = update.prompt_logprobs
        if update.index == 0:
            self.output.num_cached_tokens = update.num_cached
        self.news.append((update.index, stream.advance(update)))
        return stream.output.finish_reason is not None and update.finish_reason is None
