"""Pictures: what they draw is what the tables say."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import freehold

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from freehold import plot  # noqa: E402


@pytest.fixture(scope="module")
def result(recordings: object) -> freehold.Result:
    loop = freehold.Recording(f"{recordings}/python-loop-128m.rec")
    policy = "linux-6.11+pcp_batch_scale_max"
    scales = {"vm.pcp_batch_scale_max": [5, 3, 0]}
    return freehold.replay(loop, machine="epyc-7w83", set=scales, policy=policy, copies=4, seeds=2)


def test_a_curve_has_a_point_for_each_value(result: freehold.Result) -> None:
    ax = plot.curve(result, "vm.pcp_batch_scale_max", "refill.mean_ns")
    means = result.means.to_pandas()
    means = means[means["metric"] == "refill.mean_ns"]["mean"]
    (line,) = ax.lines
    assert list(line.get_xdata()) == [5, 3, 0] and list(line.get_ydata()) == list(means)
    assert ax.get_xlabel() == "vm.pcp_batch_scale_max"
    with pytest.raises(ValueError, match="no variant sets vm.swappiness"):
        plot.curve(result, "vm.swappiness", "refill.mean_ns")


def test_histograms_come_to_all(result: freehold.Result) -> None:
    ax = plot.histogram(result, "refill")
    assert len(ax.lines) == 3
    assert all(sum(line.get_ydata()) == pytest.approx(100) for line in ax.lines)
    with pytest.raises(ValueError, match="nothing of span no_such"):
        plot.histogram(result, "no_such")


@pytest.mark.parametrize("draw", [lambda of: plot.changes(of), lambda of: plot.histogram(of, "refill")])
def test_a_legend_covers_nothing(result: freehold.Result, draw: Callable[[freehold.Result], Any]) -> None:
    ax = draw(result)
    ax.figure.canvas.draw()
    legend, inside = ax.get_legend().get_window_extent(), ax.get_window_extent()
    assert legend.y0 >= inside.y1 and legend.y1 <= ax.figure.bbox.y1
    assert legend.x0 >= 0 and legend.x1 <= ax.figure.bbox.x1


def test_changes_and_time(result: freehold.Result) -> None:
    assert len(plot.changes(result).containers) == 2
    ax = plot.timeline(result, "faults")
    assert len(ax.lines) == 3 and ax.get_ylabel() == "faults"


def test_a_map_has_a_line_for_each_mapping(result: freehold.Result, recordings: object) -> None:
    with pytest.raises(ValueError, match="no looks at accessed bits"):
        plot.heat(result)
    skewed = freehold.Recording(Path(__file__).parent / "data" / "skewed.rec")
    skewed = freehold.replay(skewed, machine="kvm-genoa-2c", seeds=1)
    rows = skewed.heat.to_pandas()
    lines = rows.groupby(["address", "mapping"], sort=False, observed=True)
    assert len(plot.heat(skewed).get_yticks()) == len(lines) > 2
    # The program's own two: 10 MiB of which a page is used now and then, and 2 MiB that are always used.
    cold, hot = (group["walks_per_second"].mean() for (_, name), group in lines if name == "[shared]")
    assert hot > 100 * cold > 0


def test_published_figures_lie_beside_simulated_ones() -> None:
    result = freehold.Experiment("llfree-bulk").run(seeds=1)
    ax = plot.published(result)
    rows = result.rows.to_pandas()
    drawn = sum(len(collection.get_offsets()) for collection in ax.collections)
    assert drawn == ((rows["published"] > 0) & (rows["simulated"] > 0)).sum() > 0
