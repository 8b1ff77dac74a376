"""The page over a results directory, from a notebook or a script."""

from __future__ import annotations

import subprocess
import sys
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

from rackloom.errors import InputError, RunError

if TYPE_CHECKING:
    import os
    from types import TracebackType

INPUT = 2
"""The exit code of bad input."""


class View:
    """A page that is served, until ``close``, the end of a ``with``, or that of the program."""

    url: str
    """Where it is: an address of this machine alone."""

    def __init__(self, url: str, process: subprocess.Popen[str]) -> None:
        self.url = url
        self._end = weakref.finalize(self, _end, process)

    def close(self) -> None:
        """Ends it."""
        self._end()

    def __enter__(self) -> View:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"rackloom.View({self.url!r})" if self._end.alive else "rackloom.View(closed)"

    def _repr_html_(self) -> str:
        if not self._end.alive:
            return "closed"
        return f'<a href="{self.url}" target="_blank" rel="noopener">{self.url}</a>'


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def view(directory: str | os.PathLike[str] = "results", /, *, port: int = 0) -> View:
    """Serves a page over the results in ``directory`` to browsers on this machine alone.

    It is the page of ``rackloom view``, in a process of its own: what runs meanwhile is shown while
    it is under way.

    Args:
        directory: Where results are.
        port: The port of 127.0.0.1; 0 takes a free one.

    Returns:
        The page, with its address; a notebook shows a link to it.

    Raises:
        InputError: The directory holds no results.
        RunError: The port is taken.
    """
    place = str(Path(directory))
    command = [
        sys.executable,
        "-m",
        "rackloom",
        "view",
        "--quiet",
        "--port",
        str(port),
        "--",
        place,
    ]
    # Of a session of its own: Ctrl-C stops what runs in the notebook, not its page.
    process = subprocess.Popen(  # noqa: S603 - the command of this package
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    url = process.stdout.readline().strip() if process.stdout else ""
    if url:
        return View(url, process)
    _, said = process.communicate()
    message = said.strip().removeprefix(f"{place}: ")
    if process.returncode == INPUT:
        raise InputError([(place, None, None, message)])
    raise RunError(message)
