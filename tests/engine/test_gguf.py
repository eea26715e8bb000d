"""GGUF files: every supported type, the layouts that differ, the tokenizer inside, and the conversion cache."""

from pathlib import Path
from typing import Any

import engine_harness as harness
import gguf
import numpy as np
import pytest
import tiny_models as tiny
import torch
from gguf import GGMLQuantizationType as Type

from engine.config import EngineConfig
from engine.core.startup import build
from engine.errors import CheckpointError
from engine.llm import LLM
from engine.sampling.params import SamplingParams
from engine.tokens.tokenizer import Tokenizer
from engine.weights.checkpoint import open_checkpoint
from engine.weights.conversion import cache_folder, converted
from engine.weights.gguf import GGUFFile, unpermute

_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "post_attention_layernorm": "ffn_norm",
}
_GEMMA_NAMES = {
    **_NAMES,
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
_MERGES = (("h", "e"), ("l", "l"))
_TOP = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGINE_CACHE_DIR", str(tmp_path / "cache"))


def permute(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """As GGUF stores q and k of a Llama: the two halves of a head interleaved."""
    halves = weight.reshape(heads, 2, weight.shape[0] // heads // 2, -1)
    return halves.swapaxes(1, 2).reshape(weight.shape)


def write(path: Path, family: str, model: Any, kind: Type = Type.F32, skip: tuple[str, ...] = ()) -> None:
    """Write a transformers model as a GGUF file; norms stay F32, as everywhere."""
    config = model.config
    writer = gguf.GGUFWriter(path, family)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    if family == "gemma3":
        writer.add_sliding_window(config.sliding_window)
        writer.add_rope_freq_base(1_000_000.0)
    else:
        writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    _add_tokenizer(writer, skip)
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        stored, data = _as_stored(family, config, name, tensor.float())
        used = Type.F32 if tensor.ndim == 1 else kind
        writer.add_tensor(stored, gguf.quants.quantize(data.numpy(), used), raw_dtype=used)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_tokenizer(writer: gguf.GGUFWriter, skip: tuple[str, ...]) -> None:
    words = sorted(tiny.tokenizer(_MERGES).get_vocab().items(), key=lambda item: item[1])
    tokens = [word for word, _ in words]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if word.startswith("<|") else 1 for word in tokens])
    writer.add_token_merges([" ".join(pair) for pair in _MERGES])
    if "bos_token_id" not in skip:
        writer.add_bos_token_id(1)
    if "eos_token_id" not in skip:
        writer.add_eos_token_id(2)
    writer.add_chat_template(tiny.CHAT_TEMPLATE)


def _as_stored(family: str, config: Any, name: str, tensor: torch.Tensor) -> tuple[str, torch.Tensor]:
    stem, _, _ = name.rpartition(".")
    if stem in _TOP:
        stored = f"{_TOP[stem]}.weight"
    else:
        _, _, layer, part = stem.split(".", 3)
        stored = f"blk.{layer}.{(_GEMMA_NAMES if family == 'gemma3' else _NAMES)[part]}.weight"
    if family == "llama" and ".q_proj" in name:
        tensor = permute(tensor, config.num_attention_heads)
    if family == "llama" and ".k_proj" in name:
        tensor = permute(tensor, config.num_key_value_heads)
    if family == "gemma3" and "norm" in name:
        tensor = tensor + 1
    return stored, tensor


def generate(path: Path, prompts: list[list[int]]) -> list[list[int]]:
    config = EngineConfig(model=str(path), dtype="float32", kv_cache_memory=2**22, max_model_len=256, seed=0)
    return harness.generate(build(config, open_checkpoint(str(path))).core, prompts)


@pytest.mark.parametrize("family", ["llama", "qwen3", "gemma3"])
def test_an_exact_file_gives_the_tokens_of_the_model_it_was_made_from(family: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    write(path, family, tiny.model(family))
    prompts = tiny.prompts(4)
    expected = [list(tiny.reference(family, tuple(prompt), 24)) for prompt in prompts]
    assert not any(2 in tokens for tokens in expected)
    assert generate(path, prompts) == expected


@pytest.mark.parametrize("kind", [Type.F16, Type.BF16, Type.Q8_0, Type.Q4_0, Type.Q4_1, Type.Q5_0])
def test_every_type_gives_the_tokens_of_a_model_with_the_same_values(kind: Type, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    model = tiny.build("llama")
    write(path, "llama", model, kind)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                stored = gguf.quants.quantize(parameter.numpy(), kind)
                parameter.copy_(torch.from_numpy(gguf.dequantize(stored, kind)))
    for prompt in tiny.prompts(4):
        ids = torch.tensor([prompt])
        out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=24, do_sample=False)
        expected = out[0, len(prompt) :].tolist()
        if 2 in expected:
            # The file names an end of text, which the tiny model does not have.
            expected = expected[: expected.index(2) + 1]
        assert generate(path, [prompt]) == [expected]


@pytest.mark.parametrize(("kind", "block_bytes"), [(Type.Q4_K, 144), (Type.Q6_K, 210)])
def test_k_quants_are_dequantised(kind: Type, block_bytes: int, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    model = tiny.build("llama", hidden_size=256, intermediate_size=256, head_dim=8)
    blocks = np.random.default_rng(0).integers(0, 60, (256, block_bytes), dtype=np.uint8)
    original = gguf.quants.quantize

    def planted(data: np.ndarray[Any, Any], used: Type) -> np.ndarray[Any, Any]:
        return blocks if data.shape == (256, 256) else original(data, used)

    write_with = pytest.MonkeyPatch()
    write_with.setattr(gguf.quants, "quantize", planted)
    raw = gguf.GGUFWriter.add_tensor
    write_with.setattr(
        gguf.GGUFWriter,
        "add_tensor",
        lambda self, name, data, raw_dtype: raw(self, name, data, raw_dtype=kind if data is blocks else raw_dtype),
    )
    write(path, "llama", model)
    write_with.undo()
    tensors = dict(GGUFFile(path).tensors())
    expected = torch.from_numpy(gguf.dequantize(blocks, kind))
    assert torch.equal(tensors["model.layers.0.mlp.gate_proj.weight"], expected)
    assert expected.unique().numel() > 100


def test_unpermute_undoes_the_permutation() -> None:
    weight = torch.randn(4 * 8, 5)
    assert torch.equal(unpermute(permute(weight, 4), 4), weight)
    assert not torch.equal(permute(weight, 4), weight)


@pytest.mark.parametrize("key", ["bos_token_id", "eos_token_id"])
def test_ml_11_a_file_without_bos_or_eos_is_refused_by_name(key: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    write(path, "llama", tiny.model("llama"), skip=(key,))
    with pytest.raises(CheckpointError, match=f"has no 'tokenizer.ggml.{key}'"):
        converted(path)
    assert not cache_folder(path).exists()
    assert list(cache_folder(path).parent.iterdir()) == []


def test_the_tokenizer_and_the_chat_template_come_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    write(path, "llama", tiny.model("llama"))
    tokenizer = Tokenizer.load(converted(path))
    text = "hello <|start|> 🌊"
    assert tokenizer.decode(tokenizer.encode(text), skip_special=False) == text
    ids = tokenizer.encode_chat([{"role": "user", "content": "hello"}])
    assert tokenizer.decode(ids, skip_special=False) == "<|start|>user\nhello<|end|>\n<|start|>assistant\n"
    out = LLM(str(path), max_model_len=64, dtype="float32").generate("hello", SamplingParams(max_tokens=3))
    assert len(out[0].outputs[0].token_ids) == 3


def test_a_file_is_converted_once_and_again_when_it_changed(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    write(path, "llama", tiny.model("llama"))
    first = converted(path)
    stamp = (first / "config.json").stat().st_mtime_ns
    assert converted(path) == first
    assert (first / "config.json").stat().st_mtime_ns == stamp
    write(path, "qwen3", tiny.model("qwen3"))
    assert converted(path) != first


def test_files_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF but not really")
    with pytest.raises(CheckpointError, match="cannot be read as GGUF"):
        open_checkpoint(str(path))
    writer = gguf.GGUFWriter(path, "mamba")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(CheckpointError, match="architecture 'mamba'; supported in GGUF are llama, qwen3, gemma3"):
        open_checkpoint(str(path))
