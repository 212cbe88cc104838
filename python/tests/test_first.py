"""What README shows of Python runs with what README installs."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import freehold

README = Path(__file__).parents[2] / "README.md"
OPTIONAL = ["fsspec", "matplotlib", "optuna", "pandas", "polars", "pyarrow", "ray", "tqdm"]


def _shown() -> tuple[list[str], str]:
    """The packages that are installed beside the wheel, and the lines of Python."""
    text = README.read_text()
    installed = re.search(r"`pip install target/wheels/freehold-\*\.whl ([^`]*)`", text)
    lines = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert installed is not None and lines is not None
    return installed[1].split(), lines[1]


def test_readme_installs_what_its_lines_want(recordings: Path, tmp_path: Path) -> None:
    installed, lines = _shown()
    for name in installed:
        pytest.importorskip(name)
    shutil.copy(recordings / "redis-program.rec", tmp_path / "my.rec")
    lacking = [name for name in OPTIONAL if name not in installed]
    # A module that is None in sys.modules cannot be imported.
    absent = f"import sys\nsys.modules.update(dict.fromkeys({lacking}))\n"
    backend = "import matplotlib\nmatplotlib.use('agg')\n"
    rest = "\nprint(result.verdict())\nresult.means.to_pandas()\n"
    done = subprocess.run(
        [sys.executable, "-c", absent + backend + lines + rest],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "transparent_hugepage.enabled=never -> always" in done.stdout


def test_a_bar_without_tqdm_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match="pip install tqdm"):
        freehold.bar()
