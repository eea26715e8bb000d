"""GGUF files converted once into a local cache of safetensors with tokenizer files beside them."""

import json
import os
import shutil
import tempfile
from hashlib import blake2b
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor

from engine import env
from engine.errors import CheckpointError
from engine.weights.gguf import GGUFFile

# Part of the cache key: raise it when the same file would be converted into something else.
FORMAT = 1
_SHARD_BYTES = 2**30


def converted(path: Path) -> Path:
    """The folder that holds the converted checkpoint; converts on first use.

    Another process may do the same: each writes its own folder, and the first to finish stays.
    """
    target = cache_folder(path)
    if target.exists():
        return target
    file = GGUFFile(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
    try:
        _write(file, partial)
        if not target.exists():
            partial.replace(target)
    except OSError:
        if not target.exists():
            raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


def cache_folder(path: Path) -> Path:
    """Where the conversion of this file, as it is now, belongs."""
    stat = path.stat()
    key = f"{path.resolve()}\0{stat.st_size}\0{stat.st_mtime_ns}\0{FORMAT}"
    digest = blake2b(os.fsencode(key), digest_size=8).hexdigest()
    return Path(env.CACHE_DIR.value()).expanduser() / "gguf" / f"{path.stem}-{digest}"


def _write(file: GGUFFile, folder: Path) -> None:
    config = file.config()
    (folder / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
    _write_tensors(file, folder)
    _write_tokenizer(file.path, folder)


def _write_tensors(file: GGUFFile, folder: Path) -> None:
    weight_map: dict[str, str] = {}
    shard: dict[str, Tensor] = {}
    size = total = 0

    def flush() -> None:
        name = f"model-{len(set(weight_map.values())) + 1:05d}.safetensors"
        save_file(shard, folder / name, metadata={"format": "pt"})
        weight_map.update(dict.fromkeys(shard, name))
        shard.clear()

    for name, tensor in file.tensors():
        if shard and size + tensor.nbytes > _SHARD_BYTES:
            flush()
            size = 0
        shard[name] = tensor
        size += tensor.nbytes
        total += tensor.nbytes
    flush()
    index: dict[str, Any] = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")


def _write_tokenizer(path: Path, folder: Path) -> None:
    # Costs seconds to import; needed only here.
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(str(path.parent), gguf_file=path.name)
    # The libraries behind it raise bare Exception for a broken vocabulary.
    except Exception as error:
        raise CheckpointError(f"the tokenizer inside {path} cannot be read: {error}") from error
    tokenizer.save_pretrained(folder)
