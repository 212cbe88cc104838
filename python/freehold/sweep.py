"""Many replays: recordings × machines × policies × settings × seeds, each run once, on this machine or on a Ray cluster.

A run is kept in a store under a name made of all that decides it: the recording's content, the machine's figures, the policy, the
setting, the seed and the version of Freehold. What is in the store does not run again, so a sweep that was stopped goes on where it
was, and two sweeps share what they have in common. Runs of a worker that is lost run again elsewhere; a run is the same to the bit
wherever it runs. ::

    grid = Grid(["redis.rec", "jvm.rec"], ["epyc-7w83", "xeon-8260"],
                {"transparent_hugepage.enabled": ["never", "madvise", "always"]})
    done = sweep(grid, "results/")
    done.cover("elapsed_ns", 2)
"""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import import_module
from os import PathLike, cpu_count
from typing import Any, NamedTuple

from . import FreeholdError, Machine, Recording, __version__
from . import replay as simulate
from .store import Store, open_store

Value = str | int | float
Setting = Mapping[str, Value]
Progress = Callable[[int, int, str], object]


@dataclass(frozen=True)
class Cell:
    """One run."""

    recording: str
    machine: str
    policy: str
    setting: tuple[tuple[str, Value], ...]
    copies: int
    seed: int
    force: bool = False

    def key(self) -> str:
        """The name of its result: a hash of all that decides it."""
        decides = {
            "freehold": __version__,
            "recording": _digest(self.recording),
            "machine": _figures(self.machine),
            "policy": self.policy,
            "setting": [[knob, str(value)] for knob, value in self.setting],
            "copies": self.copies,
            "seed": self.seed,
            **({"force": True} if self.force else {}),
        }
        return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()

    def __str__(self) -> str:
        return f"{self.recording} on {self.machine}, {self.policy}, {called(dict(self.setting))}, seed {self.seed}"


@dataclass(frozen=True)
class Grid:
    """What is to run: every combination. ``settings`` is a list of settings, or a dictionary of knobs with the values that each is to
    take; machines are names or files, so that every worker can read them. With ``force`` a knob that cannot act on a recording is no error
    there: it changes nothing."""

    recordings: Sequence[str | PathLike[str]]
    machines: Sequence[str]
    settings: Sequence[Setting] | Mapping[str, Sequence[Value]] = field(default_factory=lambda: [{}])
    policies: Sequence[str] = ("linux-6.18",)
    copies: int = 1
    seeds: int = 3
    seed: int = 1
    force: bool = False

    def all_settings(self) -> list[Setting]:
        """Every setting; of a dictionary all combinations."""
        if not isinstance(self.settings, Mapping):
            return list(self.settings)
        knobs, values = list(self.settings), list(self.settings.values())
        return [dict(zip(knobs, combination, strict=True)) for combination in itertools.product(*values)]

    def __len__(self) -> int:
        sides = (self.recordings, self.machines, self.policies, self.all_settings(), range(self.seeds))
        product = 1
        for side in sides:
            product *= len(side)
        return product

    def cells(self) -> Iterator[Cell]:
        """Every run, a recording's and a machine's together, so that what a worker read serves the next."""
        settings = [tuple(sorted(setting.items())) for setting in self.all_settings()]
        seeds = range(self.seed, self.seed + self.seeds)
        sides = (self.recordings, self.machines, self.policies, settings, seeds)
        for recording, machine, policy, setting, seed in itertools.product(*sides):
            yield Cell(str(recording), machine, policy, setting, self.copies, seed, self.force)


@dataclass(frozen=True)
class Sweep:
    """A grid and the store that has its runs."""

    grid: Grid
    store: Store
    ran: int = 0
    """Runs that were made this time."""
    took_seconds: float = 0.0
    cpu_seconds: float = 0.0
    """Of the simulations that were made this time, on whichever worker."""

    def results(self) -> Iterator[tuple[Cell, dict[str, Any]]]:
        """Every run that is there, as ``--json`` has it under ``runs``; what cannot run has ``error`` in its place."""
        for cell in self.grid.cells():
            kept = self.store.get(cell.key())
            if kept is not None:
                yield cell, kept

    def rows(self, metrics: Iterable[str] | None = None) -> Iterator[dict[str, Any]]:
        """A row for each figure of each run; of some figures alone if they are named."""
        wanted = None if metrics is None else set(metrics)
        for cell, kept in self.results():
            for metric, value in kept.get("figures", {}).items():
                if wanted is None or metric in wanted:
                    said = {"recording": cell.recording, "machine": cell.machine, "policy": cell.policy}
                    yield {**said, "setting": called(dict(cell.setting)), "seed": cell.seed, "metric": metric, "value": value}

    def errors(self) -> list[tuple[Cell, str]]:
        """What could not run, and why."""
        return [(cell, kept["error"]) for cell, kept in self.results() if "error" in kept]

    def cover(self, metric: str, count: int = 3, *, higher_is_better: bool = False) -> list[Covering]:
        """Settings that together serve all recordings on all machines: one after the other the one that, beside those before it, leaves
        the least to the best setting of each place, in the mean over places and seeds."""
        return _cover(self._places(metric, higher_is_better), count)

    def robustness(self, metric: str, count: int = 3, *, higher_is_better: bool = False) -> list[LeftOut]:
        """Whether such settings serve what they were not chosen on: for each recording, and for each machine, they are chosen without it, and
        set beside its best."""
        places = self._places(metric, higher_is_better)
        told = []
        for side, names in (("recording", self.grid.recordings), ("machine", self.grid.machines)):
            for name in map(str, names):
                others = {place: of for place, of in places.items() if getattr(place, side) != name}
                there = {place: of for place, of in places.items() if getattr(place, side) == name}
                if others and there:
                    lost = _lost(there, [one.setting for one in _cover(others, count)])
                    told.append(LeftOut(side, name, sum(lost) / len(lost), max(lost)))
        return told

    def _places(self, metric: str, higher_is_better: bool) -> Places:
        places: Places = {}
        for row in self.rows([metric]):
            place = Place(row["recording"], row["machine"], row["policy"], row["seed"])
            value = float(row["value"])
            places.setdefault(place, {})[row["setting"]] = -value if higher_is_better else value
        if not places:
            raise FreeholdError(f"no run of this sweep has the figure {metric}")
        return places


