"""Tiny random models of every family, saved once per process as transformers saves them."""

import json
import shutil
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from transformers import Gemma3TextConfig, LlamaConfig, OPTConfig, Qwen3Config

VOCAB = 320
_COMMON: dict[str, Any] = {"vocab_size": VOCAB, "hidden_size": 32, "eos_token_id": None}
_GATED: dict[str, Any] = {
    **_COMMON,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
}
_OPT: dict[str, Any] = {
    **_COMMON,
    "ffn_dim": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 512,
}

FAMILIES = ("llama", "qwen3", "opt", "opt_post_norm", "gemma3")


def build(family: str, **changes: Any) -> Any:
    """A transformers model with random weights, wide enough that its greedy text is not one token repeated."""
    match family:
        case "llama":
            config: Any = LlamaConfig(**{**_GATED, "head_dim": 8, "tie_word_embeddings": True, **changes})
            model = transformers.LlamaForCausalLM(config)
        case "qwen3":
            config = Qwen3Config(**{**_GATED, "head_dim": 16, "tie_word_embeddings": False, **changes})
            model = transformers.Qwen3ForCausalLM(config)
        case "opt":
            config = OPTConfig(**{**_OPT, "word_embed_proj_dim": 32, **changes})
            model = transformers.OPTForCausalLM(config)
        case "opt_post_norm":
            post = {"word_embed_proj_dim": 16, "do_layer_norm_before": False}
            config = OPTConfig(**{**_OPT, **post, **changes})
            model = transformers.OPTForCausalLM(config)
        case "gemma3":
            sizes = {"head_dim": 8, "query_pre_attn_scalar": 8, "sliding_window": 20, "num_hidden_layers": 6}
            config = Gemma3TextConfig(**{**_GATED, **sizes, **changes})
            model = transformers.Gemma3ForCausalLM(config)
        case _:
            raise ValueError(family)
    return _redraw(model)


def _redraw(model: Any) -> Any:
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.ndim == 1:
                parameter.add_(noise, alpha=0.1)
            elif "embed_tokens" in name or "lm_head" in name:
                # Tied and scaled embeddings drawn wide only echo the last token.
                parameter.copy_(0.1 * noise)
            else:
                parameter.copy_(0.25 * noise)
    return model.eval()


@cache
def model(family: str) -> Any:
    return build(family)


@cache
def folder(family: str) -> str:
    """Where the checkpoint of a family lies."""
    path = Path(tempfile.mkdtemp(prefix=f"tiny-{family}-"))
    model(family).save_pretrained(path)
    return str(path)


CHAT_TEMPLATE = (
    "{% for message in messages %}<|start|>{{ message.role }}\n{{ message.content }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)
SPECIAL_TOKENS = ("<|pad|>", "<|start|>", "<|end|>")


def tokenizer(merges: Sequence[tuple[str, str]] = ()) -> Tokenizer:
    """A byte-level tokenizer: ids 0 to 2 are special, then one per byte, one per merge, and words up to VOCAB."""
    words = [*SPECIAL_TOKENS, *sorted(ByteLevel.alphabet()), *("".join(pair) for pair in merges)]
    words += [f"word{index}" for index in range(len(words), VOCAB)]
    backend = Tokenizer(BPE(vocab={word: index for index, word in enumerate(words)}, merges=list(merges)))
    backend.pre_tokenizer = ByteLevel(add_prefix_space=False)
    backend.decoder = ByteLevelDecoder()
    backend.add_special_tokens(list(SPECIAL_TOKENS))
    return backend


@cache
def chat_folder() -> str:
    """A tiny Llama with a byte-level tokenizer and a chat template beside it."""
    path = Path(tempfile.mkdtemp(prefix="tiny-chat-"))
    shutil.copytree(folder("llama"), path, dirs_exist_ok=True)
    tokenizer().save(str(path / "tokenizer.json"))
    settings = {"eos_token": "<|end|>", "chat_template": CHAT_TEMPLATE}
    (path / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return str(path)


def prompts(count: int = 8, seed: int = 0) -> list[list[int]]:
    """Prompts of very unequal length, some of which share a start."""
    generator = torch.Generator().manual_seed(seed)
    shared = torch.randint(3, VOCAB, (40,), generator=generator).tolist()
    lengths = [1, 50, 7, 90, 33, 16, 64, 21]
    result = []
    for index in range(count):
        own = torch.randint(3, VOCAB, (lengths[index % len(lengths)],), generator=generator).tolist()
        result.append(shared + own if index % 3 == 1 else own)
    return result


@cache
def reference(family: str, prompt: tuple[int, ...], max_tokens: int) -> tuple[int, ...]:
    """Greedy tokens of transformers for one prompt alone."""
    ids = torch.tensor([prompt])
    out = model(family).generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=max_tokens, do_sample=False, pad_token_id=0
    )
    return tuple(out[0, len(prompt) :].tolist())
