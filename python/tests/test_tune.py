"""Searches: Freehold's own race, and Optuna's."""

import json
from pathlib import Path

import pytest

import freehold

KNOBS = {"vm.percpu_pagelist_high_fraction": [0, 8, 64], "pcp.batch": ["auto", 16]}


def search(**options: object) -> freehold.Search:
    options = {"goal": "pages_per_second", "seeds": 2, "unseen": 2, **options}
    return freehold.Search(freehold.Experiment("llfree-bulk"), **options)  # type: ignore[arg-type]


def one_axis() -> freehold.Search:
    experiment = freehold.Experiment("llfree-bulk")
    axes = freehold.Search(experiment, seeds=2, unseen=2).space
    knob = min(axes, key=lambda axis: len(axis["values"]))
    values = list(dict.fromkeys([knob["current"], *knob["values"]]))[:3]
    return search(knobs={knob["knob"]: values})


def test_a_race_ends_with_an_answer_and_runs_nothing_twice(tmp_path: Path) -> None:
    axes = one_axis().space
    knobs = {axes[0]["knob"]: axes[0]["values"]}
    heard: list[tuple[int, int]] = []
    journal = tmp_path / "journal"
    asked = search(knobs=knobs, journal=journal, budget=8)
    first = asked.run(progress=lambda ended, total, what: heard.append((ended, total)))
    told = first.to_dict()["tune"][0]
    assert told["current"]["seeds"] == 2 and [axis["knob"] for axis in told["space"]["axes"]] == list(knobs)
    assert heard and all(ended <= total for ended, total in heard)
    assert (first.plan() is None) == (told["winner"] is None)
    lines = journal.read_text().splitlines()
    assert len(lines) >= len(axes[0]["values"]) and all(json.loads(line)["key"] for line in lines)
    again = freehold.tune(
        freehold.Experiment("llfree-bulk"), goal="pages_per_second", seeds=2, unseen=2, budget=8, knobs=knobs, journal=journal
    )
    assert journal.read_text().splitlines() == lines
    assert again.to_dict()["tune"] == first.to_dict()["tune"]


def test_a_setting_is_simulated_by_itself() -> None:
    asked = one_axis()
    axis = asked.space[0]
    other = next(value for value in axis["values"] if value != axis["current"])
    values, current = asked.evaluate({axis["knob"]: other}, seed=3), asked.evaluate(seed=3)
    assert values["pages_per_second"] and current == asked.evaluate({axis["knob"]: axis["current"]}, seed=3)
    assert asked.shares[-1] == 1.0
    with pytest.raises(freehold.FreeholdError, match="no part of"):
        asked.evaluate(share=0.77)
    limited = search(keep="pages_per_second:min=98%")
    breaches = limited.breaches({"pages_per_second": 49.0}, {"pages_per_second": 100.0})
    assert breaches.pop("pages_per_second:min=98%") == pytest.approx(0.5) and list(breaches.values()) == [0.0]
    with pytest.raises(freehold.FreeholdError, match="vm.swappines"):
        search(knobs=["vm.swappines"])
    with pytest.raises(freehold.FreeholdError, match="several"):
        search(machine=["epyc-7w83", "xeon-8260"]).evaluate()


def test_optuna_searches_with_limits_and_seeds() -> None:
    optuna = pytest.importorskip("optuna")
    from freehold.optuna import create_study, objective

    asked = one_axis()
    study = create_study(asked, pruner=optuna.pruners.NopPruner())
    study.optimize(objective(asked, seeds=2), n_trials=5)
    axis = asked.space[0]
    assert study.directions == [optuna.study.StudyDirection.MAXIMIZE]
    assert study.trials[0].params == {axis["knob"]: axis["current"]}
    assert list(study.trials[0].constraints.values()) == [0.0]
    mean = sum(asked.evaluate(seed=seed)["pages_per_second"] or 0.0 for seed in (1, 2)) / 2
    assert study.trials[0].value == pytest.approx(mean)
    assert study.best_value >= mean
