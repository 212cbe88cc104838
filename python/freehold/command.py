"""``freehold-sweep PLAN.toml``: a sweep from a file.

The file has what :class:`freehold.sweep.Grid` takes; recordings may be patterns, beside the file::

    recordings = ["fleet/*.rec"]
    machines = ["epyc-7w83", "xeon-8260"]
    seeds = 3

    [settings]
    "transparent_hugepage.enabled" = ["never", "madvise", "always"]
"""

from __future__ import annotations

import argparse
import glob
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from . import FreeholdError
from .sweep import Grid, Race, Sweep, sweep

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read_plan(path: Path) -> Grid:
    """The grid that a file describes."""
    try:
        plan: dict[str, Any] = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise FreeholdError(f"{path}: {error}") from None
    known = [one.name for one in fields(Grid)]
    for name in plan:
        if name not in known:
            raise FreeholdError(f"{path}: no key `{name}`; there are {', '.join(known)}")
    for name in ("recordings", "machines"):
        if not isinstance(plan.get(name), list) or not plan[name]:
            raise FreeholdError(f"{path}: `{name}` is a list of at least one name")
    patterns = [str(path.parent / pattern) for pattern in plan["recordings"]]
    plan["recordings"] = [name for pattern in patterns for name in sorted(glob.glob(pattern)) or [pattern]]
    return Grid(**plan)


def told(done: Sweep, metric: str, count: int, higher_is_better: bool) -> str:
    """What came out, in lines."""
    lines = [f"{len(done.grid)} runs, {done.ran} of them now: {done.took_seconds:.0f} s, {done.cpu_seconds:.0f} s of simulating"]
    errors = done.errors()
    lines += [f"not run: {cell}: {why}" for cell, why in errors[:3]]
    if len(errors) > 3:
        lines.append(f"not run: {len(errors) - 3} more")
    for place, one in enumerate(done.cover(metric, count, higher_is_better=higher_is_better), start=1):
        least = f"{one.mean_loss_percent:.2f} % in the mean, {one.worst_loss_percent:.1f} % at worst"
        lines.append(f"{place}. {one.setting}: together {least} from the best setting of each of {one.places} places")
    left_out = done.robustness(metric, count, higher_is_better=higher_is_better)
    for side in ("recording", "machine"):
        of_side = [one for one in left_out if one.side == side]
        if len(of_side) > 1:
            mean = sum(one.mean_loss_percent for one in of_side) / len(of_side)
            worst = max(of_side, key=lambda one: one.mean_loss_percent)
            lines.append(f"chosen without a {side}: {mean:.2f} % from its best in the mean, {worst.mean_loss_percent:.1f} % on {worst.name}")
    return "\n".join(lines)


def main(words: list[str] | None = None) -> int:
    """The command; its exit status."""
    parser = argparse.ArgumentParser("freehold-sweep", description="Replays every combination of a plan, each once.")
    parser.add_argument("plan", type=Path, metavar="PLAN.toml")
    parser.add_argument("--store", default="sweep", metavar="FOLDER|ADDRESS", help="where results are kept [sweep]")
    parser.add_argument("--backend", choices=["local", "ray"], default="local")
    parser.add_argument("--jobs", type=int, default=0, metavar="N", help="runs at a time")
    parser.add_argument("--metric", default="elapsed_ns", metavar="FIGURE", help="what settings are told apart by [elapsed_ns]")
    parser.add_argument("--higher", action="store_true", help="more of it is better")
    parser.add_argument("--race", action="store_true", help="give settings up after a few seeds where they are good nowhere")
    parser.add_argument("--count", type=int, default=3, metavar="N", help="settings that are to cover all places [3]")
    asked = parser.parse_args(words)
    try:
        race = Race(asked.metric, asked.higher, asked.count) if asked.race else None
        done = sweep(
            read_plan(asked.plan), asked.store, backend=asked.backend, jobs=asked.jobs, race=race, progress=_say
        )
        print(told(done, asked.metric, asked.count, asked.higher))
    except FreeholdError as error:
        print(f"freehold-sweep: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("freehold-sweep: stopped; the same command goes on from here", file=sys.stderr)
        return 130
    return 1 if done.errors() else 0


def _say(ended: int, total: int, what: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{ended}/{total} {what[:100]:<100}", end="" if ended < total else "\n", file=sys.stderr)
