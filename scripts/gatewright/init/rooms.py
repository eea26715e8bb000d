"""Which folders and files are the rooms of one device, guessed from their names."""

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import PurePosixPath

import msgspec

from gatewright.init.layout import Packages, literal
from gatewright.init.words import WORDS

_DEVICE_OF = {word: device for device, words in WORDS.devices.items() for word in words}
# Files of a shared layer may well carry these words: `cpu_offload.py`, `gpu_memory.py`, `kernel_size.py`.
_WEAK = frozenset({"cpu", "gpu", "kernels"})


class Rooms(msgspec.Struct):
    """`globs` by device, `paths` the files they match; `unsure` folders are rooms only by their neighbours."""

    globs: dict[str, list[str]]
    paths: list[str]
    unsure: list[str]

    def hold(self, folder: str) -> bool:
        """Whether all of a folder is a room."""
        folders = [glob.removesuffix("/**") for globs in self.globs.values() for glob in globs if glob.endswith("/**")]
        return any(folder == room or folder.startswith(f"{room}/") for room in folders)


def guess_rooms(packages: Packages) -> Rooms:
    """Whole folders first, then single files of the folders that are left. Every glob matches a file."""
    found: dict[str, set[str]] = defaultdict(set)
    folders, unsure = _room_folders(packages)
    left: list[str] = []
    for path in packages.files:
        suffix = PurePosixPath(path).suffix
        folder = next((f for f in packages.folders(path) if f in folders), "")
        if folder:
            found[folders[folder]].add(f"{literal(folder)}/**")
        elif suffix in WORDS.device_source:
            found[WORDS.device_source[suffix]].add(f"{literal(packages.root(path))}/**/*{suffix}")
        else:
            left.append(path)
    files = _room_files(left)
    for (folder, device), paths in files.items():
        found[device].update(_together(folder, device, paths, left))
    inside = set(packages.files) - set(left) | {path for paths in files.values() for path in paths}
    return Rooms({device: sorted(globs) for device, globs in sorted(found.items())}, sorted(inside), unsure)


def _words(name: str) -> list[str]:
    return re.split(r"[_\-.]+", name.lower())


def _device(name: str) -> str:
    """The device that a name names, or nothing. A weak word counts only where the name has no other words."""
    words = _words(name)
    devices = [_DEVICE_OF[word] for word in words if word in _DEVICE_OF]
    strong = [device for device in devices if device not in _WEAK]
    if strong:
        return strong[0]
    return devices[0] if devices and len(devices) == len(words) else ""


def _room_folders(packages: Packages) -> tuple[dict[str, str], list[str]]:
    """Folder -> device, for folders named after one, and for those beside at least two such among backends."""
    children: dict[str, set[str]] = defaultdict(set)
    for path in packages.files:
        for folder in packages.folders(path):
            parent, _, name = folder.rpartition("/")
            children[parent].add(name)
    found: dict[str, str] = {}
    unsure: list[str] = []
    for parent, names in sorted(children.items()):
        devices = {name: _device(name) for name in names}
        backends = (
            _words(parent.rpartition("/")[2])[-1] in WORDS.folders.backends and sum(map(bool, devices.values())) > 1
        )
        for name, device in sorted(devices.items()):
            folder = f"{parent}/{name}".lstrip("/")
            if device:
                found[folder] = device
            elif backends and name.lower() not in WORDS.folders.portable:
                found[folder] = re.sub(r"[^a-z0-9]", "_", name.lower())
                unsure.append(folder)
    return found, [folder for folder in unsure if not any(folder.startswith(f"{room}/") for room in found)]


def _room_files(paths: Sequence[str]) -> dict[tuple[str, str], list[str]]:
    """(folder, device) -> files. A weak word counts where another file differs by its device's word alone."""
    alike: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for path in paths:
        folder, _, name = path.rpartition("/")
        words = _words(name)
        if not _DEVICE_OF.keys().isdisjoint(words):
            alike[folder, *("*" if word in _DEVICE_OF else word for word in words)].append(path)
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (folder, *_), group in alike.items():
        for path in group:
            devices = [_DEVICE_OF[word] for word in _words(PurePosixPath(path).stem) if word in _DEVICE_OF]
            strong = [device for device in devices if device not in _WEAK]
            if strong or (len(group) > 1 and devices):
                found[folder, (strong or devices)[0]].append(path)
    return found


def _together(folder: str, device: str, paths: Sequence[str], product: Sequence[str]) -> list[str]:
    """One glob for three or more files whose names share a device's word, where it matches no other file."""
    globs: list[str] = []
    left = set(paths)
    for word in WORDS.devices[device]:
        matched = {path for path in product if path.rpartition("/")[0] == folder and word in path.rpartition("/")[2]}
        if len(matched) > 2 and matched <= left:
            globs.append(f"{literal(folder)}/*{word}*")
            left -= matched
    return [*globs, *map(literal, sorted(left))]
