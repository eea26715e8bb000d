"""Incremental detokenization and stop strings."""

import pytest
import tiny_models as tiny
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.decoders import ByteFallback, Fuse, Metaspace, Sequence
from tokenizers.models import BPE

from engine.core.engine import SequenceUpdate
from engine.outputs import OutputProcessor
from engine.sampling.params import SamplingParams
from engine.tokens.detokenizer import REPLACEMENT, Detokenizer
from engine.tokens.stop import StopStrings
from engine.tokens.tokenizer import Tokenizer as EngineTokenizer

BYTE_LEVEL = tiny.tokenizer()


def byte_fallback(words: list[str]) -> Tokenizer:
    """A SentencePiece-like tokenizer: words with a leading mark for a space, and one token per byte."""
    vocabulary = [*words, *(f"<0x{byte:02X}>" for byte in range(256))]
    backend = Tokenizer(
        BPE(vocab={word: index for index, word in enumerate(vocabulary)}, merges=[], byte_fallback=True)
    )
    backend.decoder = Sequence([Metaspace(), ByteFallback(), Fuse()])
    return backend


FALLBACK = byte_fallback(["hi", "▁there", "▁"])


def fallback_ids(data: bytes) -> list[int]:
    return [3 + byte for byte in data]


def byte_level_ids(data: bytes) -> list[int]:
    return [BYTE_LEVEL.token_to_id(char) for char in _as_alphabet(data)]


def _as_alphabet(data: bytes) -> str:
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    table = {byte: chr(byte) for byte in printable} | {byte: chr(256 + rank) for rank, byte in enumerate(others)}
    return "".join(table[byte] for byte in data)


def chunks(backend: Tokenizer, ids: list[int]) -> list[str]:
    detokenizer = Detokenizer(backend.decode)
    return [*(detokenizer.add(token) for token in ids), detokenizer.flush()]


@pytest.mark.parametrize("ids", [byte_level_ids("🌊".encode()), fallback_ids("🌊".encode())])
def test_ds_04_a_character_comes_whole(ids: list[int]) -> None:
    backend = BYTE_LEVEL if ids == byte_level_ids("🌊".encode()) else FALLBACK
    assert chunks(backend, ids) == ["", "", "", "🌊", ""]


def test_ds_05_broken_bytes_become_replacements_once_they_are_known_to_be_broken() -> None:
    half = fallback_ids("🌊".encode()[:2])
    assert chunks(FALLBACK, [*half, 0]) == ["", "", REPLACEMENT * 2 + "hi", ""]
    assert chunks(FALLBACK, half) == ["", "", REPLACEMENT * 2]
    assert "".join(chunks(FALLBACK, half)) == FALLBACK.decode(half)
    half = byte_level_ids("🌊".encode()[:2])
    assert chunks(BYTE_LEVEL, [*half, *byte_level_ids(b"hi")]) == ["", "", REPLACEMENT + "h", "i", ""]


def test_ds_07_text_comes_token_by_token() -> None:
    text = "plain words, a dot."
    assert chunks(BYTE_LEVEL, byte_level_ids(text.encode())) == [*text, ""]


@pytest.mark.parametrize("text", [" leading", "日本語のテキスト", "Ελληνικά", "עברית", "हिन्दी", "e\u0301🌊👩‍👩‍👧 ok"])
@pytest.mark.parametrize("kind", ["byte level", "byte fallback"])
def test_ds_08_the_joined_stream_is_the_whole_text(text: str, kind: str) -> None:
    backend, ids = (
        (BYTE_LEVEL, byte_level_ids(text.encode())) if kind == "byte level" else (FALLBACK, fallback_ids(text.encode()))
    )
    assert "".join(chunks(backend, ids)) == backend.decode(ids) == text


def test_a_space_inside_the_text_stays_and_one_at_its_start_follows_the_tokenizer() -> None:
    ids = [1, 1, 0, 1]
    assert FALLBACK.decode(ids) == "there therehi there"
    assert chunks(FALLBACK, ids) == ["there", " there", "hi", " there", ""]


@given(st.binary(max_size=40))
def test_any_bytes_stream_to_what_they_decode_to(data: bytes) -> None:
    ids = byte_level_ids(data)
    assert "".join(chunks(BYTE_LEVEL, ids)) == BYTE_LEVEL.decode(ids)


