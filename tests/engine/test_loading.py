"""Checkpoints: complete or refused by name, tied embeddings in every combination, limits of positions."""

import json
import shutil
from pathlib import Path
from typing import Any

import engine_harness as harness
import pytest
import tiny_models as tiny
import torch
from safetensors.torch import load_file, save_file

from engine.config import EngineConfig
from engine.core.startup import BuiltEngine, build
from engine.errors import CheckpointError, ConfigError, RequestError
from engine.layers.rotary import inverse_frequencies
from engine.models import ARCHITECTURES, family_of
from engine.weights.checkpoint import open_checkpoint
from engine.weights.safetensors import SafetensorsSource

PROMPT = tiny.prompts()[2]


def load(folder: Path, **settings: Any) -> BuiltEngine:
    config = EngineConfig(model=str(folder), dtype="float32", kv_cache_memory=2**22, seed=0, **settings)
    return build(config, open_checkpoint(str(folder)))


def copy_of(family: str, target: Path) -> Path:
    return Path(shutil.copytree(tiny.folder(family), target / family))


def edit_config(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def edit_tensors(folder: Path, changes: dict[str, torch.Tensor | None]) -> None:
    path = folder / "model.safetensors"
    tensors = {**load_file(path), **changes}
    save_file({name: tensor for name, tensor in tensors.items() if tensor is not None}, path)


def shard(folder: Path, count: int) -> dict[str, str]:
    """Split a checkpoint into shards with an index, as transformers writes them."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    weight_map = {}
    for number in range(count):
        file = f"model-{number + 1:05d}-of-{count:05d}.safetensors"
        names = sorted(tensors)[number::count]
        save_file({name: tensors[name] for name in names}, folder / file)
        weight_map.update(dict.fromkeys(names, file))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    return weight_map


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_a_sharded_checkpoint_loads(family: str, tmp_path: Path) -> None:
    folder = copy_of(family, tmp_path)
    shard(folder, 3)
    assert harness.generate(load(folder).core, [PROMPT]) == [list(tiny.reference(family, tuple(PROMPT), 24))]


def test_ml_04_a_missing_shard_is_named(tmp_path: Path) -> None:
    folder = copy_of("llama", tmp_path)
    shard(folder, 3)
    (folder / "model-00002-of-00003.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"model-00002-of-00003\.safetensors is absent; .* places \d+ tensors"):
        load(folder)


def test_ml_04_a_tensor_that_its_shard_lacks_is_named(tmp_path: Path) -> None:
    folder = copy_of("llama", tmp_path)
    weight_map = shard(folder, 3)
    name = "model.layers.1.mlp.down_proj.weight"
    file = folder / weight_map[name]
    save_file({other: tensor for other, tensor in load_file(file).items() if other != name}, file)
    with pytest.raises(CheckpointError, match=rf"places tensor '{name}' in {file.name}, which does not give it"):
        load(folder)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_ml_04_no_tensor_may_be_absent(family: str, tmp_path: Path) -> None:
    folder = copy_of(family, tmp_path)
    for name, tensor in load_file(folder / "model.safetensors").items():
        edit_tensors(folder, {name: None})
        with pytest.raises(CheckpointError, match=f"tensor '{name}' is not in .*; the checkpoint is incomplete"):
            load(folder)
        edit_tensors(folder, {name: tensor})
    load(folder)


def test_a_tensor_of_another_shape_is_refused(tmp_path: Path) -> None:
    folder = copy_of("llama", tmp_path)
    edit_tensors(folder, {"model.norm.weight": torch.zeros(31)})
    with pytest.raises(CheckpointError, match=r"'model.norm.weight' .* has shape \(31,\), .* needs \(32,\)"):
        load(folder)


def test_tensors_that_nothing_uses_are_named_in_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = copy_of("llama", tmp_path)
    edit_tensors(folder, {"model.extra": torch.zeros(2), "model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4)})
    load(folder)
    assert "['model.extra']" in caplog.text


@pytest.mark.parametrize("family", ["llama", "opt", "gemma3"])
def test_ml_05_tied_embeddings_in_all_four_combinations(family: str, tmp_path: Path) -> None:
    folder = copy_of(family, tmp_path)
    expected = [list(tiny.reference(family, tuple(PROMPT), 24))]
    embedding = next(
        tensor for name, tensor in load_file(folder / "model.safetensors").items() if "embed_tokens" in name
    )
    edit_config(folder, tie_word_embeddings=True)
    edit_tensors(folder, {"lm_head.weight": None})
    assert harness.generate(load(folder).core, [PROMPT]) == expected
    edit_tensors(folder, {"lm_head.weight": -embedding})
    assert harness.generate(load(folder).core, [PROMPT]) == expected
    edit_config(folder, tie_word_embeddings=False)
    assert harness.generate(load(folder).core, [PROMPT]) != expected
    edit_tensors(folder, {"lm_head.weight": embedding.clone()})
    assert harness.generate(load(folder).core, [PROMPT]) == expected
    edit_tensors(folder, {"lm_head.weight": None})
    with pytest.raises(CheckpointError, match=r"tensor 'lm_head.weight' is not in"):
        load(folder)


def test_a_checkpoint_saved_without_its_head_has_shorter_names(tmp_path: Path) -> None:
    folder = copy_of("opt", tmp_path)
    tensors = load_file(folder / "model.safetensors")
    save_file({name.removeprefix("model."): tensor for name, tensor in tensors.items()}, folder / "model.safetensors")
    assert harness.generate(load(folder).core, [PROMPT]) == [list(tiny.reference("opt", tuple(PROMPT), 24))]


def test_ml_01_opt_positions(tmp_path: Path) -> None:
    model = tiny.build("opt", max_position_embeddings=8)
    model.save_pretrained(tmp_path)
    assert load_file(tmp_path / "model.safetensors")["model.decoder.embed_positions.weight"].shape[0] == 10
    prompt = [2, 5, 6]
    core = load(tmp_path).core
    tokens = harness.generate(core, [prompt])[0]
    assert len(prompt) + len(tokens) == 8
    padded = torch.tensor([[1, 1, *prompt]])
    mask = torch.tensor([[0, 0, 1, 1, 1]])
    out = model.generate(padded, attention_mask=mask, max_new_tokens=5, do_sample=False)
    assert tokens == out[0, 5:].tolist()
    with pytest.raises(RequestError, match=r"the prompt has 8 tokens; .* max_model_len 8"):
        core.add_request("ninth", [2] * 8, harness.GREEDY)


def test_ml_02_max_model_len_above_the_configuration() -> None:
    with pytest.raises(ConfigError, match=r"max_model_len is 1024, .* max_position_embeddings is 512.*--allow-long"):
        harness.tiny_engine("llama", max_model_len=1024)
    with pytest.raises(ConfigError, match=r"max_model_len is 1024, .* learned 512 positions"):
        harness.tiny_engine("opt", max_model_len=1024, allow_long_context=True)
    built = harness.tiny_engine("llama", max_model_len=1024, allow_long_context=True)
    prompt = [3 + index % 300 for index in range(600)]
    (tokens,) = harness.generate(built.core, [prompt])
    assert tokens == list(tiny.reference("llama", tuple(prompt), 24))


def test_ml_13_logits_beyond_the_tokenizer_are_never_sampled() -> None:
    folder = tiny.folder("llama")
    config = EngineConfig(model=folder, dtype="float32", kv_cache_memory=2**22, max_model_len=256, seed=0)
    core = build(config, open_checkpoint(folder), num_tokens=100).core
    for params in (harness.GREEDY, harness.SamplingParams(temperature=5.0, max_tokens=60, seed=1)):
        for tokens in harness.generate(core, tiny.prompts(), params):
            assert max(tokens) < 100
    wider = build(config, open_checkpoint(folder), num_tokens=400).core
    assert harness.generate(wider, [PROMPT]) == [list(tiny.reference("llama", tuple(PROMPT), 24))]


def test_an_unknown_architecture_is_refused_with_what_there_is() -> None:
    with pytest.raises(CheckpointError, match=r"\['MambaForCausalLM'\] .*supported are Gemma3ForCausalLM, Llama"):
        family_of({"architectures": ["MambaForCausalLM"]})
    for architecture in ARCHITECTURES:
        assert family_of({"architectures": [architecture]}).prefixes


@pytest.mark.parametrize(
    ("family", "changes", "text"),
    [
        ("llama", {"hidden_act": "gelu"}, "hidden_act is 'gelu'"),
        ("opt", {"activation_function": "tanh"}, "activation_function is 'tanh'"),
        ("gemma3", {"use_bidirectional_attention": True}, "use_bidirectional_attention is set"),
        ("llama", {"rope_parameters": {"rope_type": "spiral", "rope_theta": 1.0}}, "rope_type 'spiral' is not"),
    ],
)
def test_settings_that_change_the_answer_and_are_not_implemented_are_refused(
    family: str, changes: dict[str, Any], text: str, tmp_path: Path
) -> None:
    folder = copy_of(family, tmp_path)
    edit_config(folder, **changes)
    with pytest.raises(CheckpointError, match=text):
        load(folder)


def test_ka_07_a_null_flag_means_causal(tmp_path: Path) -> None:
    folder = copy_of("gemma3", tmp_path)
    edit_config(folder, use_bidirectional_attention=None)
    assert harness.generate(load(folder).core, [PROMPT]) == [list(tiny.reference("gemma3", tuple(PROMPT), 24))]


@pytest.mark.parametrize(
    "parameters",
    [
        {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0},
        {
            "rope_type": "llama3",
            "rope_theta": 500000.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
        },
    ],
)
def test_scaled_rotations_equal_the_reference(parameters: dict[str, Any], tmp_path: Path) -> None:
    model = tiny.build("llama", rope_parameters=parameters)
    model.save_pretrained(tmp_path)
    reference = model.model.rotary_emb.inv_freq
    assert torch.allclose(inverse_frequencies(8, parameters), reference, rtol=1e-6)
    prompt = tiny.prompts()[3]
    ids = torch.tensor([prompt])
    expected = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=24, do_sample=False)
    assert harness.generate(load(tmp_path).core, [prompt]) == [expected[0, len(prompt) :].tolist()]


def test_folders_that_hold_no_checkpoint_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"has no config\.json"):
        open_checkpoint(str(tmp_path))
    with pytest.raises(CheckpointError, match=r"holds neither model\.safetensors nor"):
        SafetensorsSource(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"no tensors here")
    with pytest.raises(CheckpointError, match="is not a safetensors file"):
        SafetensorsSource(tmp_path)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="this system does not list its mappings")
def test_nothing_of_the_checkpoint_stays_mapped_beside_the_weights(tmp_path: Path) -> None:
    folder = copy_of("llama", tmp_path)
    built = load(folder)
    assert str(folder) not in Path("/proc/self/maps").read_text()
    assert built.core.runner.model is not None


def test_generation_settings_name_the_ends_of_a_text(tmp_path: Path) -> None:
    folder = copy_of("llama", tmp_path)
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [4, 9]}))
    assert open_checkpoint(str(folder)).eos_token_ids == (4, 9)
    (folder / "generation_config.json").unlink()
    edit_config(folder, eos_token_id=6)
    assert open_checkpoint(str(folder)).eos_token_ids == (6,)
