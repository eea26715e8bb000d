"""Path patterns of policy files: `*` within a folder, `**` across folders, `{a,b}` alternatives."""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

import msgspec


def translate(pattern: str) -> str:
    """A regular expression for one glob, to be used with `fullmatch` on a '/'-separated path."""
    out: list[str] = []
    i, depth = 0, 0
    braces = _balanced(pattern)
    while i < len(pattern):
        char = pattern[i]
        if pattern.startswith("**/", i):
            out.append("(?:[^/]+/)*")
            i += 3
            continue
        if pattern.startswith("**", i):
            out.append(".*")
            i += 2
            continue
        if char == "*":
            out.append("[^/]*")
        elif char == "?":
            out.append("[^/]")
        elif char == "{" and braces:
            out.append("(?:")
            depth += 1
        elif char == "}" and depth:
            out.append(")")
            depth -= 1
        elif char == "," and depth:
            out.append("|")
        else:
            out.append(re.escape(char))
        i += 1
    return "".join(out)


def _balanced(pattern: str) -> bool:
    """Whether each brace has its partner; where one has none, all stand for themselves."""
    depth = 0
    for char in pattern:
        depth += {"{": 1, "}": -1}.get(char, 0)
        if depth < 0:
            return False
    return depth == 0


@lru_cache(maxsize=256)
def compile_globs(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{translate(p)})" for p in patterns) or r"(?!)", re.DOTALL)


_SUFFIXES = re.compile(r"\*\*/\*([^*?{}/]+)|\*\*/\*([^*?{}/]*)\{([^*?{}/]+)\}")


@lru_cache(maxsize=256)
def matcher(patterns: tuple[str, ...]) -> Callable[[str], object]:
    """Whether a path matches one of the patterns. Those that say only how a path ends cost next to nothing."""
    forms = [_SUFFIXES.fullmatch(pattern) for pattern in patterns]
    if not patterns or None in forms:
        return compile_globs(patterns).fullmatch
    parts = [form.groups() for form in forms if form is not None]
    ends = tuple(end or head + tail for end, head, tails in parts for tail in (tails or "").split(","))
    return lambda path: path.endswith(ends)


class PathSet(msgspec.Struct, frozen=True):
    """Paths that match one of `include` and none of `exclude`, and lie in one of `within` where there is any."""

    include: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    within: tuple["PathSet", ...] = ()

    def __contains__(self, path: str) -> bool:
        if self.within and not any(path in others for others in self.within):
            return False
        return bool(matcher(self.include)(path)) and not matcher(self.exclude)(path)

    def select(self, paths: Iterable[str]) -> "list[str]":
        inside, outside = matcher(self.include), matcher(self.exclude)
        chosen = [path for path in paths if inside(path) and not outside(path)] if self.include else []
        if not self.within:
            return chosen
        wider = {path for others in self.within for path in others.select(chosen)}
        return [path for path in chosen if path in wider]
