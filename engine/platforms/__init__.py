"""Platforms are found on disk: each sub-package with a `PLATFORM` is one."""

import importlib
import pkgutil

from engine.errors import ConfigError
from engine.platforms.interface import Platform

AUTO = "auto"


def names() -> list[str]:
    """Every platform, the first choice of `auto` first."""
    return [platform.name for platform in _all()]


def select(name: str = AUTO) -> Platform:
    """The named platform, or the first that this machine has. Raises ConfigError with the reason otherwise."""
    found = _all()
    reasons = {platform.name: platform.unavailable() for platform in found if name in (AUTO, platform.name)}
    for platform in found:
        if platform.name in reasons and reasons[platform.name] is None:
            return platform
    if name == AUTO:
        listed = "; ".join(f"{platform}: {reason}" for platform, reason in reasons.items())
        raise ConfigError(f"no platform is usable here: {listed}")
    if name in reasons:
        raise ConfigError(f"platform {name!r} is not usable here: {reasons[name]}")
    raise ConfigError(f"there is no platform {name!r}; there are {', '.join(p.name for p in found)}")


def _all() -> list[Platform]:
    platforms = []
    for module in pkgutil.iter_modules(__path__):
        if module.ispkg:
            package = importlib.import_module(f"{__name__}.{module.name}")
            if hasattr(package, "PLATFORM"):
                platforms.append(package.PLATFORM)
    return sorted(platforms, key=lambda platform: (platform.rank, platform.name))
