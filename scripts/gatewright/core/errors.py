"""The two ways in which a run ends without a verdict; each carries its exit code."""


class GateError(Exception):
    """What happened, and what to do about it. Printed as is, never as a traceback."""

    exit_code = 3

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.help = help

    def __reduce__(self) -> tuple[type["GateError"], tuple[str, str]]:
        return type(self), (self.message, self.help)


class PolicyError(GateError):
    """Wrong usage or an invalid policy file: exit code 2."""

    exit_code = 2


class CannotJudge(GateError):
    """The tree could not be looked at (missing base, unreadable object, missing tool): exit 3."""

    exit_code = 3


class Unrelated(CannotJudge):
    """Two commits have no common ancestor in a complete history."""
