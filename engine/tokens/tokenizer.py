"""Text to token ids and back, and the rendering of chats."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as BackendTokenizer

from engine.errors import CheckpointError
from engine.tokens.chat import ChatTemplate


class Tokenizer:
    """A checkpoint's tokenizer."""

    def __init__(self, backend: BackendTokenizer, settings: Mapping[str, Any], template: str | None) -> None:
        """`settings` is tokenizer_config.json; `template` the chat template's source."""
        self._backend = backend
        self._settings = settings
        self.chat_template = ChatTemplate(template, self._special_tokens()) if template else None

    @classmethod
    def load(cls, folder: Path) -> "Tokenizer":
        """Raises CheckpointError when the folder holds no tokenizer."""
        config = folder / "tokenizer_config.json"
        settings = json.loads(config.read_text(encoding="utf-8")) if config.exists() else {}
        separate = folder / "chat_template.jinja"
        template = separate.read_text(encoding="utf-8") if separate.exists() else settings.get("chat_template")
        return cls(_backend(folder), settings, template)

    @property
    def size(self) -> int:
        """One more than the largest token id."""
        return max(self._backend.get_vocab(with_added_tokens=True).values()) + 1

    def encode(self, text: str, special: bool = True) -> list[int]:
        """Token ids; `special` adds what the tokenizer puts around a text, such as BOS."""
        return list(self._backend.encode(text, add_special_tokens=special).ids)

    def decode(self, ids: Sequence[int], skip_special: bool = True) -> str:
        return self._backend.decode(list(ids), skip_special_tokens=skip_special)

    def encode_chat(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        """Token ids of a conversation, ready for the assistant's answer. Raises RequestError from the template."""
        if self.chat_template is None:
            raise CheckpointError("the checkpoint has no chat template; give a plain prompt instead")
        return self.encode(self.chat_template.render(messages), special=False)

    def word_ids(self, word: str) -> list[tuple[int, ...]]:
        """Token sequences that write a word at the start of a text and after a space."""
        variants = (tuple(self.encode(text, special=False)) for text in (word, f" {word.lstrip()}"))
        return list(dict.fromkeys(ids for ids in variants if ids))

    def _special_tokens(self) -> dict[str, str]:
        tokens = {}
        for name in ("bos_token", "eos_token", "pad_token", "unk_token"):
            value = self._settings.get(name)
            if value is not None:
                tokens[name] = value["content"] if isinstance(value, dict) else value
        return tokens


def _backend(folder: Path) -> BackendTokenizer:
    file = folder / "tokenizer.json"
    if file.exists():
        return BackendTokenizer.from_file(str(file))
    # Older layouts need a conversion that transformers knows; it costs seconds to import.
    from transformers import AutoTokenizer

    try:
        backend: BackendTokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True).backend_tokenizer
    except (OSError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{folder} holds no tokenizer: {error}") from None
    return backend
