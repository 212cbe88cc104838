"""The notebooks run from their first cell to their last, in short form."""

import os
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.ipynb")))
def test_a_notebook_runs(name: str, recordings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = {"FREEHOLD_SEEDS": "1", "FREEHOLD_RECORDINGS": str(recordings), "FREEHOLD_EXPERIMENT": "llfree-bulk"}
    for key, value in {**short, "MPLBACKEND": "module://matplotlib_inline.backend_inline"}.items():
        monkeypatch.setenv(key, value)
    notebook = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "outputs are for who runs it"
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    pictures = [out for cell in notebook.cells for out in cell.get("outputs", []) if "image/png" in out.get("data", {})]
    assert pictures, "no picture was drawn"
    if name == "engineer":
        assert os.path.getsize(tmp_path / "redis.html") > 10_000
