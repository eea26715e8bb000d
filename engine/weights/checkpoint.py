"""A checkpoint on disk: configuration, tensors and where its tokenizer is."""

import json
from pathlib import Path
from typing import Any

from engine.errors import CheckpointError
from engine.weights.reader import TensorSource
from engine.weights.safetensors import SafetensorsSource


class Checkpoint:
    """`config` is config.json; `folder` holds it and the tokenizer's files."""

    def __init__(self, folder: Path, config: dict[str, Any], source: TensorSource) -> None:
        self.folder = folder
        self.config = config
        self.source = source

    @property
    def where(self) -> str:
        return str(self.folder)

    @property
    def eos_token_ids(self) -> tuple[int, ...]:
        """Ids that end a text: those of the generation settings where there are any, else the configuration's."""
        generation = self.folder / "generation_config.json"
        settings = json.loads(generation.read_text(encoding="utf-8")) if generation.exists() else {}
        ids = settings.get("eos_token_id", self.config.get("eos_token_id"))
        if ids is None:
            return ()
        return (ids,) if isinstance(ids, int) else tuple(ids)


def open_checkpoint(path: str) -> Checkpoint:
    """The checkpoint in a folder of safetensors, or in a GGUF file, which is converted once.

    Raises CheckpointError naming what is missing.
    """
    location = Path(path).expanduser()
    if location.suffix == ".gguf" and location.is_file():
        from engine.weights.conversion import converted

        location = converted(location)
    if not location.is_dir():
        raise CheckpointError(f"{path} is neither a folder nor a .gguf file; nothing is fetched from a hub")
    config = location / "config.json"
    if not config.exists():
        raise CheckpointError(f"{location} has no config.json")
    return Checkpoint(location, json.loads(config.read_text(encoding="utf-8")), SafetensorsSource(location))
