"""Capabilities of the host processor."""

from collections.abc import Sequence

import torch

from engine.ops.table import Provider
from engine.platforms.cpu import attention, onednn
from engine.platforms.interface import Platform


class CpuPlatform(Platform):
    name = "cpu"
    device = torch.device("cpu")
    rank = 9

    def unavailable(self) -> str | None:
        return None

    def supported_dtypes(self) -> tuple[torch.dtype, ...]:
        # Without these instructions bfloat16 is emulated, and float16 is emulated everywhere.
        has_bf16 = torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()
        return (torch.bfloat16, torch.float32) if has_bf16 else (torch.float32,)

    def providers(self) -> Sequence[Provider]:
        return (onednn.PROVIDER, attention.PROVIDER)

    def describe(self) -> dict[str, str]:
        return {"capability": torch.backends.cpu.get_cpu_capability(), "threads": str(torch.get_num_threads())}
