"""OPT, in both layouts: norm before each part, or (as the 350M model) after it with projected embeddings."""

from collections.abc import Callable, Mapping
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from engine.core.batch import ForwardBatch
from engine.layers.attention import AttentionShape, KVCache, PagedAttention
from engine.layers.context import BuildContext
from engine.layers.embedding import Embedding, Head
from engine.layers.norm import LayerNorm
from engine.models.llama import require_activation

# Rows of the position table before that of position 0.
POSITION_OFFSET = 2

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}


class OPTLayer:
    """Attention and feed-forward, each with its residual and its norm."""

    def __init__(self, config: Mapping[str, Any], context: BuildContext, index: int, shape: AttentionShape) -> None:
        name, hidden, inner = f"model.decoder.layers.{index}", config["hidden_size"], config["ffn_dim"]
        bias = config.get("enable_bias", True)
        affine = config.get("layer_norm_elementwise_affine", True)
        self.pre_norm = config.get("do_layer_norm_before", True)
        self.attention_norm = LayerNorm(context, f"{name}.self_attn_layer_norm", hidden, affine)
        names = [f"{name}.self_attn.{part}_proj" for part in "qkv"]
        self.qkv = context.fused_linear(names, [hidden] * 3, hidden, bias)
        self.attention = PagedAttention(context, index, shape)
        self.output = context.linear(f"{name}.self_attn.out_proj", (hidden, hidden), bias)
        self.mlp_norm = LayerNorm(context, f"{name}.final_layer_norm", hidden, affine)
        self.up = context.linear(f"{name}.fc1", (inner, hidden), bias)
        self.activation = _ACTIVATIONS[config.get("activation_function", "relu")]
        self.down = context.linear(f"{name}.fc2", (hidden, inner), bias)

    def __call__(self, x: Tensor, batch: ForwardBatch, cache: KVCache) -> Tensor:
        x = self._with_residual(x, self.attention_norm, lambda inner: self._attend(inner, batch, cache))
        return self._with_residual(x, self.mlp_norm, lambda inner: self.down(self.activation(self.up(inner))))

    def _with_residual(self, x: Tensor, norm: LayerNorm, part: Callable[[Tensor], Tensor]) -> Tensor:
        return x + part(norm(x)) if self.pre_norm else norm(x + part(x))

    def _attend(self, x: Tensor, batch: ForwardBatch, cache: KVCache) -> Tensor:
        dim = self.attention.shape.head_dim
        query, key, value = (part.unflatten(-1, (-1, dim)) for part in self.qkv(x).chunk(3, dim=-1))
        return self.output(self.attention(query, key, value, batch, cache))


class OPTModel:
    """A decoder with learned positions."""

    def __init__(self, config: Mapping[str, Any], context: BuildContext, shapes: list[AttentionShape]) -> None:
        hidden = config["hidden_size"]
        embed_dim = config.get("word_embed_proj_dim") or hidden
        rows = config["max_position_embeddings"] + POSITION_OFFSET
        projected = embed_dim != hidden
        self.embed = Embedding(context, "model.decoder.embed_tokens", config["vocab_size"], embed_dim)
        self.positions = Embedding(context, "model.decoder.embed_positions", rows, hidden)
        self.project_in = context.linear("model.decoder.project_in", (hidden, embed_dim)) if projected else None
        self.layers = [OPTLayer(config, context, index, shape) for index, shape in enumerate(shapes)]
        final = config.get("do_layer_norm_before", True) and not config.get("_remove_final_layer_norm", False)
        affine = config.get("layer_norm_elementwise_affine", True)
        self.norm = LayerNorm(context, "model.decoder.final_layer_norm", hidden, affine) if final else None
        self.project_out = context.linear("model.decoder.project_out", (embed_dim, hidden)) if projected else None
        self.head = Head(context, "lm_head", self.embed, config.get("tie_word_embeddings", True))

    def forward(self, batch: ForwardBatch, cache: KVCache) -> Tensor:
        x = self.embed(batch.token_ids)
        if self.project_in:
            x = self.project_in(x)
        x = x + self.positions(batch.positions + POSITION_OFFSET)
        for layer in self.layers:
            x = layer(x, batch, cache)
        return self.norm(x) if self.norm else x

    def logits(self, hidden: Tensor) -> Tensor:
        return self.head(self.project_out(hidden) if self.project_out else hidden)


class OPTFamily:
    prefixes = ("model.", "")
    extensible_positions = False

    def attention(self, config: Mapping[str, Any]) -> list[AttentionShape]:
        require_activation(config, "activation_function", *_ACTIVATIONS)
        heads = config["num_attention_heads"]
        dim = config["hidden_size"] // heads
        shape = AttentionShape(
            hidden=config["hidden_size"], num_heads=heads, num_kv_heads=heads, head_dim=dim, scale=dim**-0.5
        )
        return [shape] * config["num_hidden_layers"]

    def build(self, config: Mapping[str, Any], context: BuildContext) -> OPTModel:
        return OPTModel(config, context, self.attention(config))


FAMILY = OPTFamily()
