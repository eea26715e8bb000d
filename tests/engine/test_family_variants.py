"""Settings within a family that change its shape or its arithmetic."""

import json
from pathlib import Path
from typing import Any

import engine_harness as harness
import pytest
import tiny_models as tiny
import torch

from engine.config import EngineConfig
from engine.core.startup import BuiltEngine, build
from engine.weights.checkpoint import open_checkpoint

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama with biases": ("llama", {"attention_bias": True, "mlp_bias": True}),
    "llama, head size left out, one key head": ("llama", {"head_dim": None, "num_key_value_heads": 1}),
    "llama, a key head for each query head": ("llama", {"num_key_value_heads": 4}),
    "llama, untied, another base": (
        "llama",
        {"tie_word_embeddings": False, "rope_parameters": {"rope_type": "default", "rope_theta": 5e5}},
    ),
    "qwen3 with sliding layers": (
        "qwen3",
        {"use_sliding_window": True, "sliding_window": 20, "max_window_layers": 1, "num_hidden_layers": 3},
    ),
    "qwen3, tied, with biases": ("qwen3", {"tie_word_embeddings": True, "attention_bias": True}),
    "opt without biases": ("opt", {"enable_bias": False}),
    "opt, norms without weights, gelu": (
        "opt",
        {"layer_norm_elementwise_affine": False, "activation_function": "gelu"},
    ),
    "gemma3 with capped logits": ("gemma3", {"final_logit_softcapping": 2.0}),
    "gemma3, two sliding kinds of group": ("gemma3", {"num_hidden_layers": 7, "sliding_window": 5}),
    "gemma3, every second layer full": ("gemma3", {"layer_types": ["sliding_attention", "full_attention"] * 3}),
    "gemma3 with a stretched full rotation": (
        "gemma3",
        {
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            }
        },
    ),
}


def engine(folder: Path) -> BuiltEngine:
    config = EngineConfig(
        model=str(folder), dtype="float32", kv_cache_memory=2**22, max_num_batched_tokens=24, max_model_len=200, seed=0
    )
    return build(config, open_checkpoint(str(folder)))


def reference(model: Any, prompt: list[int]) -> list[int]:
    ids = torch.tensor([prompt])
    mask = torch.ones_like(ids)
    out = model.generate(ids, attention_mask=mask, max_new_tokens=24, do_sample=False, pad_token_id=0)
    return out[0, len(prompt) :].tolist()


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_equals_the_reference(name: str, tmp_path: Path) -> None:
    family, changes = VARIANTS[name]
    model = tiny.build(family, **changes)
    model.save_pretrained(tmp_path)
    prompts = tiny.prompts(4)
    assert harness.generate(engine(tmp_path).core, prompts) == [reference(model, prompt) for prompt in prompts]


def test_the_older_spelling_of_rotations_and_layer_kinds(tmp_path: Path) -> None:
    rotations = {
        "full_attention": {"rope_type": "linear", "rope_theta": 5e5, "factor": 2.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 2e4},
    }
    model = tiny.build("gemma3", rope_parameters=rotations)
    model.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    del config["rope_parameters"], config["layer_types"]
    config |= {
        "rope_theta": 5e5,
        "rope_local_base_freq": 2e4,
        "rope_scaling": {"rope_type": "linear", "factor": 2.0},
        "sliding_window_pattern": 6,
    }
    path.write_text(json.dumps(config))
    prompt = tiny.prompts()[3]
    assert harness.generate(engine(tmp_path).core, [prompt]) == [reference(model, prompt)]


def test_llama_with_its_older_spelling(tmp_path: Path) -> None:
    model = tiny.build("llama", rope_parameters={"rope_type": "default", "rope_theta": 3e5})
    model.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    del config["rope_parameters"]
    path.write_text(json.dumps({**config, "rope_theta": 3e5, "rope_scaling": None}))
    prompt = tiny.prompts()[3]
    assert harness.generate(engine(tmp_path).core, [prompt]) == [reference(model, prompt)]
