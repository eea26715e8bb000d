"""Model families by the `architectures` entry of a checkpoint's configuration."""

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from engine.errors import CheckpointError

if TYPE_CHECKING:
    from engine.models.base import Family

ARCHITECTURES = {
    "Gemma3ForCausalLM": "engine.models.gemma3",
    "LlamaForCausalLM": "engine.models.llama",
    "OPTForCausalLM": "engine.models.opt",
    "Qwen3ForCausalLM": "engine.models.qwen3",
}


def family_of(config: Mapping[str, Any]) -> "Family":
    """The family of a configuration. Raises CheckpointError naming what it asks for and what there is."""
    wanted = config.get("architectures") or []
    for architecture in wanted:
        if architecture in ARCHITECTURES:
            family: Family = importlib.import_module(ARCHITECTURES[architecture]).FAMILY
            return family
    raise CheckpointError(
        f"architectures {list(wanted)} of the checkpoint's config.json are not supported; "
        f"supported are {', '.join(sorted(ARCHITECTURES))}"
    )
