"""The host processor."""

from engine.platforms.cpu.platform import CpuPlatform

PLATFORM = CpuPlatform()
