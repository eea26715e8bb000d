"""Checkpoints in one or several safetensors files."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from engine.errors import CheckpointError

_SINGLE = "model.safetensors"
_INDEX = "model.safetensors.index.json"


class SafetensorsSource:
    """The tensors of a checkpoint folder.

    A file is mapped anew for each tensor: while a mapping lives, every page of it that was read counts as
    this process's memory, and a whole checkpoint would be resident beside the weights made from it.
    """

    def __init__(self, folder: Path) -> None:
        """Raises CheckpointError when there is no checkpoint, or a file that its index names is absent."""
        self._folder = folder
        self._names = self._read_index()

    @property
    def where(self) -> str:
        return str(self._folder)

    def names(self) -> Iterable[str]:
        return self._names

    def load(self, name: str) -> Tensor:
        file = self._names[name]
        try:
            tensor: Tensor = self._open(file).get_tensor(name)
        except SafetensorError as error:
            raise CheckpointError(
                f"{self._folder / _INDEX} places tensor {name!r} in {file}, which does not give it: {error}"
            ) from None
        return tensor

    def _read_index(self) -> dict[str, str]:
        index = self._folder / _INDEX
        if index.exists():
            weight_map: dict[str, str] = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
            for file in sorted(set(weight_map.values())):
                if not (self._folder / file).exists():
                    count = sum(1 for owner in weight_map.values() if owner == file)
                    raise CheckpointError(f"{self._folder / file} is absent; {index.name} places {count} tensors in it")
            return weight_map
        if (self._folder / _SINGLE).exists():
            return dict.fromkeys(self._open(_SINGLE).keys(), _SINGLE)
        raise CheckpointError(f"{self._folder} holds neither {_SINGLE} nor {_INDEX}")

    def _open(self, file: str) -> Any:
        try:
            return safe_open(self._folder / file, framework="pt")
        except SafetensorError as error:
            raise CheckpointError(f"{self._folder / file} is not a safetensors file: {error}") from None
