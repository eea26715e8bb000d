"""What the text of a source file shows without parsing it: names it mentions, regions it marks."""

import re

from gatewright.extractors.env_documented import Mentions, Region, RegionOptions

NEWLINE = re.compile(r"\r\n|\r|\n")
NAME = re.compile(rb"(?<![A-Za-z0-9_])[A-Z][A-Z0-9]*_[A-Z0-9_]*(?![A-Za-z0-9_])")


def mentions(data: bytes, options: object = None) -> list[Mentions]:
    """The mentions of one file; an empty list when there are none."""
    names = sorted({name.decode() for name in NAME.findall(data)})
    return [Mentions(tuple(names))] if names else []


def region(data: bytes, options: RegionOptions) -> list[Region]:
    """Where the included part of a file lies."""
    lines = NEWLINE.split(data.decode("utf-8", "replace"))
    if not options.begin and not options.end:
        return [Region(1, len(lines))]
    begin = next((i for i, line in enumerate(lines, start=1) if options.begin in line), 0)
    end = next((i for i, line in enumerate(lines, start=1) if i > begin and options.end in line), 0)
    return [Region(begin + 1, end - 1) if begin and end else Region()]
