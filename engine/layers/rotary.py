"""Rotary position embeddings."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from engine.errors import CheckpointError
from engine.layers.context import BuildContext


class Rotary:
    """Angles for positions. Layers that share parameters share one object, and one look-up per step."""

    def __init__(self, context: BuildContext, dim: int, parameters: Mapping[str, Any]) -> None:
        """`parameters` as in the checkpoint's `rope_parameters`: rope_type, rope_theta and what the type needs."""
        frequencies = inverse_frequencies(dim, parameters)
        angles = torch.outer(torch.arange(context.max_model_len, dtype=torch.float32), frequencies)
        angles = torch.cat((angles, angles), dim=-1)
        self._cos = angles.cos().to(context.dtype).to(context.device)
        self._sin = angles.sin().to(context.dtype).to(context.device)

    def at(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """cos and sin [T, dim] of positions [T]."""
        return self._cos[positions], self._sin[positions]


def inverse_frequencies(dim: int, parameters: Mapping[str, Any]) -> Tensor:
    """Radians per position for each pair of the head dimension, [dim / 2]. Raises CheckpointError on a foreign type."""
    kind = parameters.get("rope_type") or parameters.get("type") or "default"
    exponents = torch.arange(0, dim, 2, dtype=torch.float32) / dim
    frequencies = 1.0 / (float(parameters["rope_theta"]) ** exponents)
    if kind == "default":
        return frequencies
    if kind == "linear":
        return frequencies / float(parameters["factor"])
    if kind == "llama3":
        return _llama3(frequencies, parameters)
    raise CheckpointError(f"rope_type {kind!r} is not supported; supported are default, linear and llama3")


def _llama3(frequencies: Tensor, parameters: Mapping[str, Any]) -> Tensor:
    factor = float(parameters["factor"])
    low, high = float(parameters["low_freq_factor"]), float(parameters["high_freq_factor"])
    turns = float(parameters["original_max_position_embeddings"]) * frequencies / (2 * math.pi)
    # Fast pairs keep their frequency, slow ones are stretched, those between are blended.
    blend = ((turns - low) / (high - low)).clamp(0, 1)
    return (1 - blend) * frequencies / factor + blend * frequencies


def rope_parameters(config: Mapping[str, Any], theta: float) -> dict[str, Any]:
    """The configuration's rotary parameters, whichever of its two spellings it has; `theta` is the family's default."""
    parameters = dict(config.get("rope_parameters") or config.get("rope_scaling") or {})
    parameters.setdefault("rope_theta", config.get("rope_theta", theta))
    return parameters
