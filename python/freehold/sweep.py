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
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from os import PathLike, cpu_count
from typing import Any

from . import FreeholdError, Machine, Recording, __version__, replay
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
        }
        return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()

    def __str__(self) -> str:
        setting = " ".join(f"{knob}={value}" for knob, value in self.setting) or "default"
        return f"{self.recording} on {self.machine}, {self.policy}, {setting}, seed {self.seed}"


@dataclass(frozen=True)
class Grid:
    """What is to run: every combination. ``settings`` is a list of settings, or a dictionary of knobs with the values that each is to
    take; machines are names or files, so that every worker can read them."""

    recordings: Sequence[str | PathLike[str]]
    machines: Sequence[str]
    settings: Sequence[Setting] | Mapping[str, Sequence[Value]] = field(default_factory=lambda: [{}])
    policies: Sequence[str] = ("linux-6.18",)
    copies: int = 1
    seeds: int = 3
    seed: int = 1

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
            yield Cell(str(recording), machine, policy, setting, self.copies, seed)


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
                    setting = " ".join(f"{knob}={value}" for knob, value in cell.setting) or "default"
                    said = {"recording": cell.recording, "machine": cell.machine, "policy": cell.policy}
                    yield {**said, "setting": setting, "seed": cell.seed, "metric": metric, "value": value}

    def errors(self) -> list[tuple[Cell, str]]:
        """What could not run, and why."""
        return [(cell, kept["error"]) for cell, kept in self.results() if "error" in kept]

    def cover(self, metric: str, count: int = 3, *, higher_is_better: bool = False) -> list[Covering]:
        """Settings that together serve all recordings on all machines: one after the other the one that, beside those before it, leaves
        the least to the best setting of each place, in the mean over places and seeds."""
        places: dict[tuple[str, str, str, int], dict[str, float]] = {}
        for row in self.rows([metric]):
            place = (row["recording"], row["machine"], row["policy"], row["seed"])
            value = float(row["value"])
            places.setdefault(place, {})[row["setting"]] = -value if higher_is_better else value
        if not places:
            raise FreeholdError(f"no run of this sweep has the figure {metric}")
        settings = list(dict.fromkeys(setting for of in places.values() for setting in of))
        chosen: list[str] = []
        told: list[Covering] = []
        while len(chosen) < min(count, len(settings)):
            lost = {one: _lost(places, [*chosen, one]) for one in settings if one not in chosen}
            best = min(lost, key=lambda one: sum(lost[one]) / len(lost[one]))
            chosen.append(best)
            told.append(Covering(best, sum(lost[best]) / len(lost[best]), max(lost[best]), len(places)))
        return told


@dataclass(frozen=True)
class Covering:
    """A setting that joins those before it, and what all of them together still lose to the best setting of each place, in percent."""

    setting: str
    mean_loss_percent: float
    worst_loss_percent: float
    places: int


def _lost(places: Mapping[Any, Mapping[str, float]], chosen: Sequence[str]) -> list[float]:
    lost = []
    for of in places.values():
        best = min(of.values())
        ours = min((of[one] for one in chosen if one in of), default=max(of.values()))
        lost.append(100 * (ours - best) / abs(best) if best else 0.0)
    return lost


def sweep(
    grid: Grid,
    store: str | PathLike[str] | Store,
    *,
    backend: str = "local",
    jobs: int = 0,
    progress: Progress | None = None,
) -> Sweep:
    """Runs what the store does not have. ``backend`` is ``local``, threads of this process (``jobs``; 0: as many as CPUs), or ``ray``, the
    cluster that Ray is connected to (``jobs`` runs at a time; 0: twice its CPUs). ``progress`` is called as in ``replay``."""
    kept = store if isinstance(store, Store) else open_store(store)
    runners = {"local": _local, "ray": _ray}
    if backend not in runners:
        raise FreeholdError(f"no backend {backend}: local or ray")
    begun = time.monotonic()
    missing = (cell for cell in grid.cells() if cell.key() not in kept)
    have = sum(cell.key() in kept for cell in grid.cells()) if progress else 0
    ran, cpu = 0, 0.0
    for said, seconds in runners[backend](missing, kept, jobs):
        ran, cpu = ran + 1, cpu + seconds
        if progress is not None:
            progress(have + ran, len(grid), said)
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
        yield from (ray.get(one) for one in waiting)
    finally:
        for one in waiting:
            ray.cancel(one)


def run_cell(cell: Cell, store: Store) -> tuple[str, float]:
    """Runs a cell and keeps what came out; says which it was, and the seconds that its simulation took."""
    try:
        recording = _recording(cell.recording)
        result = replay(
            recording,
            machine=_machine(cell.machine),
            set=[f"{knob}={value}" for knob, value in cell.setting],
            policy=cell.policy,
            copies=cell.copies,
            seed=cell.seed,
            seeds=1,
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
