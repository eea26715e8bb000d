"""Stop strings, found in streamed text wherever token borders lie."""

from collections.abc import Sequence


class StopStrings:
    """Lets text through until a stop string appears; holds back only what may be the start of one."""

    def __init__(self, stops: Sequence[str], include: bool = False) -> None:
        """`include` lets the stop string itself through."""
        self._stops = tuple(stops)
        self._include = include
        self._held = ""

    def feed(self, text: str) -> tuple[str, str | None]:
        """Text that may be shown now, and the stop string once one is complete."""
        text = self._held + text
        self._held = ""
        found = [(text.find(stop), -len(stop), stop) for stop in self._stops if stop in text]
        if found:
            # The earliest; of those that start together the longest.
            start, _, stop = min(found)
            return text[: start + (len(stop) if self._include else 0)], stop
        split = len(text) - self._possible_start(text)
        self._held = text[split:]
        return text[:split], None

    def flush(self) -> str:
        """What is held, when no more text comes."""
        held, self._held = self._held, ""
        return held

    def _possible_start(self, text: str) -> int:
        """Length of the longest end of the text with which a stop string begins."""
        longest = max((len(stop) for stop in self._stops), default=0)
        for length in range(min(longest - 1, len(text)), 0, -1):
            end = text[-length:]
            if any(stop.startswith(end) for stop in self._stops):
                return length
        return 0
