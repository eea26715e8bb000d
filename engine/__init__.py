"""A device-agnostic LLM inference engine: paged KV cache, continuous batching, several model families."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.config import EngineConfig
    from engine.llm import LLM
    from engine.sampling.params import SamplingParams

__all__ = ["LLM", "EngineConfig", "SamplingParams"]

_HOMES = {"LLM": "engine.llm", "EngineConfig": "engine.config", "SamplingParams": "engine.sampling.params"}


def __getattr__(name: str) -> Any:
    # Importing the package must not import torch: the command line answers without it.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
