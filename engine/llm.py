"""The engine in the caller's process: prompts in, outputs out."""

import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from engine.config import EngineConfig
from engine.core.startup import build
from engine.errors import ConfigError, RequestError
from engine.outputs import OutputProcessor, RequestOutput
from engine.platforms.interface import Platform
from engine.progress import Progress
from engine.sampling.params import SamplingParams
from engine.tokens.tokenizer import Tokenizer
from engine.weights.checkpoint import open_checkpoint
from engine.weights.demo import require_demo_model

logger = logging.getLogger("engine")

# Text, or token ids.
Prompt = str | Sequence[int]


class LLM:
    """A loaded model. Installs no signal handlers and starts no threads.

    >>> llm = LLM("path/to/checkpoint", dtype="float32")
    >>> llm.generate(["Once upon a time"], SamplingParams(max_tokens=32))[0].outputs[0].text
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        skip_tokenizer: bool = False,
        platform_object: Platform | None = None,
        **settings: Any,
    ) -> None:
        """`model` is a folder or a .gguf file, None the demo model; `settings` are those of EngineConfig.

        `skip_tokenizer` serves token ids only. Raises ConfigError or CheckpointError.
        """
        try:
            config = EngineConfig(model=model or require_demo_model(), **settings).resolved()
        except TypeError as error:
            raise ConfigError(f"{error}; settings are {', '.join(EngineConfig.__struct_fields__)}") from None
        checkpoint = open_checkpoint(config.model)
        self.tokenizer = None if skip_tokenizer else Tokenizer.load(checkpoint.folder)
        size = self.tokenizer.size if self.tokenizer else None
        self._built = build(config, checkpoint, platform_object, size)
        self.core = self._built.core
        self._next_id = 0
        self._live: dict[str, OutputProcessor] = {}

    def config(self) -> dict[str, Any]:
        """Every setting as asked for, and under "effective" what the engine runs with."""
        asked: dict[str, Any] = msgspec.to_builtins(self._built.config)
        return {**asked, "effective": msgspec.to_builtins(self._built.effective)}

    def generate(
        self,
        prompts: Prompt | Sequence[Prompt],
        params: SamplingParams | Sequence[SamplingParams] | None = None,
        progress: bool | None = None,
    ) -> list[RequestOutput]:
        """The outputs of all prompts, in their order, served together.

        `params` is one for all or one for each. `progress` None shows it on a terminal. Raises RequestError
        before anything runs when a prompt or its params cannot be served.
        """
        many = _as_list(prompts)
        each = list(params) if isinstance(params, Sequence) else [params or SamplingParams()] * len(many)
        if len(each) != len(many):
            raise RequestError(f"{len(many)} prompts came with {len(each)} params; give one for all or one for each")
        processors = self._add_all(many, each)
        shown = Progress(len(many), sys.stderr.isatty() if progress is None else progress)
        try:
            for processor, _ in self._run(processors):
                shown.token(processor.output.finished)
        finally:
            shown.close()
            self._abort(processors)
        return [processor.output for processor in processors.values()]

    def chat(self, messages: Sequence[Mapping[str, Any]], params: SamplingParams | None = None) -> RequestOutput:
        """The answer to a conversation of {"role", "content"} messages, through the checkpoint's chat template."""
        return self.generate([self._tokenizer.encode_chat(messages)], params, progress=False)[0]

    def stream(self, prompt: Prompt, params: SamplingParams | None = None) -> Iterator[str]:
        """The text of the first choice, piece by piece. Raises RequestError when the request ends with an error."""
        processors = self._add_all([prompt], [params or SamplingParams()])
        try:
            for processor, (index, delta) in self._run(processors):
                error = processor.output.outputs[0].error
                if error:
                    raise RequestError(error)
                if index == 0 and delta:
                    yield delta
        finally:
            self._abort(processors)

    @property
    def _tokenizer(self) -> Tokenizer:
        if self.tokenizer is None:
            raise RequestError("this engine was started without a tokenizer; give token ids")
        return self.tokenizer

    def _add_all(self, prompts: Sequence[Prompt], params: Sequence[SamplingParams]) -> dict[str, OutputProcessor]:
        processors: dict[str, OutputProcessor] = {}
        try:
            for prompt, own in zip(prompts, params, strict=True):
                request_id = str(self._next_id)
                self._next_id += 1
                ids = self._tokenizer.encode(prompt) if isinstance(prompt, str) else list(prompt)
                self.core.add_request(request_id, ids, self._with_word_ids(own))
                processors[request_id] = OutputProcessor(request_id, ids, own, self.tokenizer)
                self._live[request_id] = processors[request_id]
        except BaseException:
            self._abort(processors)
            raise
        return processors

    def _with_word_ids(self, params: SamplingParams) -> SamplingParams:
        if params.stop and self.tokenizer is None:
            raise RequestError("stop strings need a tokenizer; use stop_token_ids")
        if not params.bad_words:
            return params
        words = [ids for word in params.bad_words for ids in self._tokenizer.word_ids(word)]
        return msgspec.structs.replace(params, bad_word_ids=(*params.bad_word_ids, *words))

    def _run(self, processors: Mapping[str, OutputProcessor]) -> Iterator[tuple[OutputProcessor, tuple[int, str]]]:
        """Step until these requests are finished; each update as (its request, (choice, new text))."""
        while True:
            for processor in processors.values():
                while processor.news:
                    yield processor, processor.news.popleft()
            if all(processor.output.finished for processor in processors.values()):
                return
            self._step()

    def _step(self) -> None:
        """One step for all live requests, those of other callers included: streams may be read in turns."""
        for update in self.core.step():
            processor = self._live.get(update.request_id)
            if processor and processor.advance(update):
                self.core.stop(update.request_id, update.index)

    def _abort(self, processors: Mapping[str, OutputProcessor]) -> None:
        for request_id in processors:
            self._live.pop(request_id, None)
            self.core.abort(request_id)
        while self.core.has_work and not self.core.requests:
            self.core.step()


def _as_list(prompts: Prompt | Sequence[Prompt]) -> list[Prompt]:
    if isinstance(prompts, str):
        return [prompts]
    if prompts and all(isinstance(item, int) for item in prompts):
        return [prompts]  # type: ignore[list-item]
    return list(prompts)  # type: ignore[arg-type]
