"""The reference implementation of every op, in plain torch. T is tokens of the flat batch."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.core.batch import AttentionBatch
from engine.ops.table import portable


@portable("linear")
def linear(weight: Tensor, bias: Tensor | None = None) -> Callable[[Tensor], Tensor]:
    """Prepare x [T, in] -> x @ weight.T + bias [T, out] once, for weight [out, in]. May keep another layout."""
    return lambda x: F.linear(x, weight, bias)


@portable("rms_norm")
def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x / sqrt(mean(x^2) + eps) * weight over the last dimension, in float32, in x's dtype."""
    value = x.float()
    value = value * torch.rsqrt(value.pow(2).mean(-1, keepdim=True) + eps)
    return (value * weight.float()).to(x.dtype)


@portable("add_rms_norm", fuses=("add", "rms_norm"))
def add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """(rms_norm(x + residual), x + residual)."""
    total = x + residual
    return rms_norm(total, weight, eps), total


@portable("layer_norm")
def layer_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    """Layer normalisation over the last dimension."""
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


@portable("silu_and_mul", fuses=("silu", "mul"))
def silu_and_mul(x: Tensor) -> Tensor:
    """silu(gate) * up for x [T, 2 * n] = gate, up."""
    gate, up = x.chunk(2, dim=-1)
    return F.silu(gate) * up


@portable("gelu_tanh_and_mul", fuses=("gelu_tanh", "mul"))
def gelu_tanh_and_mul(x: Tensor) -> Tensor:
    """gelu(gate) * up, by the tanh approximation, for x [T, 2 * n] = gate, up."""
    gate, up = x.chunk(2, dim=-1)
    return F.gelu(gate, approximate="tanh") * up


@portable("rotary")
def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate x [T, heads, dim] by angles of which cos and sin are [T, dim]; halves are rotated against each other."""
    first, second = x.chunk(2, dim=-1)
    turned = torch.cat((-second, first), dim=-1)
    return x * cos[:, None, :] + turned * sin[:, None, :]


@portable("softcap")
def softcap(x: Tensor, cap: float) -> Tensor:
    """cap * tanh(x / cap), in the exponential form that kernels share; finite for every x but NaN."""
    # The fraction goes to 0 or to 2 as the exponential overflows or vanishes: no inf / inf.
    return cap * (1 - 2 / (torch.exp(2 * x / cap) + 1))


@portable("store_kv")
def store_kv(key: Tensor, value: Tensor, key_cache: Tensor, value_cache: Tensor, slots: Tensor) -> None:
    """Write key and value [T, kv_heads, dim] at `slots` of caches [blocks, block_size, kv_heads, dim]."""
    key_cache.flatten(0, 1).index_copy_(0, slots, key)
    value_cache.flatten(0, 1).index_copy_(0, slots, value)


@portable("paged_attention")
def paged_attention(
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    batch: AttentionBatch,
    scale: float,
    window: int | None = None,
    cap: float | None = None,
) -> Tensor:
    """Causal attention of query [T, heads, dim] over each sequence's pages, -> [T, heads, dim].

    A query at position p sees keys k with p - window < k <= p. Scores are float32.
    """
    output = torch.empty_like(query)
    heads, kv_heads = query.shape[1], key_cache.shape[2]
    for row, (start, count, context) in enumerate(
        zip(batch.query_starts, batch.query_lens, batch.context_lens, strict=True)
    ):
        first = 0 if window is None else max(0, context - count - window + 1) // batch.block_size
        pages = batch.block_table[row, first : -(-context // batch.block_size)]
        origin = first * batch.block_size
        keys, values = (
            cache[pages].flatten(0, 1)[: context - origin].float().repeat_interleave(heads // kv_heads, dim=1)
            for cache in (key_cache, value_cache)
        )
        rows = query[start : start + count].float()
        scores = torch.einsum("qhd,khd->hqk", rows, keys) * scale
        if cap is not None:
            scores = softcap(scores, cap)
        hidden = hidden_keys(count, context, window, query.device)[:, origin:]
        weights = torch.softmax(scores.masked_fill(hidden, -torch.inf), dim=-1)
        output[start : start + count] = torch.einsum("hqk,khd->qhd", weights, values).to(query.dtype)
    return output


def hidden_keys(count: int, context: int, window: int | None, device: torch.device) -> Tensor:
    """Mask [count, context] of the keys that the last `count` positions of `context` do not see."""
    queries = torch.arange(context - count, context, device=device)[:, None]
    keys = torch.arange(context, device=device)[None, :]
    hidden = keys > queries
    return hidden if window is None else hidden | (keys <= queries - window)
