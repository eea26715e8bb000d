"""The library: prompts in, text out."""

from itertools import pairwise

import pytest
import tiny_models as tiny

from engine.errors import CheckpointError, RequestError
from engine.llm import LLM
from engine.sampling.params import SamplingParams
from engine.tokens.chat import ChatTemplate

GREEDY = SamplingParams(temperature=0, max_tokens=20)


@pytest.fixture(scope="module")
def llm() -> LLM:
    return LLM(tiny.chat_folder(), dtype="float32", kv_cache_memory=2**22, seed=0)


def test_outputs_come_in_the_order_of_the_prompts(llm: LLM) -> None:
    prompts = ["one", "a second prompt, longer than the first", "3"]
    outputs = llm.generate(prompts, GREEDY)
    for prompt, output in zip(prompts, outputs, strict=True):
        assert output.prompt_token_ids == llm.tokenizer.encode(prompt)  # type: ignore[union-attr]
        assert output.outputs[0].text == llm.generate(prompt, GREEDY)[0].outputs[0].text
        assert output.outputs[0].token_ids == list(tiny.reference("llama", tuple(output.prompt_token_ids), 20))


def test_text_is_the_decoded_tokens_and_streams_alike(llm: LLM) -> None:
    output = llm.generate("stream", GREEDY)[0].outputs[0]
    assert output.text == llm.tokenizer.decode(output.token_ids)  # type: ignore[union-attr]
    pieces = list(llm.stream("stream", GREEDY))
    assert "".join(pieces) == output.text
    assert len(pieces) > 3


def test_each_prompt_may_have_its_own_params(llm: LLM) -> None:
    params = [SamplingParams(temperature=0, max_tokens=count) for count in (3, 5)]
    assert [len(out.outputs[0].token_ids) for out in llm.generate(["a", "b"], params)] == [3, 5]
    with pytest.raises(RequestError, match="1 prompts came with 2 params"):
        llm.generate(["a"], params)


def test_a_stop_string_cuts_text_tokens_and_logprobs_at_one_place(llm: LLM) -> None:
    params = SamplingParams(temperature=0, max_tokens=20, logprobs=0)
    whole = llm.generate("stop", params)[0].outputs[0]
    stop = whole.text[3:5]
    start = whole.text.index(stop)
    cut = llm.generate("stop", SamplingParams(temperature=0, max_tokens=20, logprobs=0, stop=(stop,)))[0].outputs[0]
    assert cut.text == whole.text[:start]
    assert (cut.finish_reason, cut.stop_reason) == ("stop", stop)
    assert cut.token_ids == whole.token_ids[: len(cut.token_ids)]
    decoded = [llm.tokenizer.decode(whole.token_ids[:count]) for count in range(21)]  # type: ignore[union-attr]
    assert len(cut.token_ids) == next(count for count, text in enumerate(decoded) if stop in text)
    assert cut.logprobs is not None and len(cut.logprobs) == len(cut.token_ids)
    assert not llm.core.has_work


def test_bad_words_do_not_appear(llm: LLM) -> None:
    tokens = llm.generate("words", GREEDY)[0].outputs[0].token_ids
    letters = [llm.tokenizer.decode([token]) for token in tokens]  # type: ignore[union-attr]
    word = next(a + b for a, b in pairwise(letters) if len(a + b) == 2 and (a + b).isascii())
    params = SamplingParams(temperature=0, max_tokens=20, bad_words=(word,))
    assert word not in llm.generate("words", params)[0].outputs[0].text


def test_n_choices_have_texts_of_their_own(llm: LLM) -> None:
    output = llm.generate("many", SamplingParams(n=3, seed=5, temperature=1.5, max_tokens=10))[0]
    assert [choice.index for choice in output.outputs] == [0, 1, 2]
    assert len({choice.text for choice in output.outputs}) > 1
    assert all(choice.finish_reason == "length" for choice in output.outputs)


