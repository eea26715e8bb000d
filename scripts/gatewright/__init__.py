"""Gatewright: repository checks for fast-moving LLM inference codebases."""

__version__ = "0.1.0"
