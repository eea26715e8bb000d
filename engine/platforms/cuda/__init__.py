"""NVIDIA GPUs."""

from engine.platforms.cuda.platform import CudaPlatform

PLATFORM = CudaPlatform()
