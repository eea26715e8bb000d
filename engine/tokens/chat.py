"""Chat templates: Jinja from the checkpoint, run in a sandbox."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import TemplateError
from jinja2.exceptions import TemplateSyntaxError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from engine.errors import CheckpointError, RequestError


class ChatTemplate:
    """One template and the special tokens that it may write."""

    def __init__(self, source: str, special_tokens: Mapping[str, str]) -> None:
        """Raises CheckpointError when the source is no template."""
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _refuse
        environment.globals["strftime_now"] = lambda pattern: datetime.now().strftime(pattern)
        try:
            self._template = environment.from_string(source)
        except TemplateSyntaxError as error:
            raise CheckpointError(f"the checkpoint's chat template is broken at line {error.lineno}: {error}") from None
        self._special_tokens = dict(special_tokens)

    def render(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """The conversation as text, up to where the assistant answers. Raises RequestError in the template's words."""
        try:
            return self._template.render(messages=messages, add_generation_prompt=True, **self._special_tokens)
        except TemplateError as error:
            raise RequestError(f"the chat template refuses these messages: {error}") from None


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)


def _to_json(value: Any, indent: int | None = None) -> str:
    # Jinja's own filter escapes for HTML.
    return json.dumps(value, ensure_ascii=False, indent=indent)
