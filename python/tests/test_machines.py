"""Machines, experiments, captures."""

from pathlib import Path

import pytest

import freehold


def test_a_machine_goes_through_toml_and_dictionaries() -> None:
    machine = freehold.Machine("xeon-5320")
    assert "xeon-5320" in freehold.Machine.names() and machine.cpus > 1 and machine.nodes >= 1
    again = freehold.Machine.from_toml(machine.to_toml())
    assert again.name == "xeon-5320" and again.to_toml() == machine.to_toml()
    tomllib = pytest.importorskip("tomllib")
    tables = tomllib.loads(machine.to_toml())
    assert figures(freehold.Machine.from_dict(tables)) == figures(machine)
    tables["cpu"]["lock_ns"]["value"] = 9.5
    faster = freehold.Machine.from_dict(tables)
    assert figures(faster) == {**figures(machine), "cpu.lock_ns": 9.5}
    with pytest.raises(freehold.FreeholdError):
        freehold.Machine.from_dict({})


def figures(machine: freehold.Machine) -> dict[str, float]:
    rows = machine.figures.to_pyarrow().to_pylist()
    assert {row["kind"] for row in rows} <= {"published", "measured", "counted", "fitted", "estimated"}
    return {row["figure"]: row["value"] for row in rows}


def test_an_experiment_runs_on_the_machine_that_is_asked_for() -> None:
    names = freehold.Experiment.names()
    assert "pcp-batch" in names and "llfree-bulk" in names
    experiment = freehold.Experiment("llfree-bulk")
    assert experiment.variants and experiment.title
    heard: list[int] = []
    result = experiment.run(seeds=1, progress=lambda ended, total, what: heard.append(total))
    rows = result.rows.to_pyarrow().to_pylist()
    assert len(heard) == heard[0] and rows
    assert all(row["experiment"] == "llfree-bulk" and row["simulated"] > 0 for row in rows)
    assert "llfree-bulk" in result.verdict()


def test_captures_are_held_against_the_rules(conformance: Path) -> None:
    files = freehold.conform(conformance / "linux-6.18-c2-4G.txt")["files"]
    assert len(files) == 1 and files[0]["differences"] == []
    with pytest.raises(freehold.FreeholdError):
        freehold.conform("no-such-capture.txt")
