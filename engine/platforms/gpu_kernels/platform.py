"""What the two kinds of GPU that torch drives through one interface have in common."""

import torch
from torch import Tensor

from engine.platforms.gpu_kernels.readback import EventReadback
from engine.platforms.interface import Platform, Readback


class TorchGpuPlatform(Platform):
    """A GPU behind `torch.cuda`, which both vendors' builds of torch serve."""

    device = torch.device("cuda")
    supports_async_sampled_token_readback = True

    def toolkit(self) -> str | None:
        """Version of the vendor's toolkit that torch was built with; None for another build."""
        raise NotImplementedError

    def unavailable(self) -> str | None:
        if self.toolkit() is None:
            return f"torch {torch.__version__} is not built for {self.name}"
        return None if torch.cuda.is_available() else f"torch is built for {self.name} but finds no device"

    def supported_dtypes(self) -> tuple[torch.dtype, ...]:
        return (torch.bfloat16, torch.float16, torch.float32)

    def start_readback(self, tokens: Tensor, scores: Tensor) -> Readback:
        return EventReadback(tokens, scores)

    def describe(self) -> dict[str, str]:
        return {"device": torch.cuda.get_device_name()}
