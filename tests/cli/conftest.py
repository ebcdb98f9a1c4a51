"""The command on a fresh database of our own."""

from pathlib import Path

import pytest

from app.core.secrets import new_key_setting
from tests.cli.command import Headwater


@pytest.fixture
def headwater(control_dsn: str, tmp_path: Path) -> Headwater:
    return Headwater({"CONTROL_DSN": control_dsn, "SECRET_KEYS": new_key_setting(), "HOME": str(tmp_path)})
