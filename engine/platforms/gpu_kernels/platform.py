"""What the two kinds of GPU that torch drives through one interface have in common."""

import torch
from torch import Tensor

from engine.platforms.gpu_kernels.readback import EventReadback
from engine.platforms.interface import Platform, Readback


class TorchGpuPlatform(Platform):
    """A GPU behind `torch.cuda`. `rocm_build` tells which vendor's build of torch it needs."""

    device = torch.device("cuda")
    supports_async_sampled_token_readback = True
    rocm_build: bool

    def unavailable(self) -> str | None:
        if (torch.version.hip is not None) is not self.rocm_build:
            return f"torch {torch.__version__} is not built for {self.name}"
        return None if torch.cuda.is_available() else f"torch is built for {self.name} but finds no device"

    def supported_dtypes(self) -> tuple[torch.dtype, ...]:
        return (torch.bfloat16, torch.float16, torch.float32)

    def start_readback(self, tokens: Tensor, scores: Tensor) -> Readback:
        return EventReadback(tokens, scores)

    def describe(self) -> dict[str, str]:
        return {"device": torch.cuda.get_device_name()}
