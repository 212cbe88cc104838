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
    def rows(self) -> Table: ...
    @property
    def causes(self) -> Table: ...

def replay(
    recording: Recording | Sequence[Recording],
    *,
    machine: str | Machine | Sequence[str | Machine],
    set: _Settings | None = None,
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
