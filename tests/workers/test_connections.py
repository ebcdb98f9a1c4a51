"""Whether our own PostgreSQL has room for all that the processes of a stack may open at once."""

import pytest

from app.contracts.queues import with_transfer_queues
from app.local.python_services import every_queue
from app.local.stack_services import control_connections
from workers.runner import max_connections

_API = 25
"""Its pool of 20, two of the admission, one that listens; and two for the command line."""


@pytest.mark.parametrize("regions", [1, 3, 12])
def test_an_embedded_stack_has_room_for_its_busiest_worker(regions: int) -> None:
    names = tuple(f"us-east-{number}" for number in range(regions))
    listening = 1 + regions
    assert _API + max_connections(with_transfer_queues(every_queue(names))) + listening <= control_connections(regions)
