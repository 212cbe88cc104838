"""A recording from Python, beside the command."""

import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

import freehold

MACHINE = "epyc-7w83"
SETTING = {"vm.pcp_batch_scale_max": [5, 0]}


@pytest.fixture(scope="module")
def loop(recordings: Path) -> freehold.Recording:
    return freehold.Recording(recordings / "python-loop-128m.rec")


@pytest.fixture(scope="module")
def result(loop: freehold.Recording) -> freehold.Result:
    policy = "linux-6.11+pcp_batch_scale_max"
    return freehold.replay(loop, machine=MACHINE, set=SETTING, policy=policy, copies=4, seeds=2)


def test_a_recording_says_what_it_is(loop: freehold.Recording) -> None:
    assert loop.name == "python-loop-128m"
    assert len(loop) > 10_000 and loop.kernel and loop.damage is None
    assert repr(loop).startswith("Recording(")


def test_it_is_the_commands_answer_to_the_bit(loop: freehold.Recording, result: freehold.Result) -> None:
    command = os.environ.get("FREEHOLD")
    if not command:
        pytest.skip("FREEHOLD names no command to hold it against")
    words = ["replay", str(loop.path), "--machine", MACHINE, "--set", "vm.pcp_batch_scale_max=5,0"]
    words += ["--policy", "linux-6.11+pcp_batch_scale_max", "--copies", "4", "--seeds", "2", "--json", "--quiet"]
    out = subprocess.run([command, *words], capture_output=True, check=True).stdout
    theirs, ours = json.loads(out), result.to_dict()
    for document in (theirs, ours):
        document.pop("command")
        for run in document["runs"]:
            run.pop("wall_ns")
    assert ours == theirs


def test_it_may_begin_as_recorded(recordings: Path, loop: freehold.Recording) -> None:
    redis = freehold.Recording(recordings / "redis-program.rec")
    plain = freehold.replay(redis, machine="kvm-genoa-2c", seeds=1).to_dict()
    as_it_was = freehold.replay(redis, machine="kvm-genoa-2c", seeds=1, as_recorded=True).to_dict()
    assert "transparent_hugepage.enabled=madvise" in plain["notes"][0] and "as_recorded=True" in plain["notes"][0]
    assert "notes" not in as_it_was and as_it_was["runs"][0]["variant"] == "transparent_hugepage.enabled=madvise"
    with pytest.raises(freehold.FreeholdError, match="programs alone"):
        freehold.replay(loop, machine=MACHINE, as_recorded=True)


def test_tables_are_taken_as_they_are(result: freehold.Result) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(result.means)
    assert table.column_names == result.means.column_names
    refill = [row for row in table.to_pylist() if row["metric"] == "refill.mean_ns"]
    assert [row["variant"] for row in refill] == ["vm.pcp_batch_scale_max=5", "vm.pcp_batch_scale_max=0"]
    assert all(row["low"] <= row["mean"] <= row["high"] and row["seeds"] == 2 for row in refill)
    told = {mean["metric"]: mean["mean"] for mean in result.to_dict()["means"]}
    assert told["refill.mean_ns"] in [row["mean"] for row in refill]
    assert len(result.runs) == 4
    histograms = result.histograms.to_pandas()
    spans = histograms.groupby(["variant", "seed", "span"], observed=True)["count"].sum()
    runs = {(run["variant"], run["seed"]): run for run in result.to_dict()["runs"]}
    for (variant, seed, span), count in spans.items():
        assert runs[(variant, seed)]["latency"][span]["count"] == count
    timeline = result.timeline.to_pandas()
    assert (timeline.groupby(["variant", "seed"], observed=True)["faults"].diff().dropna() >= 0).all()


def test_polars_takes_them_too(result: freehold.Result) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(result.counters)
    assert frame.height == len(result.counters) > 0
    assert frame["value"].sum() == sum(sum(run["counters"].values()) for run in result.to_dict()["runs"])


def test_the_answer_and_its_page(result: freehold.Result, tmp_path: Path) -> None:
    assert "vm.pcp_batch_scale_max=5 -> " in result.verdict()
    assert len(result.text()) > len(result.verdict())
    page = tmp_path / "page.html"
    result.report(page)
    assert page.read_text().startswith("<!doctype html>")


def test_what_cannot_be_is_one_line(loop: freehold.Recording, tmp_path: Path) -> None:
    def line(call: object, *words: object, **named: object) -> str:
        with pytest.raises(freehold.FreeholdError) as error:
            call(*words, **named)  # type: ignore[operator]
        text = str(error.value)
        assert text and "\n" not in text
        return text

    assert "did you mean `vm.swappiness`" in line(freehold.replay, loop, machine=MACHINE, set={"vm.swapiness": 1})
    assert "epyc-7w84" in line(freehold.replay, loop, machine="epyc-7w84")
    assert "twice" in line(freehold.replay, loop, machine=[MACHINE, MACHINE])
    assert "force=True" in line(freehold.replay, loop, machine=MACHINE, set={"vm.swappiness": [0, 60]})
    assert "linux-6.19 was the last" in line(freehold.replay, loop, machine=MACHINE, policy="linux-6.81")
    assert "measured by the command" in line(freehold.Machine, "this")
    assert "no-such.rec" in line(freehold.Recording, "no-such.rec")
    empty = tmp_path / "empty.rec"
    empty.touch()
    assert "empty.rec" in line(freehold.Recording, empty)
    with pytest.raises(TypeError):
        freehold.replay("a.rec", machine=MACHINE)  # type: ignore[arg-type]


def test_progress_is_heard_and_may_end_it(loop: freehold.Recording) -> None:
    heard: list[tuple[int, int, str]] = []
    freehold.replay(loop, machine=MACHINE, seeds=2, progress=lambda *what: heard.append(what))
    assert [(ended, total) for ended, total, _ in heard] == [(1, 2), (2, 2)]
    assert {what for _, _, what in heard} == {f"{MACHINE} default, seed {seed}" for seed in (1, 2)}

    def enough(*_: object) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        freehold.replay(loop, machine=MACHINE, seeds=50, jobs=1, progress=enough)


def test_ctrl_c_ends_it(loop: freehold.Recording) -> None:
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        freehold.replay(loop, machine=MACHINE, copies=64, repeat=1000, seeds=1000)
    # It would go on for hours; how long it takes to notice is the machine's affair.
    assert time.monotonic() - begun < 60


def test_other_threads_run_meanwhile(loop: freehold.Recording) -> None:
    turns = 0
    done = threading.Event()

    def count() -> None:
        nonlocal turns
        while not done.is_set():
            turns += 1
            time.sleep(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    freehold.replay(loop, machine=MACHINE, copies=8, seeds=1)
    done.set()
    counter.join()
    assert turns > 5, "the GIL was held"
