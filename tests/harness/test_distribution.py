"""The division of the tests names files and folders that there are."""

from tests.harness.runs import ROOT
from tests.support.distribution import LONG, TOGETHER
from tests.support.together import together


@together("path", [*TOGETHER, *LONG])
def test_it_is_there(path: str) -> None:
    assert (ROOT / path).exists()
