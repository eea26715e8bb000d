"""Preprocessor directives of C-family source, and the conditional branches that they open."""

import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence

import msgspec

from gatewright.readers.c_tokens import LINE_END, Token

_LINE_ENDS = re.compile(rf"(?:{LINE_END})+")
_LOGICAL_END = re.compile(rf"[\\\r\n](?:(?<=[\r\n])|(?P<splice>[ \t\v\f]*+{LINE_END}))")
_KEYWORD = re.compile(r"\#[ \t\v\f]*+(\w*+)")
_INTEGER = re.compile(r"(?:0[xX](?P<hex>[0-9a-fA-F]++)|0[bB](?P<binary>[01]++)|(?P<decimal>[0-9]++))[uUlL]*+")
_OPENING = frozenset({"if", "ifdef", "ifndef"})
_CONTINUING = frozenset({"elif", "elifdef", "elifndef", "else"})


class Directive(msgspec.Struct, frozen=True):
    """One directive. `text` follows the keyword: comments gone, lines joined, ends trimmed.

    `start` is the offset of the `#`, `body` that after the keyword, `end` that of the line end.
    `dead`: the preprocessor evaluates it under no configuration.
    """

    start: int
    body: int
    end: int
    keyword: str
    text: str
    dead: bool


class Branch(msgspec.Struct, frozen=True):
    """What one `#if`, `#elif` or `#else` opens, judged on its own.

    `condition` is an expression, whatever the spelling: `#ifndef X` gives `!defined(X)`, and an
    `#else` the negation of every arm before it. `parent` is an index of `branches`, or -1.
    """

    condition: str
    parent: int
    dead: bool


class Preprocessor(msgspec.Struct):
    """Directives and branches of one file in order. From offset `marks[i]` on, `open[i]` is the innermost branch."""

    directives: list[Directive] = msgspec.field(default_factory=list)
    branches: list[Branch] = msgspec.field(default_factory=list)
    marks: list[int] = msgspec.field(default_factory=lambda: [0])
    open: list[int] = msgspec.field(default_factory=lambda: [-1])

    def mark(self, offset: int, branch: int) -> None:
        self.marks.append(offset)
        self.open.append(branch)

    def branch_at(self, offset: int) -> int:
        """Index of the innermost branch around `offset`, or -1."""
        return self.open[bisect_right(self.marks, offset) - 1]

    def is_dead(self, offset: int) -> bool:
        """Whether every configuration drops the text at `offset`."""
        index = self.branch_at(offset)
        return index >= 0 and self.branches[index].dead

    def enclosed(self, test: Callable[[str], bool]) -> list[bool]:
        """For each branch: does its condition, or that of a branch around it, satisfy `test`?"""
        answers: list[bool] = []
        for branch in self.branches:
            answers.append(test(branch.condition) or (branch.parent >= 0 and answers[branch.parent]))
        return answers

    def ends_between(self, start: int, end: int) -> bool:
        """Whether a directive ends in `start..end`."""
        index = bisect_left(self.directives, start, key=lambda directive: directive.end)
        return index < len(self.directives) and self.directives[index].end <= end

    def dropped(self) -> list[tuple[int, int]]:
        """Spans that are no statements of any configuration: dead branches and directives."""
        dead = [
            (start, end)
            for start, end, index in zip(self.marks, [*self.marks[1:], sys.maxsize], self.open, strict=True)
            if index >= 0 and self.branches[index].dead
        ]
        lines = [(directive.start, directive.end) for directive in self.directives]
        return sorted(dead + lines)


class _Group(msgspec.Struct):
    """A conditional that is still open: the branch around it, and its arms so far."""

    parent: int
    dead: bool
    # An arm before was constantly true, so the preprocessor looks at none of the rest.
    taken: bool = False
    arms: list[str] = msgspec.field(default_factory=list)

    def add(self, keyword: str, text: str) -> str:
        """The condition of one more arm."""
        if keyword == "else":
            condition = " && ".join(f"!({arm})" for arm in self.arms)
            self.arms = []
        elif keyword.endswith("def"):
            condition = f"{'!' if keyword.endswith('ndef') else ''}defined({text})"
        else:
            condition = text
        self.arms.append(condition)
        return condition


def read_preprocessor(text: str, code: str, tokens: Sequence[Token]) -> Preprocessor:
    """Directives of `text`; `code` is the same text with all `tokens` blanked."""
    result = Preprocessor()
    groups: list[_Group] = []
    current, dead = -1, False
    for start, body, end, keyword, line in _directives(text, code, tokens):
        if keyword in _OPENING:
            groups.append(_Group(current, dead))
        elif not groups or not (keyword in _CONTINUING or keyword == "endif"):
            result.directives.append(Directive(start, body, end, keyword, line, dead))
            continue
        group = groups[-1]
        unread = group.dead or (group.taken and keyword != "endif")
        result.directives.append(Directive(start, body, end, keyword, line, unread))
        result.mark(start, group.parent)
        if keyword == "endif":
            current, dead = group.parent, group.dead
            groups.pop()
            continue
        condition = group.add(keyword, line)
        value = None if keyword == "else" else constant(condition)
        group.taken = group.taken or value is True
        dead = unread or value is False
        result.branches.append(Branch(condition, group.parent, dead))
        current = len(result.branches) - 1
        result.mark(end, current)
    return result


