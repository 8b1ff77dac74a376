"""What can go wrong, as exceptions.

The native part raises these; nothing else of its own leaves it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass


@dataclass(frozen=True)
class Problem:
    """One thing wrong with an input, where it stands, and what to do."""

    file: str | None
    """The file, or the argument that set the value."""
    line: int | None
    """The line in the file, from 1, where one is known."""
    key: str | None
    """The key, its tables joined by dots: ``fabric.guard``."""
    message: str
    """What was found, what is expected, what to do."""

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        text = ": ".join(part for part in (place, self.key, self.message) if part)
        return "".join(c if c.isprintable() or c == "\n" else _escaped(c) for c in text)


def _escaped(letter: str) -> str:
    """A character that commands a terminal, by its number: a traceback is printed there."""
    return letter.encode("unicode_escape").decode()


class Error(Exception):
    """Anything that Rackloom itself raises."""


class InputError(Error, ValueError):
    """The input cannot be used; nothing was written. Every reason is in ``problems``."""

    problems: list[Problem]

    def __init__(self, problems: Iterable[tuple[str | None, int | None, str | None, str]]) -> None:
        self.problems = [Problem(*problem) for problem in problems]
        super().__init__("\n".join(map(str, self.problems)))

    def __reduce__(self) -> tuple[type[InputError], tuple[list[tuple[object, ...]]]]:
        """Lets it pass between processes."""
        return type(self), ([astuple(problem) for problem in self.problems],)


class RunError(Error, RuntimeError):
    """The run broke, or its results could not be stored."""
