"""Gemma 3, text: norms around each part, sliding-window layers between full ones, each kind with its own rotation."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from engine.core.batch import ForwardBatch
from engine.errors import CheckpointError
from engine.layers.attention import AttentionShape, KVCache, SelfAttention
from engine.layers.context import BuildContext
from engine.layers.embedding import Embedding, Head
from engine.layers.mlp import GatedMLP
from engine.layers.norm import RMSNorm
from engine.layers.rotary import Rotary
from engine.models.llama import require_activation

_THETA = {"full_attention": 1_000_000.0, "sliding_attention": 10_000.0}


class Gemma3Layer:
    """Each part is normalised before and after, and then added."""

    def __init__(self, config: Mapping[str, Any], context: BuildContext, index: int, shape: AttentionShape) -> None:
        name, hidden, eps = f"model.layers.{index}", config["hidden_size"], config.get("rms_norm_eps", 1e-6)

        def norm(part: str, dim: int = hidden) -> RMSNorm:
            return RMSNorm(context, part, dim, eps, unit_offset=True)

        self.input_norm = norm(f"{name}.input_layernorm")
        self.attention = SelfAttention(
            context,
            f"{name}.self_attn",
            index,
            shape,
            bias=config.get("attention_bias", False),
            norm=lambda part: norm(part, shape.head_dim),
        )
        self.post_attention_norm = norm(f"{name}.post_attention_layernorm")
        self.pre_mlp_norm = norm(f"{name}.pre_feedforward_layernorm")
        self.mlp = GatedMLP(context, f"{name}.mlp", hidden, config["intermediate_size"], "gelu_tanh_and_mul")
        self.post_mlp_norm = norm(f"{name}.post_feedforward_layernorm")

    def __call__(self, x: Tensor, angles: tuple[Tensor, Tensor], batch: ForwardBatch, cache: KVCache) -> Tensor:
        attended = self.post_attention_norm(self.attention(self.input_norm(x), angles, batch, cache))
        hidden, x = self.pre_mlp_norm.after_add(attended, x)
        return x + self.post_mlp_norm(self.mlp(hidden))


class Gemma3Model:
    """A decoder over scaled embeddings."""

    def __init__(self, config: Mapping[str, Any], context: BuildContext, shapes: list[AttentionShape]) -> None:
        hidden = config["hidden_size"]
        self.kinds = layer_kinds(config)
        self.embed = Embedding(context, "model.embed_tokens", config["vocab_size"], hidden)
        # Rounded to the weights' dtype, as in training.
        self.embed_scale = torch.tensor(hidden**0.5, dtype=context.dtype, device=context.device)
        self.rotary = {
            kind: Rotary(context, shapes[0].head_dim, rotary_parameters(config, kind)) for kind in set(self.kinds)
        }
        self.layers = [Gemma3Layer(config, context, index, shape) for index, shape in enumerate(shapes)]
        self.norm = RMSNorm(context, "model.norm", hidden, config.get("rms_norm_eps", 1e-6), unit_offset=True)
        self.head = Head(context, "lm_head", self.embed, config.get("tie_word_embeddings", True))
        self.cap = config.get("final_logit_softcapping")
        self._softcap = context.ops.softcap

    def forward(self, batch: ForwardBatch, cache: KVCache) -> Tensor:
        angles = {kind: rotary.at(batch.positions) for kind, rotary in self.rotary.items()}
        x = self.embed(batch.token_ids) * self.embed_scale
        for layer, kind in zip(self.layers, self.kinds, strict=True):
            x = layer(x, angles[kind], batch, cache)
        return self.norm(x)

    def logits(self, hidden: Tensor) -> Tensor:
        logits = self.head(hidden)
        return logits if self.cap is None else self._softcap(logits, self.cap)


class Gemma3Family:
    prefixes = ("model.", "")
    extensible_positions = True

    def attention(self, config: Mapping[str, Any]) -> list[AttentionShape]:
        require_activation(config, "hidden_activation", "gelu_pytorch_tanh")
        if config.get("use_bidirectional_attention"):
            raise CheckpointError("use_bidirectional_attention is set: this is an encoder, which cannot generate")
        return [
            AttentionShape(
                hidden=config["hidden_size"],
                num_heads=config["num_attention_heads"],
                num_kv_heads=config["num_key_value_heads"],
                head_dim=config.get("head_dim", 256),
                scale=config.get("query_pre_attn_scalar", 256) ** -0.5,
                window=config.get("sliding_window", 4096) if kind == "sliding_attention" else None,
                cap=config.get("attn_logit_softcapping"),
            )
            for kind in layer_kinds(config)
        ]

    def build(self, config: Mapping[str, Any], context: BuildContext) -> Gemma3Model:
        return Gemma3Model(config, context, self.attention(config))


def layer_kinds(config: Mapping[str, Any]) -> list[str]:
    """The attention kind of each layer: as listed, or every `sliding_window_pattern`-th one full."""
    listed = config.get("layer_types")
    if listed:
        return list(listed)
    pattern = config.get("sliding_window_pattern") or 6
    return [
        "sliding_attention" if (index + 1) % pattern else "full_attention"
        for index in range(config["num_hidden_layers"])
    ]


def rotary_parameters(config: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Rotary parameters of one attention kind, from the present spelling or the older flat keys."""
    parameters = dict((config.get("rope_parameters") or {}).get(kind) or {})
    if kind == "full_attention":
        parameters = parameters or dict(config.get("rope_scaling") or {})
        parameters.setdefault("rope_theta", config.get("rope_theta", _THETA[kind]))
    else:
        parameters.setdefault("rope_theta", config.get("rope_local_base_freq", _THETA[kind]))
    return parameters


FAMILY = Gemma3Family()
