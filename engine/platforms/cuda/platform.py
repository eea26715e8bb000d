"""Capabilities of NVIDIA GPUs."""

import torch

from engine.platforms.gpu_kernels.platform import TorchGpuPlatform


class CudaPlatform(TorchGpuPlatform):
    name = "cuda"
    rank = 0

    def toolkit(self) -> str | None:
        return torch.version.cuda
