"""Tiny tensors gain nothing from threads and lose much where cores are shared."""

import pytest
import torch
import transformers

torch.set_num_threads(1)
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


@pytest.fixture(autouse=True)
def _no_engine_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings of whoever runs the tests must not reach them; an unknown name is refused."""
    import os

    for name in list(os.environ):
        if name.startswith("ENGINE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("ENGINE_STRICT_ENV", "1")
