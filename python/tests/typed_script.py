"""A user's script, for mypy --strict: it is checked, and run by test_typed.py."""

from __future__ import annotations

import sys
from pathlib import Path

import freehold


def refills(path: Path) -> dict[str, float]:
    """The mean refill under each setting, ns."""
    recording = freehold.Recording(path)
    machine: freehold.Machine = freehold.Machine("epyc-7w83")
    result = freehold.replay(
        recording,
        machine=[machine],
        set={"vm.pcp_batch_scale_max": [5, 0]},
        policy="linux-6.11+pcp_batch_scale_max",
        copies=2,
        seeds=1,
        progress=lambda ended, total, what: print(ended, total, what, file=sys.stderr),
    )
    means: freehold.Table = result.means
    rows: list[dict[str, object]] = means.to_pyarrow().to_pylist()
    found: dict[str, float] = {}
    for row in rows:
        mean = row["mean"]
        if row["metric"] == "refill.mean_ns" and isinstance(mean, float):
            found[str(row["variant"])] = mean
    return found


if __name__ == "__main__":
    try:
        print(refills(Path(sys.argv[1])))
    except freehold.FreeholdError as error:
        sys.exit(f"{error}")
