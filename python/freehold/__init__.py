"""Freehold: what a memory setting or a kernel does to a recorded program, on a machine that is not there.

A recording is made by the command (``freehold record -o my.rec -- CMD``) and read here::

    import freehold

    redis = freehold.Recording("redis.rec")
    result = freehold.replay(redis, machine="epyc-7w83",
                             set={"transparent_hugepage.enabled": ["never", "always"]})
    print(result.verdict())
    result.means.to_pandas()

Names, defaults and errors are the command line's. Simulations run with the GIL released; Ctrl-C ends them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._freehold import Experiment as Experiment
from ._freehold import FreeholdError as FreeholdError
from ._freehold import Machine as Machine
from ._freehold import Recording as Recording
from ._freehold import Result as Result
from ._freehold import Search as Search
from ._freehold import Table as Table
from ._freehold import __version__ as __version__
from ._freehold import conform as conform
from ._freehold import replay as replay
from ._freehold import why as why

__all__ = [
    "Experiment",
    "FreeholdError",
    "Machine",
    "Recording",
    "Result",
    "Search",
    "Table",
    "bar",
    "conform",
    "replay",
    "tune",
    "why",
]


def tune(
    subject: Recording | Experiment, *, progress: Callable[[int, int, str], object] | None = None, **options: Any
) -> Result:
    """Which setting is the best. ``options`` are those of :class:`Search`, which are the options of ``freehold tune``."""
    return Search(subject, **options).run(progress=progress)


def bar(**options: Any) -> Callable[[int, int, str], None]:
    """A progress bar for ``progress=``, in notebooks and terminals; tqdm draws it. ``options`` are tqdm's."""
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]
    except ImportError as missing:
        raise ImportError("freehold.bar() is drawn by tqdm, which is not installed: pip install tqdm") from missing

    drawn = tqdm(**{"unit": "run", **options})

    def step(ended: int, total: int, what: str) -> None:
        drawn.total = total
        drawn.set_postfix_str(what, refresh=False)
        drawn.update(ended - drawn.n)
        if ended == total:
            drawn.close()

    return step
