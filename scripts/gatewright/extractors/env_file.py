"""`.env` files, parsed strictly: a blank line, a comment, `NAME=value` or `# NAME=value`."""

import re

from gatewright.extractors.env_documented import EnvLine

NEWLINE = re.compile(r"\r\n|\r|\n")
# A comment that begins with an assignment is a variable shown with its default.
ASSIGNMENT = re.compile(r"\s*(?:#\s*)?(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)")
# A second name: after what separates, or glued to the end of a value. Base64 ends in "=" too, but holds no "_".
SECOND = re.compile(r"(?:[\s#;]|\\n)([A-Z][A-Z0-9_]{2,})=|(?:^|(?<=[a-z0-9./\"']))([A-Z][A-Z0-9]*_[A-Z0-9_]*)=(?!=)")
QUOTED = re.compile(r"""\s*(?:"(?:[^"\\]|\\.)*"|'[^']*')\s*(?:#.*)?""")


def extract(data: bytes, options: object = None) -> list[EnvLine]:
    """The variables and the malformed lines of one file, in order."""
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    return [fact for number, line in enumerate(NEWLINE.split(text), start=1) if (fact := _line(number, line))]


def _line(number: int, line: str) -> EnvLine | None:
    statement = " ".join(line[:1000].split())[:160]
    match = ASSIGNMENT.fullmatch(line)
    if match is None:
        if not line.strip() or line.lstrip().startswith("#"):
            return None
        return EnvLine(number, "", problem="is neither NAME=value, a comment nor blank", statement=statement)
    name, value = match[1], match[2]
    shown = line.lstrip().startswith("#")
    return EnvLine(number, name, _unquoted(value), _problem(name, value), statement, shown)


def _problem(name: str, value: str) -> str:
    opener = value.lstrip()[:1]
    if opener in ("'", '"'):
        return "" if QUOTED.fullmatch(value) else "has an unclosed quote or text after the closing quote"
    second = SECOND.search(value)
    if second is not None:
        return f"holds two names on one line, {name} and {second[1] or second[2]}"
    if value[:1].isspace() and _unquoted(value):
        return "has white space after the ="
    return ""


def _unquoted(value: str) -> str:
    text = value.strip()
    if text[:1] in ("'", '"') and QUOTED.fullmatch(value):
        return text[1 : text.rindex(text[0])]
    return re.sub(r"(?:^|\s)#.*", "", text).rstrip()
