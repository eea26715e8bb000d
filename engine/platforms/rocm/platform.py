"""Capabilities of AMD GPUs."""

import torch

from engine.platforms.gpu_kernels.platform import TorchGpuPlatform


class RocmPlatform(TorchGpuPlatform):
    name = "rocm"
    rank = 1

    def toolkit(self) -> str | None:
        return torch.version.hip
