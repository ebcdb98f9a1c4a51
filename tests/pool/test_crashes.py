"""One key, one database, also where databases come from the pool and API processes are killed all the while."""

from tests.pool.conftest import POOL_SIZE
from tests.storm.test_idempotency import SEED, weather
from tests.support.pools import full
from tests.support.service import RunningService


async def test_a_gust_of_retries(pooled: RunningService) -> None:
    await full(POOL_SIZE)
    await weather(pooled, seed=SEED, keys=8, each=6, at_once=4)
    await full(POOL_SIZE)
