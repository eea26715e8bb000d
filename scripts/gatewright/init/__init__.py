"""`gate init`: a first policy for a repository that has none, guessed from its snapshot."""

from gatewright.init.write import write_policy

__all__ = ["write_policy"]