class Place(NamedTuple):
    """Where settings are set beside each other."""

    recording: str
    machine: str
    policy: str
    seed: int


Places = dict[Place, dict[str, float]]
"""What each setting comes to at each place; less is better."""


@dataclass(frozen=True)
class Covering:
    """A setting that joins those before it, and what all of them together still lose to the best setting of each place, in percent."""

    setting: str
    mean_loss_percent: float
    worst_loss_percent: float
    places: int


@dataclass(frozen=True)
class LeftOut:
    """What settings that were chosen without a recording or a machine lose to its best ones, in percent."""

    side: str
    name: str
    mean_loss_percent: float
    worst_loss_percent: float


@dataclass(frozen=True)
class Race:
    """Gives settings up early. After one seed, three, nine …, a setting goes on if at some place it is among the best third by ``metric``, or
    if it is one of the ``count`` that cover all places; so a setting that is good anywhere meets all seeds."""

    metric: str
    higher_is_better: bool = False
    count: int = 3

    def rungs(self, seeds: int) -> list[int]:
        """After how many seeds settings are given up; the last is all of them."""
        rungs = [1]
        while rungs[-1] * 3 < seeds:
            rungs.append(rungs[-1] * 3)
        return [*[rung for rung in rungs if rung < seeds], seeds]

    def go_on(self, done: Sweep) -> list[Setting]:
        """The settings of ``done`` that go on, in their order."""
        places: dict[tuple[str, str, str], dict[str, list[float]]] = {}
        all_of_it = done._places(self.metric, self.higher_is_better)
        for place, of in all_of_it.items():
            for setting, value in of.items():
                places.setdefault(place[:3], {}).setdefault(setting, []).append(value)
        good = {one.setting for one in _cover(all_of_it, self.count)}
        for values in places.values():
            ranked = sorted(values, key=lambda setting: sum(values[setting]) / len(values[setting]))
            good.update(ranked[: -(-len(ranked) // 3)])
        return [setting for setting in done.grid.all_settings() if called(setting) in good]


def called(setting: Setting) -> str:
    """A setting's name in tables."""
    return " ".join(f"{knob}={value}" for knob, value in sorted(setting.items())) or "default"


def _cover(places: Places, count: int) -> list[Covering]:
    settings = list(dict.fromkeys(setting for of in places.values() for setting in of))
    best = {place: min(of.values()) for place, of in places.items()}
    # What the settings so far leave at each place.
    left = {place: max(of.values()) for place, of in places.items()}
    told: list[Covering] = []
    chosen: list[str] = []
    while len(chosen) < min(count, len(settings)):
        lost = {}
        for one in settings:
            if one not in chosen:
                joined = (min(left[place], of.get(one, left[place])) for place, of in places.items())
                lost[one] = [_percent(ours, best[place]) for ours, place in zip(joined, places, strict=True)]
        next_one = min(lost, key=lambda one: sum(lost[one]) / len(lost[one]))
        chosen.append(next_one)
        left = {place: min(left[place], of.get(next_one, left[place])) for place, of in places.items()}
        of_it = lost[next_one]
        told.append(Covering(next_one, sum(of_it) / len(of_it), max(of_it), len(places)))
    return told


def _lost(places: Places, chosen: Sequence[str]) -> list[float]:
    lost = []
    for of in places.values():
        ours = min((of[one] for one in chosen if one in of), default=max(of.values()))
        lost.append(_percent(ours, min(of.values())))
    return lost


def _percent(ours: float, best: float) -> float:
    return 100 * (ours - best) / abs(best) if best else 0.0


def sweep(
    grid: Grid,
    store: str | PathLike[str] | Store,
    *,
    backend: str = "local",
    jobs: int = 0,
    race: Race | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Runs what the store does not have, or with ``race`` what of it is worth running: the answer has the settings that met all seeds. ``backend`` is ``local``, threads of this process (``jobs``; 0: as many as CPUs), or ``ray``, the
    cluster that Ray is connected to (``jobs`` runs at a time; 0: twice its CPUs). ``progress`` is called as in ``replay``."""
    kept = store if isinstance(store, Store) else open_store(store)
    if backend not in _RUNNERS:
        raise FreeholdError(f"no backend {backend}: local or ray")
    if race is None:
        return _swept(grid, kept, _RUNNERS[backend], jobs, progress)
    done, ran, took, cpu = Sweep(grid, kept), 0, 0.0, 0.0
    for seeds in race.rungs(grid.seeds):
        rung = replace(done.grid, seeds=seeds)
        done = _swept(rung, kept, _RUNNERS[backend], jobs, progress)
        ran, took, cpu = ran + done.ran, took + done.took_seconds, cpu + done.cpu_seconds
        if seeds < grid.seeds:
            done = replace(done, grid=replace(rung, settings=race.go_on(done)))
    return replace(done, ran=ran, took_seconds=took, cpu_seconds=cpu)


def _swept(grid: Grid, kept: Store, runner: Runner, jobs: int, progress: Progress | None) -> Sweep:
    begun = time.monotonic()
    missing = (cell for cell in grid.cells() if cell.key() not in kept)
    have = sum(cell.key() in kept for cell in grid.cells()) if progress else 0
    ran, cpu = 0, 0.0
    for said, seconds in runner(missing, kept, jobs):
        ran, cpu = ran + 1, cpu + seconds
        if progress is not None:
            progress(have + ran, len(grid), f"{said} ({cpu:.0f} s of simulating)")
    return Sweep(grid, kept, ran, time.monotonic() - begun, cpu)


def _local(cells: Iterator[Cell], store: Store, jobs: int) -> Iterator[tuple[str, float]]:
    at_once = jobs or cpu_count() or 1
    with ThreadPoolExecutor(at_once) as pool:
        # Cells are made as they are wanted: a plan of a hundred thousand runs takes no more memory than one of a hundred.
        waiting: set[Future[tuple[str, float]]] = set()
        try:
            for cell in cells:
                waiting.add(pool.submit(run_cell, cell, store))
                if len(waiting) >= 2 * at_once:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    yield from (one.result() for one in done)
            for one in waiting:
                yield one.result()
        finally:
            for one in waiting:
                one.cancel()


def _ray(cells: Iterator[Cell], store: Store, jobs: int) -> Iterator[tuple[str, float]]:
    ray: Any = import_module("ray")
    if not ray.is_initialized():
        ray.init(logging_level=logging.WARNING)
    at_once = jobs or 2 * int(ray.cluster_resources().get("CPU", 1))
    # A worker that dies takes its run with it; another makes it, as often as it takes.
    remote = ray.remote(num_cpus=1, max_retries=-1)(run_cell)
    waiting: list[Any] = []
    try:
        for cell in cells:
            waiting.append(remote.remote(cell, store))
            if len(waiting) >= at_once:
                done, waiting = ray.wait(waiting)
                yield from ray.get(done)
        while waiting:
            done, waiting = ray.wait(waiting)
            yield from ray.get(done)
    finally:
        # Those that have ended are not among them: Ray 2.60 ends the driver where one is cancelled that has just ended.
        for one in waiting:
            ray.cancel(one)


Runner = Callable[[Iterator[Cell], Store, int], Iterator[tuple[str, float]]]
_RUNNERS: dict[str, Runner] = {"local": _local, "ray": _ray}


def run_cell(cell: Cell, store: Store) -> tuple[str, float]:
    """Runs a cell and keeps what came out; says which it was, and the seconds that its simulation took."""
    try:
        recording = _recording(cell.recording)
        result = simulate(
            recording,
            machine=_machine(cell.machine),
            set=[f"{knob}={value}" for knob, value in cell.setting],
            policy=cell.policy,
            copies=cell.copies,
            seed=cell.seed,
            seeds=1,
            force=cell.force,
            jobs=1,
        )
    except FreeholdError as error:
        # It would say the same again, on any worker.
        store.put(cell.key(), {"error": str(error)})
        return str(cell), 0.0
    run = result.to_dict()["runs"][0]
    seconds = run.pop("wall_ns") / 1e9
    figures = result.figures
    names, values = figures.column("metric"), figures.column("value")
    store.put(cell.key(), {"run": run, "figures": dict(zip(names, values, strict=True))})
    return str(cell), seconds


@lru_cache(maxsize=4)
def _recording(path: str) -> Recording:
    return Recording(path)


@lru_cache(maxsize=64)
def _machine(name: str) -> Machine:
    return Machine(name)


@lru_cache(maxsize=4096)
def _figures(name: str) -> str:
    return hashlib.sha256(_machine(name).to_toml().encode()).hexdigest()


@lru_cache(maxsize=4096)
def _digest(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else _sum(file)
    except OSError as error:
        raise FreeholdError(f"{path}: {error.strerror}") from None


def _sum(file: Any) -> str:
    """As ``hashlib.file_digest``, which Python 3.10 does not have."""
    digest = hashlib.sha256()
    while piece := file.read(1 << 20):
        digest.update(piece)
    return digest.hexdigest()
