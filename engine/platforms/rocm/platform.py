"""Capabilities of AMD GPUs."""

from engine.platforms.gpu_kernels.platform import TorchGpuPlatform


class RocmPlatform(TorchGpuPlatform):
    name = "rocm"
    rank = 1
    rocm_build = True