def test_one_request_with_an_error_does_not_harm_the_others(llm: LLM) -> None:
    def fault(output: object, logits: object) -> object:
        raise ValueError("planted")

    bad = SamplingParams(max_tokens=5, logits_processors=(fault,))
    first, second = llm.generate(["bad", "good"], [bad, GREEDY])
    assert first.outputs[0].finish_reason == "error"
    assert "planted" in (first.outputs[0].error or "")
    assert second.outputs[0].finish_reason == "length"
    with pytest.raises(RequestError, match="planted"):
        list(llm.stream("bad", bad))
    assert not llm.core.has_work


def test_a_refused_prompt_leaves_nothing_in_the_queue(llm: LLM) -> None:
    with pytest.raises(RequestError, match="prompt has no tokens"):
        llm.generate(["fine", ""], GREEDY)
    assert not llm.core.requests and not llm.core.has_work


def test_streams_read_in_turns_do_not_take_from_each_other(llm: LLM) -> None:
    texts = [llm.generate(prompt, GREEDY)[0].outputs[0].text for prompt in ("first", "second")]
    streams = [llm.stream(prompt, GREEDY) for prompt in ("first", "second")]
    heads = [next(stream) for stream in streams]
    third = llm.generate("first", GREEDY)[0].outputs[0].text
    assert [head + "".join(stream) for head, stream in zip(heads, streams, strict=True)] == texts
    assert third == texts[0]
    assert not llm.core.has_work


def test_a_lone_stop_is_not_taken_letter_by_letter() -> None:
    assert SamplingParams(stop="end").stop == ("end",)  # type: ignore[arg-type]
    assert SamplingParams(stop=["a", "b"], bad_words="x").stop == ("a", "b")  # type: ignore[arg-type]


def test_a_stream_that_is_left_early_frees_its_blocks(llm: LLM) -> None:
    stream = llm.stream("leave", SamplingParams(temperature=0, max_tokens=50))
    next(stream)
    stream.close()
    assert not llm.core.has_work
    assert llm.core.cache.pool.num_free == llm.core.cache.pool.num_blocks - 1


def test_without_a_tokenizer_only_ids_are_served() -> None:
    bare = LLM(tiny.folder("llama"), skip_tokenizer=True, dtype="float32", kv_cache_memory=2**22)
    output = bare.generate([5, 6, 7], GREEDY)[0].outputs[0]
    assert output.token_ids == list(tiny.reference("llama", (5, 6, 7), 20))
    assert output.text == ""
    with pytest.raises(RequestError, match="started without a tokenizer"):
        bare.generate("text", GREEDY)
    with pytest.raises(RequestError, match="stop strings need a tokenizer"):
        bare.generate([5], SamplingParams(stop=("x",)))


def test_settings_are_read_back_from_what_was_built(llm: LLM) -> None:
    config = llm.config()
    assert config["max_model_len"] is None
    assert config["effective"]["max_model_len"] == 512
    assert config["effective"]["seed"] == 0
    assert config["effective"]["kv_cache_bytes"] <= config["kv_cache_memory"] == 2**22
    allocated = sum(pages.nbytes for pages in (*llm.core.runner.cache.keys, *llm.core.runner.cache.values))
    assert allocated == config["effective"]["kv_cache_bytes"]


def test_progress_is_shown_when_asked_for(llm: LLM, capsys: pytest.CaptureFixture[str]) -> None:
    llm.generate(["a", "b"], GREEDY, progress=True)
    assert "2/2 requests, 40 tokens" in capsys.readouterr().err
    llm.generate(["a", "b"], GREEDY)
    assert capsys.readouterr().err == ""


def test_templates_refuse_in_their_own_words_and_broken_ones_at_once() -> None:
    with pytest.raises(RequestError, match="roles must alternate"):
        ChatTemplate("{{ raise_exception('roles must alternate') }}", {}).render([])
    with pytest.raises(CheckpointError, match="chat template is broken at line 1"):
        ChatTemplate("{% if %}", {})
    with pytest.raises(RequestError, match="refuses"):
        ChatTemplate("{{ messages.__class__.__mro__[1].__subclasses__() }}", {}).render([])
    rendered = ChatTemplate("{{ bos_token }}{{ messages | tojson }}", {"bos_token": "<s>"}).render([{"content": "<é>"}])
    assert rendered == '<s>[{"content": "<é>"}]'
