"""Capabilities of NVIDIA GPUs."""

from engine.platforms.gpu_kernels.platform import TorchGpuPlatform


class CudaPlatform(TorchGpuPlatform):
    name = "cuda"
    rank = 0
    rocm_build = False