def test_an_endless_run_of_broken_bytes_is_given_out_as_it_comes() -> None:
    ids = byte_level_ids(b"\x80") * 200
    given_out = chunks(BYTE_LEVEL, ids)
    assert sum(len(chunk) for chunk in given_out[:100]) >= 97
    assert "".join(given_out) == REPLACEMENT * 200


def test_ds_02_only_what_may_be_a_stop_is_held() -> None:
    stops = StopStrings(["\nUSER:"])
    assert [stops.feed(piece) for piece in ("hello", " world", "\nUS", "A\n")] == [
        ("hello", None),
        (" world", None),
        ("", None),
        ("\nUSA", None),
    ]
    assert stops.flush() == "\n"
    other = StopStrings(["\nUSER:"])
    assert other.feed("</think>") == ("</think>", None)


def test_the_earliest_stop_wins_and_of_those_the_longest() -> None:
    assert StopStrings(["ef", "bcd", "b"]).feed("abcdef") == ("a", "bcd")
    assert StopStrings(["bcd", "ef"], include=True).feed("abcdef") == ("abcd", "bcd")


def test_a_stop_that_overlaps_its_own_beginning_is_found() -> None:
    stops = StopStrings(["aab"])
    shown, stop = "", None
    for letter in "aaab!":
        piece, stop = stops.feed(letter)
        shown += piece
        if stop:
            break
    assert (shown, stop) == ("a", "aab")


@given(st.text(alphabet="ab", max_size=30), st.lists(st.text(alphabet="ab", min_size=1, max_size=4), max_size=3))
def test_stops_do_not_depend_on_how_the_text_is_cut(text: str, stops: list[str]) -> None:
    whole = StopStrings(stops)
    expected, stop = whole.feed(text)
    expected += "" if stop else whole.flush()
    piecewise = StopStrings(stops)
    shown = ""
    for letter in text:
        piece, stop = piecewise.feed(letter)
        shown += piece
        if stop:
            break
    else:
        shown += piecewise.flush()
    starts = [text.find(stop) for stop in stops if stop in text]
    # A shorter stop may be complete before a longer one that starts earlier.
    assert shown == expected or (starts and text.startswith(shown) and len(shown) >= min(starts))


WORDS = ["so ", "far", "th", "er ", "on", "!"]


class Words(EngineTokenizer):
    """Token i is WORDS[i]."""

    def __init__(self) -> None:
        pass

    def decode(self, ids: list[int], skip_special: bool = True) -> str:  # type: ignore[override]
        return "".join(WORDS[index] for index in ids)


def stream(params: SamplingParams) -> tuple[list[str], OutputProcessor, bool]:
    processor = OutputProcessor("r", [0], params, Words())
    shown, stopped = [], False
    for token in range(len(WORDS)):
        reason = "length" if token == len(WORDS) - 1 else None
        update = SequenceUpdate(request_id="r", index=0, token_id=token, finish_reason=reason)  # type: ignore[arg-type]
        stopped = processor.advance(update)
        shown.append(processor.news.popleft()[1])
        if stopped:
            break
    return shown, processor, stopped


def test_ds_01_a_stop_spans_tokens() -> None:
    shown, processor, stopped = stream(SamplingParams(stop=("farther on",), max_tokens=6))
    output = processor.output.outputs[0]
    assert "".join(shown) == output.text == "so "
    assert (output.finish_reason, output.stop_reason, stopped) == ("stop", "farther on", True)
    assert len(output.token_ids) == 5


def test_ds_01_a_stop_may_begin_inside_a_token() -> None:
    shown, processor, _ = stream(SamplingParams(stop=("rth",), max_tokens=6))
    assert "".join(shown) == processor.output.outputs[0].text == "so fa"
    assert len(processor.output.outputs[0].token_ids) == 3


def test_text_that_was_held_is_shown_when_the_answer_ends() -> None:
    shown, processor, stopped = stream(SamplingParams(stop=("!?",), max_tokens=6))
    assert shown[-1] == "!"
    assert processor.output.outputs[0].text == "so farther on!"
    assert (processor.output.outputs[0].finish_reason, stopped) == ("length", False)


def test_stops_before_min_tokens_do_not_count() -> None:
    _, processor, _ = stream(SamplingParams(stop=("far",), min_tokens=3, max_tokens=6))
    assert processor.output.outputs[0].text == "so farther on!"