def _directives(text: str, code: str, tokens: Sequence[Token]) -> Iterator[tuple[int, int, int, str, str]]:
    """Each directive's start (its `#`), body (after the keyword), end, keyword and text."""
    position = first = 0
    while (start := code.find("#", position)) >= 0:
        before = max(code.rfind("\n", position, start), code.rfind("\r", position, start))
        opens_line = before >= 0 or position == 0
        if not opens_line or code[before + 1 : start].strip():
            position = start + 1
            continue
        while first < len(tokens) and tokens[first].end <= start:
            first += 1
        match = _KEYWORD.match(code, start)
        keyword, body = (match[1], match.end()) if match else ("", start + 1)
        position, line, first = _logical_line(text, code, tokens, first, body)
        yield start, body, position, keyword, line


def _logical_line(text: str, code: str, tokens: Sequence[Token], index: int, start: int) -> tuple[int, str, int]:
    """From `start` to the line end that is neither escaped nor inside a token: (end, spelling, next token).

    The spelling has comments and line ends as spaces and literals as written. `index` is that of
    the first token at or after `start`.
    """
    pieces: list[str] = []
    while True:
        following = tokens[index].start if index < len(tokens) else len(text)
        position = start
        while (match := _LOGICAL_END.search(text, position)) and match["splice"] and match.start() < following:
            position = match.end()
        end = match.start() if match else len(text)
        if end <= following:
            pieces.append(code[start:end])
            return end, _LINE_ENDS.sub(" ", "".join(pieces)).strip(), index
        token = tokens[index]
        spelling = " " if token.kind == "comment" else text[token.start : token.end]
        pieces += (code[start : token.start], spelling)
        start = token.end
        index += 1


# Operators of the logic, parentheses, and runs of anything else (comparisons stay whole).
_LOGIC = re.compile(r"&&|\|\||!(?!=)|[()]|(?:[^&|!()]|&(?!&)|\|(?!\|)|!=)++")
_NAME_OR_LOGIC = re.compile(r"!(?!=)|[()]|[A-Za-z_]\w*+")


def constant(condition: str) -> bool | None:
    """The value that a condition has whatever the macros are, else None.

    Knows integers, `true`, `false`, `!`, `&&`, `||` and parentheses; the rest is unknown.
    """
    if "?" in condition:
        return None
    outer: list[_Logic] = []
    logic = _Logic()
    for token in map(str.strip, _LOGIC.findall(condition)):
        if token == "(":
            outer.append(logic)
            logic = _Logic()
        elif token == ")":
            if not outer:
                return None
            value, logic = logic.value(), outer.pop()
            logic.operand(value)
        elif token == "||":
            logic.alternative()
        elif token == "!":
            logic.negate = not logic.negate
        elif token and token != "&&":
            logic.operand(_literal(token))
        elif token:
            logic.open = False
    return None if outer else logic.value()


def asserted_names(condition: str) -> list[str]:
    """Names that a condition uses without negation: `A` and `C`, not `B`, of `A && !(B || !C)`."""
    names: list[str] = []
    outer: list[bool] = []
    negative = flip = False
    for token in _NAME_OR_LOGIC.findall(condition):
        if token == "!":
            flip = not flip
        elif token == "(":
            outer.append(negative)
            negative, flip = negative != flip, False
        elif token == ")":
            negative, flip = outer.pop() if outer else False, False
        elif token != "defined":
            if negative == flip:
                names.append(token)
            flip = False
    return names


class _Logic(msgspec.Struct):
    """A sum of products under evaluation in three values; None is unknown."""

    any: bool | None = False
    all: bool | None = True
    before: bool | None = True
    negate: bool = False
    # The product has just had an operand: another one without `&&` makes both part of a larger
    # expression (a call, arithmetic), whose value is unknown.
    open: bool = False

    def operand(self, value: bool | None) -> None:
        if self.open:
            value, product = None, self.before
        else:
            product = self.all
            value = value if value is None else value != self.negate
        self.before, self.all = product, _both(product, value)
        self.negate, self.open = False, True

    def alternative(self) -> None:
        self.any, self.all, self.open = self.value(), True, False

    def value(self) -> bool | None:
        product = self.all if self.open else None
        if self.any is True or product is True:
            return True
        return None if self.any is None or product is None else False


def _both(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _literal(text: str) -> bool | None:
    if match := _INTEGER.fullmatch(text):
        return match[match.lastgroup or 0].strip("0") != ""
    return {"true": True, "false": False}.get(text)
