"""AMD GPUs."""

from engine.platforms.rocm.platform import RocmPlatform

PLATFORM = RocmPlatform()
