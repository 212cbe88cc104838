"""The script that mypy checks does what it says."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("typed_script.py")


def test_the_typed_script_runs(recordings: Path) -> None:
    words = [sys.executable, str(SCRIPT), str(recordings / "python-loop-128m.rec")]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "'vm.pcp_batch_scale_max=5': " in ran.stdout and "'vm.pcp_batch_scale_max=0': " in ran.stdout
    assert "2 2 epyc-7w83" in ran.stderr
    missing = subprocess.run([sys.executable, str(SCRIPT), "no.rec"], capture_output=True, text=True, check=False)
    assert missing.returncode == 1 and missing.stderr.count("\n") == 1 and "no.rec" in missing.stderr
