"""Where results are kept: a folder, or whatever fsspec reaches (``s3://bucket/results``). A result has a name, is written whole or not at
all, and is never changed."""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Store(Protocol):
    """Results by name."""

    def __contains__(self, key: str) -> bool: ...
    def get(self, key: str) -> dict[str, Any] | None:
        """The result called so, if there is one."""

    def put(self, key: str, result: dict[str, Any]) -> None:
        """Keeps a result."""


def open_store(where: str | PathLike[str]) -> Store:
    """A folder, or an address with ``://`` in it, which fsspec opens."""
    text = os.fspath(where)
    return Elsewhere(text) if "://" in text else Folder(Path(text))


def _packed(result: dict[str, Any]) -> bytes:
    # No time in it: the same result is the same bytes.
    return gzip.compress(json.dumps(result, sort_keys=True).encode(), compresslevel=6, mtime=0)


def _unpacked(packed: bytes) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(gzip.decompress(packed))
    return result


def _place(key: str) -> str:
    # A folder of a hundred thousand files is slow to look at.
    return f"{key[:2]}/{key}.json.gz"


class Folder:
    """Results in a folder of this machine, or of a network that all workers have mounted."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    def __contains__(self, key: str) -> bool:
        return (self.path / _place(key)).exists()

    def get(self, key: str) -> dict[str, Any] | None:
        try:
            return _unpacked((self.path / _place(key)).read_bytes())
        except FileNotFoundError:
            return None

    def put(self, key: str, result: dict[str, Any]) -> None:
        place = self.path / _place(key)
        place.parent.mkdir(parents=True, exist_ok=True)
        # Whoever is killed while writing leaves no half of a result under its name.
        with tempfile.NamedTemporaryFile(dir=place.parent, prefix=".", delete=False) as file:
            file.write(_packed(result))
        os.replace(file.name, place)


class Elsewhere:
    """Results behind an address that fsspec opens; object stores show an object when it is whole."""

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/")

    def _of(self, key: str) -> tuple[Any, str]:
        import fsspec  # type: ignore[import-untyped, unused-ignore]

        system, path = fsspec.core.url_to_fs(f"{self.address}/{_place(key)}")
        return system, path

    def __contains__(self, key: str) -> bool:
        system, path = self._of(key)
        return bool(system.exists(path))

    def get(self, key: str) -> dict[str, Any] | None:
        system, path = self._of(key)
        try:
            return _unpacked(system.cat_file(path))
        except FileNotFoundError:
            return None

    def put(self, key: str, result: dict[str, Any]) -> None:
        system, path = self._of(key)
        system.makedirs(system._parent(path), exist_ok=True)
        system.pipe_file(path, _packed(result))
