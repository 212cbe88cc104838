"""Pictures for notebooks, drawn by matplotlib: each takes a result, draws on ``ax`` (or on axes of its own) and gives them back.

The colours are those of the pages that ``--report`` writes, told apart without colour by marks, dashes and labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import Result

INK = ["#2457a6", "#b3541e", "#2f7d4f", "#7a3e8e", "#5c5c5c"]
DASHES = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1))]
MARKS = ["o", "s", "^", "D", "x"]


def histogram(result: Result, span: str, *, machine: str | None = None, ax: Any = None) -> Any:
    """How long spans of a kind took (``refill``, ``fault`` …), the share of each power of two, a line for each variant."""
    ax = _axes(ax)
    rows = _of(result.histograms, machine, span=span)
    for place, (variant, group) in enumerate(_variants(rows)):
        counts = group.groupby("low_ns")["count"].sum()
        shares = 100 * counts / counts.sum()
        ax.step(counts.index, shares, where="post", label=variant, **_style(place))
    ax.set(xscale="log", xlabel=f"{span}, ns", ylabel="% of all")
    return _finish(ax)


def changes(result: Result, *, machine: str | None = None, most: int = 12, ax: Any = None) -> Any:
    """What every variant changes against the first, in percent with 95 % intervals, what changes most on top."""
    ax = _axes(ax)
    rows = _of(result.means, machine)
    (_, first), *others = _variants(rows)
    base = first[first["mean"] != 0].set_index("metric")["mean"]
    for place, (variant, group) in enumerate(others):
        group = group[group["metric"].isin(base.index)].set_index("metric")
        by = base[group.index]
        change = 100 * (group["mean"] / by - 1)
        chosen = change[change.abs() > 0.05].abs().nlargest(most).index[::-1]
        half = (100 * (group["high"] - group["low"]) / 2 / by)[chosen].fillna(0)
        style = {"fmt": MARKS[place % len(MARKS)], "color": INK[place % len(INK)]}
        ax.errorbar(change[chosen], list(chosen), xerr=half, capsize=3, label=variant, **style)
    ax.axvline(0, color="#888888", linewidth=0.8)
    ax.set(xlabel="change, %")
    return _finish(ax)


def curve(result: Result, knob: str, metric: str, *, machine: str | None = None, ax: Any = None) -> Any:
    """A figure against a knob's value, the 95 % interval as a band; other knobs' settings are lines of their own."""
    ax = _axes(ax)
    rows = _of(result.means, machine, metric=metric)
    settings = rows["variant"].astype(str).map(_settings)
    rows = rows.assign(value=settings.map(lambda of: of.get(knob)))
    rows = rows.assign(others=settings.map(lambda of: " ".join(f"{k}={v}" for k, v in of.items() if k != knob)))
    rows = rows[rows["value"].notna()]
    if rows.empty:
        raise ValueError(f"no variant sets {knob} and has {metric}")
    for place, (others, group) in enumerate(rows.groupby("others", sort=False)):
        values = [_number(value) for value in group["value"]]
        style = _style(place)
        ax.plot(values, group["mean"], marker=MARKS[place % len(MARKS)], label=others or None, **style)
        low, high = group["low"].fillna(group["mean"]), group["high"].fillna(group["mean"])
        ax.fill_between(values, low, high, color=style["color"], alpha=0.2)
    ax.set(xlabel=knob, ylabel=f"{metric}, {rows['unit'].iloc[0]}")
    return _finish(ax)


def published(result: Result, *, metric: str | None = None, ax: Any = None) -> Any:
    """Published figures of an experiment beside simulated ones, on log axes; on the diagonal they are the same."""
    ax = _axes(ax)
    rows = result.rows.to_pandas()
    rows = rows[(rows["published"] > 0) & (rows["simulated"] > 0)]
    if metric is not None:
        rows = rows[rows["metric"] == metric]
    for place, (role, group) in enumerate(rows.groupby("role", observed=True)):
        mark, ink = MARKS[place % len(MARKS)], INK[place % len(INK)]
        ax.scatter(group["published"], group["simulated"], marker=mark, color=ink, label=role)
    ends = [rows[["published", "simulated"]].min().min(), rows[["published", "simulated"]].max().max()]
    ax.plot(ends, ends, color="#888888", linewidth=0.8)
    ax.set(xscale="log", yscale="log", xlabel="published", ylabel="simulated")
    return _finish(ax)


def timeline(result: Result, what: str = "resident_pages", *, machine: str | None = None, ax: Any = None) -> Any:
    """A column of the timeline over simulated time, the first seed of each variant."""
    ax = _axes(ax)
    rows = _of(result.timeline, machine)
    for place, (variant, group) in enumerate(_variants(rows)):
        group = group[group["seed"] == group["seed"].iloc[0]]
        ax.plot(group["at_ns"] / 1e6, group[what], label=variant, **_style(place))
    ax.set(xlabel="simulated time, ms", ylabel=what.replace("_", " "))
    return _finish(ax)


def heat(result: Result, *, process: str | None = None, ax: Any = None) -> Any:
    """How often pages were walked to while a process was recorded: a line for each mapping, lowest address first, time from left to right."""
    from matplotlib.colors import LogNorm

    ax = _axes(ax)
    rows = result.heat.to_pandas()
    processes = list(dict.fromkeys(rows["process"].astype(str)))
    if process is None and len(processes) > 1:
        raise ValueError(f"name one process of {', '.join(processes)}")
    rows = rows if process is None else rows[rows["process"] == process]
    if rows.empty:
        raise ValueError("the recording has no looks at accessed bits" + (f" of {process}" if process else ""))
    lines = [group for _, group in rows.groupby(["address", "mapping"], sort=False, observed=True)]
    walks = [list(group["walks_per_second"].clip(lower=0.01)) for group in lines]
    times = lines[0]["at_ns"] / 1e6
    drawn = ax.pcolormesh(times, range(len(lines)), walks, norm=LogNorm(0.01, 1000), cmap="cividis_r", shading="nearest")
    ax.figure.colorbar(drawn, ax=ax, label="walks to a page in a second of CPU time")
    ax.set_yticks(range(len(lines)), [str(group["mapping"].iloc[0]) for group in lines])
    ax.set(xlabel="time of the recording, ms")
    return _finish(ax)


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]


def _of(table: Any, machine: str | None, **only: str) -> Any:
    """The table's rows of one machine, the only one if none is named, that have these values."""
    rows = table.to_pandas()
    for column, value in only.items():
        rows = rows[rows[column] == value]
    machines = list(dict.fromkeys(rows["machine"].astype(str)))
    if machine is None and len(machines) > 1:
        raise ValueError(f"name one machine of {', '.join(machines)}")
    rows = rows if machine is None else rows[rows["machine"] == machine]
    if rows.empty:
        said = ", ".join(f"{column} {value}" for column, value in only.items())
        raise ValueError(f"the result has nothing of {said or 'the kind'}" + (f" on {machine}" if machine else ""))
    return rows


def _variants(rows: Any) -> Iterator[tuple[str, Any]]:
    return iter(rows.groupby("variant", sort=False, observed=True))


def _settings(variant: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in variant.split(" ") if "=" in word)


def _number(value: str) -> float | str:
    try:
        return float(value)
    except ValueError:
        return value


def _style(place: int) -> dict[str, Any]:
    return {"color": INK[place % len(INK)], "linestyle": DASHES[place % len(DASHES)]}


def _finish(ax: Any) -> Any:
    if ax.get_legend_handles_labels()[1]:
        # Above the axes: inside, the sample of a mark looks like one more of what is shown. From the picture's own edge, if the axes
        # have it for themselves, for names of variants are long.
        from matplotlib.transforms import blended_transform_factory

        left = ax.figure.transFigure if len(ax.figure.axes) == 1 else ax.transAxes
        above = blended_transform_factory(left, ax.transAxes)
        ax.legend(frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(0, 1), bbox_transform=above)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax
