from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, final

__version__: str

_Path = str | PathLike[str]
_Value = str | int | float | bool
_Settings = Mapping[str, _Value | Sequence[_Value]] | Sequence[str] | str
_Progress = Callable[[int, int, str], object]

class FreeholdError(Exception):
    """What was asked cannot be done: what, where, what to do, in one line."""

@final
class Table:
    """A table in Arrow's format, which pyarrow, pandas and polars take without a copy."""

    @property
    def column_names(self) -> list[str]: ...
    @property
    def nbytes(self) -> int: ...
    def column(self, name: str) -> list[Any]:
        """A column's values as a list: for those who have no library for tables."""

    # Who has none of these libraries has none of their types either.
    def to_pyarrow(self) -> Any:
        """As a ``pyarrow.Table``."""

    def to_pandas(self) -> Any:
        """As a ``pandas.DataFrame``; pyarrow takes it there."""

    def to_polars(self) -> Any:
        """As a ``polars.DataFrame``."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __len__(self) -> int: ...

@final
class Recording:
    """What a program asked of the kernel, read from a file of ``freehold record`` or of ``perf record``."""

    def __init__(self, path: _Path, *, name: str | None = None, events: bool = False) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def path(self) -> PathLike[str]: ...
    @property
    def kernel(self) -> str: ...
    @property
    def is_program(self) -> bool: ...
    @property
    def damage(self) -> str | None: ...
    def __len__(self) -> int: ...

@final
class Machine:
    """A machine: CPUs, nodes, caches, latencies, the lengths of kernel paths, each figure with its source."""

    def __init__(self, name_or_path: str) -> None: ...
    @staticmethod
    def names() -> list[str]: ...
    @staticmethod
    def from_toml(text: str, *, name: str = "machine") -> Machine: ...
    @staticmethod
    def from_dict(tables: dict[str, Any], *, name: str = "machine") -> Machine: ...
    def to_toml(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def cpus(self) -> int: ...
    @property
    def nodes(self) -> int: ...
    @property
    def figures(self) -> Table: ...

@final
class Experiment:
    """Variants of a workload on machines, and what was published of each."""

    def __init__(self, name_or_path: str) -> None: ...
    @staticmethod
    def names() -> list[str]: ...
    @staticmethod
    def from_toml(text: str, *, name: str = "experiment") -> Experiment: ...
    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def variants(self) -> list[str]: ...
    def run(
        self,
        *,
        machine: str | Machine | Sequence[str | Machine] | None = None,
        seeds: int | None = None,
        seed: int = 1,
        explain: bool = False,
        force: bool = False,
        jobs: int = 0,
        progress: _Progress | None = None,
    ) -> Result:
        """Runs it. The parameters are the options of ``freehold lab run``."""

@final
class Result:
    """What came out of a replay or an experiment."""

    def verdict(self) -> str:
        """The answer in the terminal's words."""

    def text(self) -> str:
        """All of it, as ``--full`` prints it."""

    def to_json(self) -> str:
        """What ``--json`` prints (docs/schema)."""

    def to_dict(self) -> dict[str, Any]: ...
    def report(self, path: _Path) -> None:
        """Writes the page of ``--report``."""

    def plan(self) -> str | None:
        """The setting that wins, as a plan for ``freehold apply``; ``None`` where the current one stays; of ``tune``."""

    @property
    def runs(self) -> Table: ...
    @property
    def means(self) -> Table: ...
    @property
    def figures(self) -> Table: ...
    @property
    def counters(self) -> Table: ...
    @property
    def histograms(self) -> Table: ...
    @property
    def timeline(self) -> Table: ...
    @property
    def heat(self) -> Table: ...
    @property
    def rows(self) -> Table: ...
    @property
    def causes(self) -> Table: ...

@final
class Search:
    """What is searched, and where: a question of ``freehold tune``. ``run`` answers it; a search of one's own has settings simulated."""

    def __init__(
        self,
        subject: Recording | Experiment,
        *,
        machine: str | Machine | Sequence[str | Machine] | None = None,
        goal: Sequence[str] | str | None = None,
        keep: Sequence[str] | str | None = None,
        knobs: _Settings | None = None,
        set: _Settings | None = None,
        policy: str | None = None,
        variant: str | None = None,
        copies: int | None = None,
        budget: int | None = None,
        every: bool = False,
        seeds: int = 5,
        unseen: int = 10,
        also: Sequence[Recording | Experiment] | Recording | Experiment | None = None,
        journal: _Path | None = None,
        seed: int = 1,
        jobs: int = 0,
    ) -> None: ...
    def run(self, *, progress: _Progress | None = None) -> Result:
        """Races, and tries the winner where the race did not look."""

    @property
    def space(self) -> list[dict[str, Any]]:
        """Knobs that are searched, each with its ``values`` and the ``current`` one, as they are written."""

    @property
    def goals(self) -> list[dict[str, str]]:
        """What is to become better: ``metric``, and ``better``: lower or higher."""

    @property
    def shares(self) -> list[float]:
        """Parts of the workload that can be simulated, ascending; the last is 1, all of it."""

    def evaluate(
        self, knobs: Mapping[str, _Value] | None = None, *, seed: int = 1, share: float = 1.0
    ) -> dict[str, float | None]:
        """Simulates a setting, knobs that differ from the current one, with one seed: the figures of goals and limits."""

    def breaches(self, values: Mapping[str, float | None], current: Mapping[str, float | None]) -> dict[str, float]:
        """How far ``values`` are beyond each limit, as it is written, where the current setting has ``current``: in parts of it; 0 within."""

def replay(
    recording: Recording | Sequence[Recording],
    *,
    machine: str | Machine | Sequence[str | Machine],
    set: _Settings | None = None,
    as_recorded: bool = False,
    at: Sequence[str] | str | None = None,
    policy: str = "linux-6.18",
    copies: int | Sequence[str] | None = None,
    repeat: int = 1,
    seed: int = 1,
    seeds: int = 3,
    cpus: Sequence[str] | str | None = None,
    mems: Sequence[str] | str | None = None,
    mempolicy: Sequence[str] | str | None = None,
    force: bool = False,
    jobs: int = 0,
    progress: _Progress | None = None,
) -> Result:
    """Replays one recording, or several side by side. The parameters are the options of ``freehold replay``."""

def why(
    subject: Recording | Experiment,
    *,
    from_: str | None = None,
    to: str | None = None,
    set: _Settings | None = None,
    goal: Sequence[str] | str | None = None,
    variant: str | None = None,
    machine: str | Machine | None = None,
    copies: int | None = None,
    seed: int = 1,
    seeds: int = 3,
    force: bool = False,
    jobs: int = 0,
    progress: _Progress | None = None,
) -> Result:
    """Which rule, of which commit, or which setting makes the difference. The parameters are the options of ``freehold why``."""

def conform(*files: _Path) -> dict[str, Any]:
    """What each file's kernel counted beside what the rules give, as ``freehold conform --json`` has it."""
