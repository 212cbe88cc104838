"""What the package costs, for docs/python.md: `scripts/python measure` runs this.

- a replay from Python beside the command, user CPU time, paired;
- a table of a million rows beside the way through JSON;
- a thousand short runs on two Ray workers, one of them killed, beside threads of one process;
- the same with a driver that is killed and goes on;
- a plan of a hundred thousand runs, of which none runs;
- with `fleet` behind the other words: a fleet's question at its size, 40 recordings on 12 machines with 60 settings, made of short runs.
"""

from __future__ import annotations

import logging
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import freehold
from freehold.store import Folder
from freehold.sweep import Grid, Race, Sweep, sweep

ROOT = Path(__file__).parents[1]
LOOP = ROOT / "recordings" / "python-loop-128m.rec"
# Its memory is small, and so is the time that a boot takes.
MACHINE = "kvm-genoa-2c"


def cpu_of(work: Callable[[], object], who: int) -> float:
    before = resource.getrusage(who).ru_utime
    work()
    return resource.getrusage(who).ru_utime - before


def beside_the_command(command: str, rounds: int) -> None:
    words = [command, "replay", str(LOOP), "--machine", MACHINE, "--copies", "4", "--seeds", "2", "--jobs", "1", "--json"]
    script = (
        "import freehold\n"
        f"loop = freehold.Recording({str(LOOP)!r})\n"
        f"freehold.replay(loop, machine={MACHINE!r}, copies=4, seeds=2, jobs=1).to_json()\n"
    )
    ways = {"command": words, "python": [sys.executable, "-I", "-c", script]}
    used: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds):
        for name in ways if turn % 2 == 0 else reversed(ways):
            run = lambda way=ways[name]: subprocess.run(way, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
            used[name].append(cpu_of(run, resource.RUSAGE_CHILDREN))
    by = [100 * (python / command - 1) for python, command in zip(used["python"], used["command"], strict=True)]
    mean, half = statistics.mean(by), 2 * statistics.stdev(by) / len(by) ** 0.5
    print(f"a replay: {statistics.mean(used['command']):.2f} s by the command, from Python {mean:+.1f} +- {half:.1f} % ({rounds} pairs)")


def peak(script: str) -> tuple[float, float]:
    """Seconds and MiB that a script takes beyond what it printed at its half."""
    ran = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    seconds, mib = ran.stdout.split()[-2:]
    return float(seconds), float(mib)


def million_rows(tiny: Path) -> None:
    head = (
        "import freehold, time, resource, json\n"
        f"tiny = freehold.Recording({str(tiny)!r})\n"
        f"one = freehold.replay(tiny, machine={MACHINE!r}, seeds=2)\n"
        "each = len(one.figures) // 2\n"
        f"result = freehold.replay(tiny, machine={MACHINE!r}, seeds=1_000_000 // each + 1)\n"
        "import pandas\n"
        "rss = lambda: int(open('/proc/self/statm').read().split()[1]) * 4096 / 2**20\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024\n"
        "open('/proc/self/clear_refs', 'w').write('5')\n"
        "before, begun = rss(), time.monotonic()\n"
    )
    tail = "assert len(frame) >= 1_000_000, len(frame)\nprint(time.monotonic() - begun, peak() - before)\n"
    arrow = peak(head + "frame = result.figures.to_pandas()\n" + tail)
    way = (
        "runs = json.loads(result.to_json())['runs']\n"
        "def flat(run):\n"
        "    for span, of in run['latency'].items():\n"
        "        for what in ('count', 'mean_ns', 'p50_ns', 'p99_ns', 'max_ns', 'total_ns'):\n"
        "            yield f'{span}.{what}', of[what]\n"
        "    for lock, of in run['locks'].items():\n"
        "        for what, value in of.items():\n"
        "            yield f'lock.{lock}.{what}', value\n"
        "    yield from run['counters'].items()\n"
        "frame = pandas.DataFrame([(run['variant'], run['seed'], *one) for run in runs for one in flat(run)])\n"
        "rows = len(frame)\n"
        "print(time.monotonic() - begun, peak() - before)\n"
    )
    through_json = peak(head + way)
    for name, (seconds, mib) in {"Arrow": arrow, "JSON": through_json}.items():
        print(f"a million rows by {name}: {seconds:.2f} s, {mib:.0f} MiB at most")


def contents(store: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in store.rglob("*.json.gz")}


def thousand_runs(tiny: Path, folder: Path) -> None:
    import psutil
    import ray

    grid = Grid([tiny], [MACHINE], {"vm.watermark_scale_factor": [10, 100]}, seeds=500)
    local = sweep(grid, folder / "local")
    each = 1000 * local.took_seconds / local.ran
    print(f"{local.ran} runs by threads: {local.took_seconds:.1f} s, {local.cpu_seconds:.1f} s of simulating; {each:.1f} ms a run")
    ray.init(num_cpus=2, include_dashboard=False, logging_level=logging.ERROR)
    killed: list[int] = []

    def kill_half_way(ended: int, total: int, what: str) -> None:
        if ended == total // 2:
            children = psutil.Process().children(recursive=True)
            for one in [one for one in children if "run_cell" in " ".join(one.cmdline())][:1]:
                one.kill()
                killed.append(one.pid)

    try:
        there = sweep(grid, folder / "ray", backend="ray", progress=kill_half_way)
    finally:
        ray.shutdown()
    is_same = contents(folder / "ray") == contents(folder / "local")
    over = 1000 * (2 * there.took_seconds - there.cpu_seconds) / there.ran
    print(
        f"{there.ran} runs on two Ray workers, {len(killed)} killed: {there.took_seconds:.1f} s, {over:.1f} ms of a worker's time a run "
        f"beside simulating; results {'equal' if is_same else 'DIFFERENT'}"
    )
    script = (
        "from freehold.sweep import Grid, sweep\n"
        f"grid = Grid([{str(tiny)!r}], [{MACHINE!r}], {{'vm.watermark_scale_factor': [10, 100]}}, seeds=500)\n"
        f"sweep(grid, {str(folder / 'killed')!r}, progress=lambda *said: print(*said, flush=True))\n"
    )
    driver = subprocess.Popen([sys.executable, "-I", "-c", script], stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    for _ in range(400):
        driver.stdout.readline()
    os.kill(driver.pid, signal.SIGKILL)
    driver.communicate()
    before = len(contents(folder / "killed"))
    again = sweep(grid, folder / "killed")
    is_same = contents(folder / "killed") == contents(folder / "local")
    print(f"driver killed with {before} results: {again.ran} runs more; results {'equal' if is_same else 'DIFFERENT'}")


def long_plan(folder: Path) -> None:
    many = {"vm.watermark_scale_factor": list(range(10, 510)), "vm.swappiness": list(range(200))}
    grid = Grid([LOOP], [MACHINE], many, seeds=1)
    store = Folder(folder / "plan")
    (folder / "plan").mkdir()
    begun = time.monotonic()
    missing = sum(cell.key() not in store for cell in grid.cells())
    took = time.monotonic() - begun
    mib = peak_mib()
    print(f"a plan of {len(grid)} runs, {missing} missing: {took:.1f} s to go through it, the driver at most {mib:.0f} MiB")


# What small programs of a fleet do; {} is 1 to 4.
PROGRAMS = (
    "bytearray({} << 20)",
    "[bytearray(1 << 16) for _ in range(16 * {})]",
    "sum(len(str(n)) for n in range({} * 5000))",
    "import json; json.dumps([list(range(500))] * 10 * {})",
    "import zlib; zlib.compress(bytes({} << 19))",
    "import threading as t; [x.start() or x.join() for x in [t.Thread(target=bytearray, args=({} << 19,))] * 1]",
    "import mmap; m = mmap.mmap(-1, {} << 20); m[::4096] = bytes(len(m) // 4096)",
    "open('/proc/self/maps').read() * {} * 100",
    "import os; [os.waitpid(os.posix_spawn('/bin/true', ['true'], {{}}), 0) for _ in range({})]",
    "d = {{n: n for n in range({} * 20000)}}; d.clear()",
)
SETTINGS = {
    "transparent_hugepage.enabled": ["never", "madvise", "always"],
    "transparent_hugepage.defrag": ["always", "defer", "defer+madvise", "madvise", "never"],
    "vm.percpu_pagelist_high_fraction": [0, 8, 64, 512],
}
MACHINES = (
    "epyc-7w83 epyc-7742 epyc-7763 epyc-9654 kvm-genoa-2c xeon-8260 xeon-5320 xeon-icx xeon-spr coffee-lake comet-lake skylake-1s"
).split()


def fleet(command: str, folder: Path) -> None:
    recordings = []
    for number in range(40):
        recordings.append(folder / f"program-{number:02}.rec")
        script = PROGRAMS[number % len(PROGRAMS)].format(1 + number // len(PROGRAMS))
        words = [command, "record", "--quiet", "-o", recordings[-1], "--", sys.executable, "-I", "-S", "-c", script]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    grid = Grid(recordings, MACHINES, SETTINGS, seeds=1, force=True)
    begun = time.monotonic()
    done = sweep(grid, folder / "fleet")
    print(f"{len(grid)} runs of {len(recordings)} recordings: {done.took_seconds:.0f} s, {done.cpu_seconds:.0f} s of simulating")
    answer(done)
    print(f"answered after {time.monotonic() - begun:.0f} s; the driver at most {peak_mib():.0f} MiB")
    # The same with three seeds, of which most settings meet one.
    raced = sweep(replace(grid, seeds=3), folder / "fleet", race=Race("elapsed_ns"))
    left = len(raced.grid.all_settings())
    print(f"raced to three seeds: {raced.ran} runs more of {2 * len(grid)}, {left} of 60 settings met all; {raced.took_seconds:.0f} s")
    answer(raced)


def answer(done: Sweep) -> None:
    for one in done.cover("elapsed_ns", 3):
        print(f"  {one.setting}: together {one.mean_loss_percent:.3f} % from the best, {one.worst_loss_percent:.1f} % at worst")
    for side in ("recording", "machine"):
        lost = [one.mean_loss_percent for one in done.robustness("elapsed_ns", 3) if one.side == side]
        print(f"  chosen without a {side}: {statistics.mean(lost):.3f} % in the mean, {max(lost):.2f} % for the worst of {len(lost)}")


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    command, tiny = sys.argv[1], Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        if sys.argv[3:] == ["fleet"]:
            fleet(command, Path(folder))
            return
        long_plan(Path(folder))
        beside_the_command(command, 40)
        million_rows(tiny)
        thousand_runs(tiny, Path(folder))


if __name__ == "__main__":
    main()
