"""The op table, the portable ops, and each provider against them on every class of shapes."""

import logging
import math
import timeit
from typing import Any

import engine_harness as harness
import pytest
import tiny_models as tiny
import torch
from torch import Tensor

from engine import platforms
from engine.core.batch import AttentionBatch, build_batch
from engine.errors import ConfigError
from engine.ops import portable
from engine.ops.table import COMPOSITIONS, PORTABLE, OpSpec, Provider, names, select

HOST = platforms.find("cpu")
SPEC = OpSpec(dtype="float32", block_size=16)
REFERENCE = select([], SPEC)
FAST = select(HOST.providers(), SPEC)


def provider(name: str = "fast", op: str = "softcap", reasons: tuple[str, ...] = (), result: float = 1.0) -> Provider:
    return Provider(op=op, name=name, unsupported=lambda spec: list(reasons), load=lambda: lambda x, cap: result)


def test_every_op_has_a_portable_implementation_and_says_what_it_composes() -> None:
    assert {"linear", "rms_norm", "paged_attention", "store_kv", "rotary", "softcap"} <= set(names())
    assert set(REFERENCE.choices) == set(names())
    assert all(choice.provider == PORTABLE for choice in REFERENCE.choices.values())
    assert COMPOSITIONS["add_rms_norm"] == ("add", "rms_norm")


def test_a_provider_for_an_op_without_a_portable_implementation_is_refused() -> None:
    with pytest.raises(ConfigError, match="provider 'fast' is for op 'teleport', which has no portable one"):
        select([provider(op="teleport")], SPEC)
    with pytest.raises(ValueError, match="'softcap' has a portable implementation already"):
        portable.portable("softcap")(lambda x, cap: x)
    with pytest.raises(AttributeError, match="there is no op 'teleport'"):
        _ = REFERENCE.teleport


def test_the_first_usable_provider_is_chosen_and_the_others_keep_their_reasons() -> None:
    providers = [provider("a", reasons=("too old",)), provider("b", result=2.0), provider("c", result=3.0)]
    ops = select(providers, SPEC)
    assert ops.softcap(0, 0) == 2.0
    assert ops.choices["softcap"].provider == "b"
    assert ops.choices["softcap"].rejected == {"a": ["too old"]}
    assert select(providers, SPEC, disabled=["b"]).softcap(0, 0) == 3.0
    assert select(providers, SPEC, disabled=["b", "c"]).choices["softcap"].provider == PORTABLE


def test_a_required_provider_is_used_or_refused_with_reasons() -> None:
    providers = [provider("a", reasons=("too old",)), provider("b")]
    assert select(providers, SPEC, required={"softcap": "b"}).choices["softcap"].provider == "b"
    assert select(providers, SPEC, required={"softcap": PORTABLE}).choices["softcap"].provider == PORTABLE
    with pytest.raises(ConfigError, match=r"cannot use 'a': too old\. Offered here: a, b, portable"):
        select(providers, SPEC, required={"softcap": "a"})


