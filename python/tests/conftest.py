"""Where recordings and captures lie."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def recordings() -> Path:
    return ROOT / "recordings"


@pytest.fixture(scope="session")
def conformance() -> Path:
    return ROOT / "conformance"
