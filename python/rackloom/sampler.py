"""Chooses what a search tries next: Optuna's tree-structured Parzen estimator.

The search itself is the native part's: it makes runs of what is chosen here, judges them, and
says what came of them. A sampler is made anew for each trial, of the seed and the trial's number,
so that a search that goes on chooses as one that was never stopped.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from rackloom.errors import InputError

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler
    from optuna.trial import Trial

Dimension: TypeAlias = tuple[str, float, float, float, bool]
"""What a key may be: ``choice``, ``whole`` or ``real``; ends; step; whether by logarithm."""

FAILED = 1e6
"""The violation of what did not run, or came to no known aim: above that of any condition."""

SEEDS = 2**32


class Sampler:
    """Chooses trials, and hears what came of them."""

    def __init__(self, space: Iterable[Dimension], maximised: Sequence[bool], seed: int) -> None:
        try:
            import optuna  # noqa: PLC0415 - nothing else needs it
        except ImportError:
            message = "needs Optuna, which is not installed: pip install 'rackloom[search]'"
            raise InputError([("search", None, None, message)]) from None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._optuna = optuna
        self._space = {str(place): self._distribution(each) for place, each in enumerate(space)}
        self._seed = seed
        directions = ["maximize" if each else "minimize" for each in maximised]
        self._study = optuna.create_study(directions=directions)
        self._open: dict[int, Trial] = {}
        # Trials that are made; how often the last was asked for in vain, and the next.
        self._made = 0
        self._attempt = 0
        self._attempts = 0

    def ask(self, fixed: list[float] | None) -> tuple[int, list[float]]:
        """The trial's number and what it tries: these numbers, if any are given."""
        if fixed is not None:
            values = zip(self._space.values(), fixed, strict=True)
            given = [distribution.to_external_repr(value) for distribution, value in values]
            self._study.enqueue_trial(dict(zip(self._space, given, strict=True)))
        self._study.sampler = self._sampler()
        trial = self._study.ask(self._space)
        self._open[trial.number] = trial
        self._made += 1
        self._attempt, self._attempts = self._attempts, 0
        return trial.number, [float(trial.params[name]) for name in self._space]

    def forget(self, number: int) -> None:
        """Has the trial never been."""
        self._study.tell(self._open.pop(number), state=self._optuna.trial.TrialState.FAIL)
        self._made -= 1
        self._attempts = self._attempt + 1

    def tell(self, number: int, values: list[float] | None, violations: list[float]) -> None:
        """What came of a trial: its aims, if they are known, and what does not hold by how much."""
        trial = self._open.pop(number)
        for place, violation in enumerate(violations):
            trial.set_constraint(str(place), violation)
        trial.set_constraint("failed", 0.0 if values is not None else FAILED)
        if values is not None:
            self._study.tell(trial, values)
        else:
            self._study.tell(trial, state=self._optuna.trial.TrialState.PRUNED)

    def _sampler(self) -> BaseSampler:
        """The sampler of the next trial."""
        words = f"{self._seed} {self._made} {self._attempts}"
        digest = hashlib.sha256(words.encode()).digest()
        with warnings.catch_warnings():
            # That several keys at once are still an experiment of theirs.
            warnings.simplefilter("ignore", self._optuna.exceptions.ExperimentalWarning)
            return self._optuna.samplers.TPESampler(
                seed=int.from_bytes(digest[:8], "big") % SEEDS, multivariate=True
            )

    def _distribution(self, dimension: Dimension) -> BaseDistribution:
        kind, low, high, step, log = dimension
        distributions = self._optuna.distributions
        match kind:
            case "choice":
                return distributions.CategoricalDistribution(tuple(range(int(high) + 1)))
            case "whole":
                return distributions.IntDistribution(int(low), int(high), log=log, step=int(step))
            case _:
                return distributions.FloatDistribution(low, high, log=log)