def test_the_choice_is_logged_and_read_back(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    built = harness.tiny_engine(attention_backend="portable")
    assert "attention backend: portable" in caplog.messages
    assert built.effective.ops["paged_attention"] == "portable"
    assert built.effective.ops["linear"] == "onednn"


def test_dispatch_costs_less_than_a_microsecond() -> None:
    ops = select([provider()], SPEC)
    ops.softcap = lambda x, cap: None
    count = 20000
    bare = min(timeit.repeat(lambda: None, number=count, repeat=5))
    through = min(timeit.repeat(lambda: ops.softcap(0, 0), number=count, repeat=5))
    assert (through - bare) / count < 1e-6


def attention_case(
    queries: list[int], contexts: list[int], heads: int, kv_heads: int, dim: int, block_size: int, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor, AttentionBatch]:
    generator = torch.Generator().manual_seed(sum(contexts) + heads)
    width = max(-(-context // block_size) for context in contexts)
    blocks = len(queries) * width + 1
    order = (torch.randperm(blocks - 1, generator=generator) + 1).reshape(len(queries), width)
    used = torch.tensor([[index * block_size < context for index in range(width)] for context in contexts])
    table = torch.where(used, order, 0)
    shape = (blocks, block_size, kv_heads, dim)
    keys, values = (torch.randn(shape, generator=generator).to(dtype) for _ in range(2))
    query = torch.randn((sum(queries), heads, dim), generator=generator).to(dtype)
    starts = [sum(queries[:row]) for row in range(len(queries))]
    batch = AttentionBatch(starts, queries, contexts, torch.empty(0, dtype=torch.int64), table, block_size)
    return query, keys, values, batch


def dense_attention(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    batch: AttentionBatch,
    scale: float,
    window: int | None,
    cap: float | None,
) -> Tensor:
    """One query, one head, one key at a time, in double precision."""
    output = torch.zeros(query.shape, dtype=torch.float64)
    group = query.shape[1] // keys.shape[2]
    for row, (start, count, context) in enumerate(
        zip(batch.query_starts, batch.query_lens, batch.context_lens, strict=True)
    ):
        for offset in range(count):
            position = context - count + offset
            seen = range(0 if window is None else max(0, position - window + 1), position + 1)
            pages = [(batch.block_table[row, k // batch.block_size], k % batch.block_size) for k in seen]
            for head in range(query.shape[1]):
                key = torch.stack([keys[block, slot, head // group] for block, slot in pages]).double()
                value = torch.stack([values[block, slot, head // group] for block, slot in pages]).double()
                scores = key @ query[start + offset, head].double() * scale
                if cap is not None:
                    scores = cap * torch.tanh(scores / cap)
                output[start + offset, head] = torch.softmax(scores, 0) @ value
    return output


SHAPES = {
    "one decode": ([1], [1]),
    "decodes of unequal length": ([1, 1, 1], [5, 33, 16]),
    "one prefill": ([20], [20]),
    "a later chunk": ([7], [30]),
    "mixed": ([1, 9, 1, 4], [17, 9, 40, 36]),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("window", [None, 1, 4, 100])
@pytest.mark.parametrize(("heads", "kv_heads", "dim"), [(4, 4, 8), (6, 2, 16), (3, 1, 64)])
@pytest.mark.parametrize("backend", ["portable", "sdpa"])
def test_paged_attention(shape: str, window: int | None, heads: int, kv_heads: int, dim: int, backend: str) -> None:
    ops = REFERENCE if backend == "portable" else FAST
    assert ops.choices["paged_attention"].provider == backend
    query, keys, values, batch = attention_case(*SHAPES[shape], heads, kv_heads, dim, 16, torch.float32)
    attended = ops.paged_attention(query, keys, values, batch, 0.3, window)
    expected = dense_attention(query, keys, values, batch, 0.3, window, None)
    assert torch.allclose(attended.double(), expected, atol=2e-6)


def test_paged_attention_with_softcap() -> None:
    query, keys, values, batch = attention_case([1, 5], [20, 9], 4, 2, 8, 4, torch.float32)
    attended = REFERENCE.paged_attention(query * 9, keys, values, batch, 1.0, 6, 5.0)
    expected = dense_attention(query * 9, keys, values, batch, 1.0, 6, 5.0)
    assert torch.allclose(attended.double(), expected, atol=2e-6)
    spec = OpSpec(dtype="float32", block_size=4, softcaps=frozenset({5.0}))
    choice = select(HOST.providers(), spec).choices["paged_attention"]
    assert (choice.provider, list(choice.rejected)) == (PORTABLE, ["sdpa"])


def test_ka_01_softcap_stays_finite() -> None:
    scores = torch.tensor([1, 100, 4400, 4436, 5000, -10000, math.inf])
    capped = REFERENCE.softcap(scores, 50.0)
    expected = torch.tensor([0.9999, 48.2014, 50, 50, 50, -50, 50])
    assert torch.allclose(capped, expected, atol=1e-4)
    assert torch.allclose(capped[:-1], 50 * torch.tanh(scores[:-1] / 50), atol=50 * 7.2e-7)


@pytest.mark.parametrize("ops", [REFERENCE, FAST], ids=["portable", "fast"])
def test_ka_02_scores_beyond_half_precision(ops: Any) -> None:
    dim = 16
    query = torch.full((1, 1, dim), 66.0, dtype=torch.float16)
    keys = torch.zeros(2, 4, 1, dim, dtype=torch.float16)
    keys[1, 0], keys[1, 1] = 66.3, 66.0
    values = torch.zeros_like(keys)
    values[1, 0], values[1, 1] = 1.0, -1.0
    assert torch.isinf((query[0, 0] * keys[1, 0, 0]).sum())
    batch = AttentionBatch([0], [1], [2], torch.empty(0, dtype=torch.int64), torch.tensor([[1]]), 4)
    attended = ops.paged_attention(query, keys, values, batch, 1.0)
    expected = dense_attention(query, keys, values, batch, 1.0, None, None)
    assert torch.isfinite(attended).all()
    assert torch.allclose(attended.double(), expected, atol=1e-2)


def test_ka_04_a_window_includes_the_token_itself() -> None:
    hidden = portable.hidden_keys(8, 8, 4, torch.device("cpu"))
    assert (~hidden).sum(-1).tolist() == [1, 2, 3, 4, 4, 4, 4, 4]


@pytest.mark.parametrize("ops", [REFERENCE, FAST], ids=["portable", "fast"])
def test_ka_05_prefill_and_decode_use_the_same_window(ops: Any) -> None:
    query, keys, values, whole = attention_case([12], [12], 2, 1, 8, 4, torch.float32)
    last = AttentionBatch([0], [1], [12], whole.slots, whole.block_table, 4)
    prefilled = ops.paged_attention(query, keys, values, whole, 0.5, 4)[11:]
    decoded = ops.paged_attention(query[11:], keys, values, last, 0.5, 4)
    assert torch.allclose(prefilled, decoded, atol=1e-6)


def test_ka_10_slots_are_computed_in_64_bits() -> None:
    core = harness.tiny_engine().core
    core.add_request("r", tiny.prompts()[2], harness.GREEDY)
    items = core.scheduler.schedule()
    # A table as in a cache of many large blocks; the storage itself is not needed to see the slots.
    items[0].sequence.tables[0][0] = 70000
    group = core.cache.groups[0]
    group.block_size = 32768
    slots = build_batch(items, [group], torch.device("cpu")).attention[0].slots
    assert slots[0].item() == 70000 * 32768 > 2**31


def test_ka_11_gelu_does_not_overflow() -> None:
    gate = torch.tensor([[9.0, 12, 20, 45]])
    both = torch.cat([gate, torch.ones_like(gate)], -1)
    expected = torch.nn.functional.gelu(gate.double(), approximate="tanh")
    assert torch.allclose(REFERENCE.gelu_tanh_and_mul(both).double(), expected, atol=1e-5)
    half = REFERENCE.gelu_tanh_and_mul(both.to(torch.bfloat16))
    assert torch.isfinite(half).all()
    assert torch.allclose(half.double(), expected, rtol=1e-2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("outputs", "inputs"), [(64, 64), (33, 48), (320, 32), (1, 7)])
def test_prepacked_linears(dtype: torch.dtype, bias: bool, outputs: int, inputs: int) -> None:
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(outputs, inputs, generator=generator).to(dtype)
    shift = torch.randn(outputs, generator=generator).to(dtype) if bias else None
    spec = OpSpec(dtype=str(dtype).removeprefix("torch."), block_size=16)
    ops = select(HOST.providers(), spec)
    if ops.choices["linear"].provider != "onednn":
        assert dtype is torch.bfloat16, "float32 linears are packed on every host"
        return
    packed, plain = ops.linear(weight, shift), REFERENCE.linear(weight.double(), shift.double() if bias else None)  # type: ignore[union-attr]
    x = torch.randn(64, inputs, generator=generator).to(dtype)
    with torch.inference_mode():
        whole = packed(x)
        tolerance = 1e-5 if dtype is torch.float32 else 2e-2
        assert torch.allclose(whole.double(), plain(x.double()), rtol=tolerance, atol=tolerance * inputs**0.5)
        for rows in (1, 2, 4, 8, 16, 33):
            assert torch.equal(packed(x[:rows]), whole[:rows])


def test_a_dtype_that_cannot_be_packed_falls_back() -> None:
    choice = select(HOST.providers(), OpSpec(dtype="float16", block_size=16)).choices["linear"]
    assert choice.provider == PORTABLE
    assert choice.rejected == {"onednn": ["oneDNN packs float32 and bfloat16, not float16"]}


def test_norms_and_activations() -> None:
    x, weight = torch.randn(5, 12), torch.randn(12)
    expected = torch.nn.functional.rms_norm(x, (12,), weight, 1e-6)
    assert torch.allclose(REFERENCE.rms_norm(x, weight, 1e-6), expected, atol=1e-6)
    normed, total = REFERENCE.add_rms_norm(x, 2 * x, weight, 1e-6)
    assert torch.equal(total, x + 2 * x)
    assert torch.equal(normed, REFERENCE.rms_norm(total, weight, 1e-6))
    gate, up = x.chunk(2, -1)
    assert torch.allclose(REFERENCE.silu_and_mul(x), gate * torch.sigmoid(gate) * up, atol=1e-6)
    assert REFERENCE.rms_norm(x.to(torch.bfloat16), weight, 1e-6).dtype is torch.bfloat16


def test_store_kv_writes_slots_and_nothing_else() -> None:
    caches = torch.zeros(3, 4, 2, 8), torch.zeros(3, 4, 2, 8)
    key, value = torch.randn(2, 2, 8), torch.randn(2, 2, 8)
    REFERENCE.store_kv(key, value, *caches, torch.tensor([5, 8]))
    for cache, new in zip(caches, (key, value), strict=True):
        assert torch.equal(cache[1, 1], new[0])
        assert torch.equal(cache[2, 0], new[1])
        assert cache.count_nonzero() == new.count_nonzero()
