"""Llama and what is built like it."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from engine.core.batch import ForwardBatch
from engine.errors import CheckpointError
from engine.layers.attention import AttentionShape, KVCache, SelfAttention
from engine.layers.context import BuildContext
from engine.layers.embedding import Embedding, Head
from engine.layers.mlp import GatedMLP
from engine.layers.norm import RMSNorm
from engine.layers.rotary import Rotary, rope_parameters


class LlamaLayer:
    """norm, attention, add; norm, feed-forward, add."""

    def __init__(
        self, config: Mapping[str, Any], context: BuildContext, index: int, shape: AttentionShape, qk_norm: bool
    ) -> None:
        name, hidden, eps = f"model.layers.{index}", config["hidden_size"], config.get("rms_norm_eps", 1e-6)
        self.input_norm = RMSNorm(context, f"{name}.input_layernorm", hidden, eps)
        self.attention = SelfAttention(
            context,
            f"{name}.self_attn",
            index,
            shape,
            bias=config.get("attention_bias", False),
            norm=(lambda norm: RMSNorm(context, norm, shape.head_dim, eps)) if qk_norm else None,
        )
        self.post_norm = RMSNorm(context, f"{name}.post_attention_layernorm", hidden, eps)
        self.mlp = GatedMLP(
            context,
            f"{name}.mlp",
            hidden,
            config["intermediate_size"],
            "silu_and_mul",
            bias=config.get("mlp_bias", False),
        )


class LlamaModel:
    """A pre-norm decoder with rotary positions and a gated feed-forward."""

    def __init__(
        self, config: Mapping[str, Any], context: BuildContext, shapes: list[AttentionShape], qk_norm: bool = False
    ) -> None:
        hidden = config["hidden_size"]
        self.embed = Embedding(context, "model.embed_tokens", config["vocab_size"], hidden)
        self.rotary = Rotary(context, shapes[0].head_dim, rope_parameters(config, 10000.0))
        self.layers = [LlamaLayer(config, context, index, shape, qk_norm) for index, shape in enumerate(shapes)]
        self.norm = RMSNorm(context, "model.norm", hidden, config.get("rms_norm_eps", 1e-6))
        self.head = Head(context, "lm_head", self.embed, config.get("tie_word_embeddings", False))

    def forward(self, batch: ForwardBatch, cache: KVCache) -> Tensor:
        angles = self.rotary.at(batch.positions)
        residual = self.embed(batch.token_ids)
        x = self.layers[0].input_norm(residual)
        for layer, following in zip(self.layers, [*self.layers[1:], None], strict=True):
            x = layer.attention(x, angles, batch, cache)
            x, residual = layer.post_norm.after_add(x, residual)
            next_norm = following.input_norm if following else self.norm
            x, residual = next_norm.after_add(layer.mlp(x), residual)
        return x

    def logits(self, hidden: Tensor) -> Tensor:
        return self.head(hidden)


class LlamaFamily:
    prefixes = ("model.", "")
    extensible_positions = True
    qk_norm = False

    def attention(self, config: Mapping[str, Any]) -> list[AttentionShape]:
        require_activation(config, "hidden_act", "silu")
        heads = config["num_attention_heads"]
        dim = config.get("head_dim") or config["hidden_size"] // heads
        shape = AttentionShape(
            hidden=config["hidden_size"],
            num_heads=heads,
            num_kv_heads=config.get("num_key_value_heads") or heads,
            head_dim=dim,
            scale=dim**-0.5,
        )
        return [shape] * config["num_hidden_layers"]

    def build(self, config: Mapping[str, Any], context: BuildContext) -> LlamaModel:
        return LlamaModel(config, context, self.attention(config), self.qk_norm)


def require_activation(config: Mapping[str, Any], key: str, *supported: str) -> None:
    """Raises CheckpointError when the configuration names another activation; an absent key means the first."""
    activation = config.get(key) or supported[0]
    if activation not in supported:
        raise CheckpointError(f"{key} is {activation!r}; this family is implemented for {', '.join(supported)}")


FAMILY = LlamaFamily()
