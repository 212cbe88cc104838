"""Optuna on Freehold's simulations: its samplers and pruners search the knobs of a :class:`freehold.Search`.

Seeds are instances: every trial meets the same ones in the same order, so a pruner compares like with like, and a setting that is
worse from the first seeds on is given up. Limits (``keep=``) are constraints. ::

    search = freehold.Search(freehold.Recording("redis.rec"), machine="epyc-7w83", keep="peak_rss:max=105%")
    study = create_study(search)
    study.optimize(objective(search), n_trials=64, n_jobs=4)
    study.best_trial.params
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import optuna

from . import FreeholdError, Search

def directions(search: Search) -> list[str]:
    """Which way each goal is better, in Optuna's words."""
    words = {"lower": "minimize", "higher": "maximize"}
    return [words[goal["better"]] for goal in search.goals]


def create_study(search: Search, **options: Any) -> optuna.Study:
    """A study of the goals of ``search`` whose first trial is the current setting. ``options`` are those of ``optuna.create_study``."""
    study = optuna.create_study(**{"directions": directions(search), **options})
    study.enqueue_trial({axis["knob"]: axis["current"] for axis in search.space}, skip_if_exists=True)
    return study


def objective(search: Search, *, seeds: int = 5, seed: int = 1) -> Callable[[optuna.Trial], float | tuple[float, ...]]:
    """What ``study.optimize`` takes: the mean of each goal over ``seeds`` seeds from ``seed`` on."""
    names = [goal["metric"] for goal in search.goals]
    axes = search.space

    @lru_cache(maxsize=None)
    def current(at: int) -> dict[str, float | None]:
        return search.evaluate(seed=at)

    def one(trial: optuna.Trial) -> float | tuple[float, ...]:
        knobs = {axis["knob"]: trial.suggest_categorical(axis["knob"], axis["values"]) for axis in axes}
        differing = {axis["knob"]: knobs[axis["knob"]] for axis in axes if knobs[axis["knob"]] != axis["current"]}
        sums = [0.0] * len(names)
        breaches: dict[str, float] = {}
        for step in range(seeds):
            try:
                values = search.evaluate(differing, seed=seed + step)
            except FreeholdError as error:
                trial.set_user_attr("freehold:error", str(error))
                raise optuna.TrialPruned(str(error)) from None
            # What did not happen took no time.
            sums = [so_far + (values[name] or 0.0) for so_far, name in zip(sums, names, strict=True)]
            for limit, breach in search.breaches(values, current(seed + step)).items():
                breaches[limit] = breaches.get(limit, 0.0) + breach / seeds
            if len(names) == 1:
                trial.report(sums[0] / (step + 1), step)
                if step + 1 < seeds and trial.should_prune():
                    raise optuna.TrialPruned
        for limit, breach in breaches.items():
            trial.set_constraint(limit, breach)
        means = tuple(so_far / seeds for so_far in sums)
        return means[0] if len(means) == 1 else means

    return one
