"""The engine loop: requests in, one step at a time, tokens out. It knows no text, no network and no other thread."""

import logging
from collections.abc import Hashable
from collections.abc import Sequence as Seq

import msgspec

from engine.core.kv_cache import KVCacheManager
from engine.core.request import FinishReason, Logprobs, Request, Sequence
from engine.core.runner import LaunchedStep, ModelRunner
from engine.core.scheduler import ScheduledSequence, Scheduler
from engine.errors import RequestError
from engine.sampling.params import SamplingParams
from engine.sampling.random import uniform
from engine.sampling.sampler import NOT_A_NUMBER, failure

logger = logging.getLogger("engine")


class SequenceUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """What a step did to one sequence: a new token, its end, or both.

    `num_cached` and `prompt_logprobs` are of the request and come with the first token of a sequence.
    """

    request_id: str
    index: int
    token_id: int | None = None
    logprobs: Logprobs | None = None
    finish_reason: FinishReason | None = None
    stop_token: int | None = None
    error: str | None = None
    num_cached: int = 0
    prompt_logprobs: list[Logprobs | None] | None = None


class EngineCore:
    """Requests, the scheduler and the runner. `step` until `has_work` is false."""

    def __init__(
        self,
        runner: ModelRunner,
        cache: KVCacheManager,
        scheduler: Scheduler,
        max_model_len: int,
        head_size: int,
        eos_token_ids: Seq[int] = (),
        seed: int = 0,
    ) -> None:
        """`head_size`: token ids of requests must be below it."""
        self.runner = runner
        self.cache = cache
        self.scheduler = scheduler
        self.max_model_len = max_model_len
        self.head_size = head_size
        self.eos_token_ids = tuple(eos_token_ids)
        self.seed = seed
        self.requests: dict[str, Request] = {}
        self._pending: list[LaunchedStep] = []
        self._num_added = 0

    @property
    def has_work(self) -> bool:
        return self.scheduler.has_work or bool(self._pending)

    def add_request(
        self, id: str, prompt_token_ids: Seq[int], params: SamplingParams, cache_salt: Hashable = None
    ) -> Request:
        """Queue a request. Raises RequestError when it can never be served; nothing changes then."""
        self._validate(id, prompt_token_ids, params)
        seed = params.seed
        if seed is None:
            seed = int(uniform(self.seed, 0, self._num_added) * 2**48)
        self._num_added += 1
        request = Request(id, prompt_token_ids, params, seed, self.max_model_len, self.eos_token_ids, cache_salt)
        self.requests[id] = request
        self.scheduler.add(request)
        return request

    def abort(self, id: str) -> None:
        """End a request in whatever state it is; unknown and finished ids are ignored."""
        request = self.requests.pop(id, None)
        for sequence in request.sequences if request else []:
            if not sequence.finished:
                self.scheduler.finish(sequence, "abort")

    def stop(self, id: str, index: int) -> None:
        """End one sequence as stopped, for a reason that the engine does not see, such as a stop string."""
        request = self.requests.get(id)
        if request and not request.sequences[index].finished:
            self._finish(request.sequences[index], "stop")

    def step(self) -> list[SequenceUpdate]:
        """Launch the next step and collect a finished one.

        With asynchronous readback it is the step before the one launched now: the device works while
        the host looks at tokens. What a sequence sampled beyond its end is dropped.
        """
        updates: list[SequenceUpdate] = []
        launched = self._launch(self.scheduler.schedule(), updates)
        if self.runner.platform.supports_async_sampled_token_readback:
            launched, self._pending = self._pending, launched
        for step in launched:
            updates.extend(self._collect(step))
        return updates

    def _validate(self, id: str, prompt: Seq[int], params: SamplingParams) -> None:
        if id in self.requests:
            raise RequestError(f"request id {id!r} is in use by a running request")
        if not prompt:
            raise RequestError("the prompt has no tokens; give at least one")
        if len(prompt) >= self.max_model_len:
            raise RequestError(
                f"the prompt has {len(prompt)} tokens; with one output token that is more than "
                f"max_model_len {self.max_model_len}"
            )
        for token in (*prompt, *params.named_token_ids()):
            if not 0 <= token < self.head_size:
                raise RequestError(f"token id {token} is not in the model's vocabulary of {self.head_size}")

    def _launch(self, items: list[ScheduledSequence], updates: list[SequenceUpdate]) -> list[LaunchedStep]:
        if not items:
            return []
        try:
            return [self.runner.launch(items, self._pending)]
        except Exception as error:
            if len(items) == 1:
                updates.append(self._fail_launch(items[0], error))
                return []
            logger.warning("a step of %d sequences failed (%s); running them one by one", len(items), error)
        return [step for item in items for step in self._launch([item], updates)]

    def _fail_launch(self, item: ScheduledSequence, error: Exception) -> SequenceUpdate:
        item.sequence.num_in_flight -= item.samples
        return self._fail(item.sequence, f"the step failed: {type(error).__name__}: {error}")

    def _collect(self, step: LaunchedStep) -> list[SequenceUpdate]:
        tokens, scores = step.readback.wait()
        for item, prompt_logprobs in step.prompt_logprobs:
            _put_prompt_logprobs(item, prompt_logprobs.read())
        updates = []
        for item in step.items:
            sequence = item.sequence
            sequence.num_in_flight -= item.samples
            if sequence.finished:
                continue
            row = step.rows.get(sequence)
            error = None if row is None else step.sampled.errors.get(row) or failure(scores[row])
            if error:
                updates.append(self._fail(sequence, error))
                continue
            if row is not None:
                logprobs = step.sampled.logprobs.get(row)
                sequence.token_ids.append(tokens[row])
                if logprobs:
                    sequence.logprobs.append(logprobs.read())
            if sequence.num_preemptions == item.epoch:
                self.cache.remember(sequence, item.end)
            if row is not None:
                updates.append(self._advance(sequence))
        return updates

    def _advance(self, sequence: Sequence) -> SequenceUpdate:
        """End the sequence if its last token does, and tell what happened."""
        params, token = sequence.params, sequence.token_ids[-1]
        reason: FinishReason | None = None
        if token in sequence.request.stop_token_ids:
            reason, sequence.stop_token = "stop", token
        elif sequence.num_output == params.max_tokens or len(sequence.token_ids) >= self.max_model_len:
            reason = "length"
        if reason:
            self._finish(sequence, reason)
        first = sequence.num_output == 1
        return SequenceUpdate(
            request_id=sequence.request.id,
            index=sequence.index,
            token_id=token,
            logprobs=sequence.logprobs[-1] if sequence.logprobs else None,
            finish_reason=reason,
            stop_token=sequence.stop_token,
            num_cached=sequence.num_cached or 0,
            prompt_logprobs=sequence.prompt_logprobs if first and sequence.wants_prompt_logprobs else None,
        )

    def _fail(self, sequence: Sequence, error: str) -> SequenceUpdate:
        logger.warning("request %s choice %d ended with an error: %s", sequence.request.id, sequence.index, error)
        if error == NOT_A_NUMBER:
            # Kernels weigh whole pages: what is not a number must not wait there for the next holder.
            self.runner.cache.wipe(self.cache.spoil(sequence))
        self._finish(sequence, "error", error)
        return SequenceUpdate(request_id=sequence.request.id, index=sequence.index, finish_reason="error", error=error)

    def _finish(self, sequence: Sequence, reason: FinishReason, error: str | None = None) -> None:
        self.scheduler.finish(sequence, reason, error)
        if sequence.request.finished:
            self.requests.pop(sequence.request.id, None)


def _put_prompt_logprobs(item: ScheduledSequence, entries: list[Logprobs]) -> None:
    # By position: a preempted prompt is computed again.
    stored = item.sequence.prompt_logprobs
    if not stored:
        stored.extend([None] * item.sequence.num_prompt)
    stored[item.start + 1 : item.start + 1 + len(entries)] = entries
