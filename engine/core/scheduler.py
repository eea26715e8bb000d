"""Decides which positions of which sequences the next step computes."""

from collections import deque

import msgspec

from engine.core.kv_cache import KVCacheManager
from engine.core.request import FinishReason, Request, Sequence, Status


class ScheduledSequence(msgspec.Struct, frozen=True):
    """Positions `start` to `start + count` of a sequence; a token is sampled when they reach its end."""

    sequence: Sequence
    start: int
    count: int
    samples: bool
    # The sequence's preemption count: tells whether its blocks are still those of this step.
    epoch: int

    @property
    def end(self) -> int:
        return self.start + self.count


class Scheduler:
    """First come, first served, under one token budget per step.

    Running sequences go first, so decodes and the rest of started prompts are never starved by new
    ones. A sequence that finds no free block preempts the latest admitted one, which gives up all
    its blocks and recomputes. A waiting sequence is admitted only when all tokens that it has now fit
    into free blocks. None of these is promised to a started prompt: while one is unfinished it takes
    the whole budget, and nobody is admitted.
    """

    def __init__(self, cache: KVCacheManager, token_budget: int, max_num_seqs: int) -> None:
        self.cache = cache
        self.token_budget = token_budget
        self.max_num_seqs = max_num_seqs
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []

    @property
    def has_work(self) -> bool:
        return bool(self.waiting or self.running)

    def add(self, request: Request) -> None:
        self.waiting.extend(request.sequences)

    def schedule(self) -> list[ScheduledSequence]:
        """The next step. Its sequences are counted as computed from now on; empty when nothing can go on."""
        scheduled: list[ScheduledSequence] = []
        budget = self.token_budget
        preempted = False
        index = 0
        while index < len(self.running) and budget:
            sequence = self.running[index]
            index += 1
            count = min(_remaining(sequence), budget)
            if count == 0:
                continue
            while not self.cache.extend(sequence, count):
                preempted = True
                victim = self.running[-1]
                self.preempt(victim)
                if victim is sequence:
                    break
            else:
                scheduled.append(_launch(sequence, count))
                budget -= count
        if not preempted:
            self._admit(scheduled, budget)
        return scheduled

    def preempt(self, sequence: Sequence) -> None:
        """Take a running sequence's blocks and put it first in the queue; its tokens stay as they are."""
        self.running.remove(sequence)
        self.cache.release(sequence)
        sequence.status = Status.WAITING
        sequence.num_preemptions += 1
        self.waiting.appendleft(sequence)

    def finish(self, sequence: Sequence, reason: FinishReason, error: str | None = None) -> None:
        """End a sequence in any state and take its blocks back."""
        if sequence.status is Status.RUNNING:
            self.running.remove(sequence)
        elif sequence.status is Status.WAITING:
            self.waiting.remove(sequence)
        self.cache.release(sequence)
        sequence.status = Status.FINISHED
        sequence.finish_reason = reason
        sequence.error = error

    def _admit(self, scheduled: list[ScheduledSequence], budget: int) -> None:
        for sequence in list(self.waiting):
            if not budget or len(self.running) >= self.max_num_seqs:
                return
            if self._waits_for_sibling(sequence):
                continue
            if sequence.num_in_flight or not self.cache.admit(sequence, self.token_budget):
                return
            if sequence.num_cached is None:
                sequence.num_cached = sequence.num_computed
            count = min(_remaining(sequence), budget)
            if not self.cache.extend(sequence, count):
                raise AssertionError(f"{sequence!r} was admitted without room for {count} tokens")
            self.waiting.remove(sequence)
            sequence.status = Status.RUNNING
            self.running.append(sequence)
            scheduled.append(_launch(sequence, count))
            budget -= count

    def _waits_for_sibling(self, sequence: Sequence) -> bool:
        """Whether the request's first choice is still computing the prompt that this one can share."""
        first = sequence.request.sequences[0]
        sharing = self.cache.caching and sequence is not first and sequence.num_output == 0
        return sharing and first.status is Status.RUNNING and first.num_output == 0


def _remaining(sequence: Sequence) -> int:
    """Positions that can be computed now: none when the next token is not known, or known to be the last."""
    if sequence.num_in_flight and (sequence.params.needs_output_tokens or _at_limit(sequence)):
        return 0
    return sequence.num_tokens - sequence.num_computed


def _at_limit(sequence: Sequence) -> bool:
    produced = sequence.num_tokens - sequence.num_prompt
    most = sequence.params.max_tokens
    return sequence.num_tokens >= sequence.request.max_total_tokens or (most is not None and produced >= most)


def _launch(sequence: Sequence, count: int) -> ScheduledSequence:
    start = sequence.num_computed
    samples = start + count == sequence.num_tokens
    sequence.num_computed += count
    sequence.num_in_flight += samples
    return ScheduledSequence(sequence, start, count, samples, sequence.num_preemptions)
