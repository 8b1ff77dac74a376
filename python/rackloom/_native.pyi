"""The native part. JSON goes in as bytes and comes out as text."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Literal, TypeAlias

from rackloom.cluster import Cluster

VERSION: str

_Source: TypeAlias = Path | bytes
_Settings: TypeAlias = list[tuple[str, bytes, str]]
_Run: TypeAlias = tuple[Path, str, str]
_Point: TypeAlias = tuple[list[str], "_Status", str, "_Run | None", str | None]
_Swept: TypeAlias = tuple[Path, list[str], list["_Point"]]
_Status: TypeAlias = Literal["done", "failed", "not run"]
_Trial: TypeAlias = tuple[
    list[str], str, bool, list[str], list[Path], list[float] | None, str | None
]
_Searched: TypeAlias = tuple[Path, list[str], list["_Trial"], bool]
_Found: TypeAlias = tuple[str, list[tuple[str, str]], list[str], list[str], list[str]]
_Progress: TypeAlias = Callable[[str, float, float | None, str], None] | None

def command(arguments: list[str], extras: ModuleType) -> int: ...
def carry_out(
    work: bytes, files: list[Path], directory: Path, is_cancelled: Callable[[], bool]
) -> str | None: ...
def schema() -> str: ...
def listing(what: str | None = None) -> str: ...
def describe(name: str) -> tuple[str, str, str]: ...
def text(runs: list[tuple[str, str]]) -> str: ...
def page(runs: list[tuple[str, str]]) -> list[tuple[list[str], list[list[str]]]]: ...
def resolve(source: _Source, settings: _Settings) -> str: ...
def estimate(source: _Source, settings: _Settings) -> list[tuple[str, int, float | None, str]]: ...
def record(
    source: _Source, settings: _Settings, out: Path | None, flows: int
) -> list[tuple[str, Path | None, int, int, int, int, int]]: ...
def run(source: _Source, settings: _Settings, out: Path | None, progress: _Progress) -> _Run: ...
def compare(
    sources: list[tuple[_Source, _Settings]],
    jobs: int | None,
    out: Path | None,
    progress: _Progress,
) -> tuple[Path, list[_Run], str | None]: ...
def sweep(
    source: _Source,
    settings: _Settings,
    grid: list[tuple[str, list[str]]],
    jobs: int | None,
    out: Path | None,
    progress: _Progress,
    cluster: Cluster | None,
) -> tuple[_Swept, str | None]: ...
def search(
    source: _Source,
    settings: _Settings,
    wanted: tuple[list[str], list[str], list[str], list[str], int, int | None],
    extras: ModuleType,
    out: Path | None,
    progress: _Progress,
    cluster: Cluster | None,
) -> tuple[_Searched, str | None]: ...
def swept(directory: Path) -> _Swept: ...
def figure(directory: Path, keys: list[str], over: str | None, log: str) -> tuple[str, bytes]: ...
def reproduce(
    paper: str,
    experiments: Sequence[str],
    effort: str,
    jobs: int | None,
    out: Path,
    progress: _Progress,
) -> _Found: ...
def reproduce_all(
    experiments: Sequence[str],
    effort: str,
    jobs: int | None,
    out: Path,
    progress: _Progress,
    cluster: Cluster | None,
) -> tuple[_Found, str | None]: ...
