"""What the ``rackloom`` command does with libraries of Python; its other parts need none."""

from __future__ import annotations

from rackloom import cluster as clusters
from rackloom.sampler import Dimension, Sampler


def cluster(address: str) -> clusters.Cluster:
    """The Dask cluster whose scheduler has this address."""
    return clusters.of(address)


def sampler(space: list[Dimension], maximised: list[bool], seed: int) -> Sampler:
    """Optuna's sampler of a search."""
    return Sampler(space, maximised, seed)
