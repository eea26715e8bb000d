"""Qwen3: Llama with normalised queries and keys."""

from collections.abc import Mapping
from typing import Any

import msgspec

from engine.layers.attention import AttentionShape
from engine.models.llama import LlamaFamily


class Qwen3Family(LlamaFamily):
    qk_norm = True

    def attention(self, config: Mapping[str, Any]) -> list[AttentionShape]:
        shapes = super().attention({"head_dim": 128, **config})
        window = config.get("sliding_window") if config.get("use_sliding_window") else None
        if window is None:
            return shapes
        kinds = config.get("layer_types") or [
            "sliding_attention" if index >= config.get("max_window_layers", 28) else "full_attention"
            for index in range(len(shapes))
        ]
        return [
            msgspec.structs.replace(shape, window=window if kind == "sliding_attention" else None)
            for shape, kind in zip(shapes, kinds, strict=True)
        ]


FAMILY = Qwen3Family()
