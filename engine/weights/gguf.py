"""Reading GGUF files: configuration and tensors under the names and layouts of the families' own checkpoints."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGMLQuantizationType, GGUFReader, ReaderTensor, dequantize
from torch import Tensor

from engine.errors import CheckpointError

_TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_GEMMA_LAYER = {
    **_LAYER,
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
# GGUF architecture -> (`architectures`, `model_type`) of config.json.
_ARCHITECTURES = {
    "llama": ("LlamaForCausalLM", "llama"),
    "qwen3": ("Qwen3ForCausalLM", "qwen3"),
    "gemma3": ("Gemma3ForCausalLM", "gemma3_text"),
}
# The one size whose attention scale is not that of its head dimension.
_GEMMA_27B_LAYERS = 62


class GGUFFile:
    """One GGUF file of a supported architecture."""

    def __init__(self, path: Path) -> None:
        """Raises CheckpointError when it is no GGUF file or its architecture is not supported."""
        self.path = path
        try:
            self._reader = GGUFReader(path)
        except (ValueError, IndexError) as error:
            raise CheckpointError(f"{path} cannot be read as GGUF: {error}") from None
        self.architecture = self._value("general.architecture")
        if self.architecture not in _ARCHITECTURES:
            supported = ", ".join(_ARCHITECTURES)
            raise CheckpointError(f"{path} has architecture {self.architecture!r}; supported in GGUF are {supported}")

    def config(self) -> dict[str, Any]:
        """What config.json of the same model holds."""
        tensors = {tensor.name: tensor for tensor in self._reader.tensors}
        heads, hidden = self._size("attention.head_count"), self._size("embedding_length")
        head_dim = self._value(f"{self.architecture}.attention.key_length", hidden // heads)
        config: dict[str, Any] = {
            "architectures": [_ARCHITECTURES[self.architecture][0]],
            "model_type": _ARCHITECTURES[self.architecture][1],
            "vocab_size": int(tensors["token_embd.weight"].shape[1]),
            "hidden_size": hidden,
            "intermediate_size": self._size("feed_forward_length"),
            "num_hidden_layers": self._size("block_count"),
            "num_attention_heads": heads,
            "num_key_value_heads": self._value(f"{self.architecture}.attention.head_count_kv", heads),
            "head_dim": head_dim,
            "max_position_embeddings": self._size("context_length"),
            "rms_norm_eps": self._value(f"{self.architecture}.attention.layer_norm_rms_epsilon"),
            "tie_word_embeddings": "output.weight" not in tensors,
            "bos_token_id": self._token("bos_token_id"),
            "eos_token_id": self._token("eos_token_id"),
        }
        rope = {"rope_type": "default", "rope_theta": self._value(f"{self.architecture}.rope.freq_base", 10000.0)}
        rope |= self._rope_scaling(tensors)
        return config | (self._gemma(rope, heads, head_dim) if self.architecture == "gemma3" else self._plain(rope))

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Every tensor under its checkpoint name, dequantised to float32 unless stored as a half."""
        for tensor in self._reader.tensors:
            yield self._checkpoint_name(tensor.name), self._restore(tensor)

    def _restore(self, tensor: ReaderTensor) -> Tensor:
        kind = tensor.tensor_type
        try:
            data = dequantize(tensor.data, kind)
        except NotImplementedError:
            raise CheckpointError(
                f"tensor {tensor.name!r} of {self.path} is stored as {kind.name}, which cannot be dequantised here; "
                "convert the file to another type, for example Q8_0"
            ) from None
        shape = tuple(int(size) for size in reversed(tensor.shape))
        values = torch.from_numpy(np.array(data, dtype=np.float32)).reshape(shape)
        if self.architecture == "llama" and re.search(r"\.attn_[qk]\.", tensor.name):
            heads = self._size("attention.head_count" + ("_kv" if ".attn_k." in tensor.name else ""))
            values = unpermute(values, heads)
        if self.architecture == "gemma3" and tensor.name.endswith("norm.weight"):
            # GGUF stores what the norm multiplies by; the family's checkpoints store it less 1.
            values = values - 1
        half = {GGMLQuantizationType.F16: torch.float16, GGMLQuantizationType.BF16: torch.bfloat16}
        return values.to(half.get(kind, torch.float32)).contiguous()

    def _checkpoint_name(self, name: str) -> str:
        match = re.fullmatch(r"blk\.(\d+)\.(\w+)\.(weight|bias)", name)
        layer = _GEMMA_LAYER if self.architecture == "gemma3" else _LAYER
        if match and match[2] in layer:
            return f"model.layers.{match[1]}.{layer[match[2]]}.{match[3]}"
        stem, _, kind = name.rpartition(".")
        if stem in _TOP:
            return f"{_TOP[stem]}.{kind}"
        raise CheckpointError(f"tensor {name!r} of {self.path} has no place in a {self.architecture} model")

    def _rope_scaling(self, tensors: dict[str, ReaderTensor]) -> dict[str, Any]:
        if "rope_freqs.weight" in tensors:
            raise CheckpointError(f"{self.path} scales its rotation by a tensor (rope_freqs); that is not supported")
        kind = self._value(f"{self.architecture}.rope.scaling.type", "none")
        if kind == "none":
            return {}
        return {"rope_type": kind, "factor": self._value(f"{self.architecture}.rope.scaling.factor")}

    def _plain(self, rope: dict[str, Any]) -> dict[str, Any]:
        return {"rope_parameters": rope, "hidden_act": "silu"}

    def _gemma(self, rope: dict[str, Any], heads: int, head_dim: int) -> dict[str, Any]:
        large = self._size("block_count") == _GEMMA_27B_LAYERS
        return {
            "hidden_activation": "gelu_pytorch_tanh",
            "rope_parameters": {
                "full_attention": rope,
                "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
            },
            "sliding_window": self._size("attention.sliding_window"),
            "query_pre_attn_scalar": self._size("embedding_length") // heads if large else head_dim,
            "final_logit_softcapping": self._value("gemma3.final_logit_softcapping", None),
        }

    def _size(self, key: str) -> int:
        return int(self._value(f"{self.architecture}.{key}"))

    def _token(self, key: str) -> int:
        return int(self._value(f"tokenizer.ggml.{key}"))

    def _value(self, key: str, *default: Any) -> Any:
        field = self._reader.fields.get(key)
        if field is not None:
            return field.contents()
        if default:
            return default[0]
        raise CheckpointError(f"{self.path} has no {key!r}; without it the model cannot be run as it was made")


def unpermute(weight: Tensor, heads: int) -> Tensor:
    """Rows of q or k [heads * dim, ...] from pairs beside each other to halves beside each other."""
    pairs = weight.reshape(heads, weight.shape[0] // heads // 2, 2, *weight.shape[1:])
    return pairs.transpose(1, 2).reshape(weight.shape)
