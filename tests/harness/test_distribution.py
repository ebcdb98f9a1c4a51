"""The division of the tests names files and folders that there are."""

import pytest

from tests.harness.runs import ROOT
from tests.support.distribution import LONG, TOGETHER


@pytest.mark.parametrize("path", [*TOGETHER, *LONG])
def test_it_is_there(path: str) -> None:
    assert (ROOT / path).exists()
