"""Platforms are found on disk: each sub-package with a `PLATFORM` is one."""

import importlib
import pkgutil

from engine.errors import ConfigError
from engine.platforms.interface import Platform

AUTO = "auto"


def names() -> list[str]:
    """Every platform, the first choice of `auto` first."""
    return [platform.name for platform in _all()]


def find(name: str) -> Platform:
    """The platform of this name, usable here or not. Raises ConfigError when there is none."""
    for platform in _all():
        if platform.name == name:
            return platform
    raise ConfigError(f"there is no platform {name!r}; there are {', '.join(names())}")


def select(name: str = AUTO) -> Platform:
    """The named platform, or the first that this machine has. Raises ConfigError with the reason otherwise."""
    if name != AUTO:
        platform = find(name)
        reason = platform.unavailable()
        if reason:
            raise ConfigError(f"platform {name!r} is not usable here: {reason}")
        return platform
    reasons = []
    for platform in _all():
        reason = platform.unavailable()
        if reason is None:
            return platform
        reasons.append(f"{platform.name}: {reason}")
    raise ConfigError(f"no platform is usable here: {'; '.join(reasons)}")


def _all() -> list[Platform]:
    platforms = []
    for module in pkgutil.iter_modules(__path__):
        if module.ispkg:
            package = importlib.import_module(f"{__name__}.{module.name}")
            if hasattr(package, "PLATFORM"):
                platforms.append(package.PLATFORM)
    return sorted(platforms, key=lambda platform: (platform.rank, platform.name))
