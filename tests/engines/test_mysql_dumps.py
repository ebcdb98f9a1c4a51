"""What a dump of MySQL and MariaDB has to carry that their tools print less exactly than it is stored."""

from collections.abc import AsyncIterator

import pytest

from app.engines.base import Tenant
from app.engines.dumping import Content, DumpFormat
from tests.engines.harness import EngineHost, session_of, tenants

pytestmark = pytest.mark.parametrize("engine_server", ["mysql", "oracle"], indirect=True, scope="session")

EXACT = (
    "SET sql_mode = 'ALLOW_INVALID_DATES'",
    """
    CREATE TABLE exact (
        id INT AUTO_INCREMENT PRIMARY KEY, f FLOAT, g FLOAT(10, 3), d DOUBLE, m DOUBLE(12, 4),
        e ENUM('x', '', 'y'), s SET('p', 'q'), b BIT(5), raw BINARY(4), day DATE, at TIMESTAMP(6) NULL,
        western VARCHAR(20) CHARACTER SET latin1, japanese VARCHAR(20) CHARACTER SET cp932,
        wide VARCHAR(20) CHARACTER SET utf16, twice DOUBLE AS (d / 2) VIRTUAL, place GEOMETRY
    )
    """,
    """
    INSERT INTO exact (f, g, d, m, e, s, b, raw, day, at, western, japanese, wide, place) VALUES
    (16777215, 1234.567, '-0', 0.1, 'y', 'p,q', b'101', 'a', '2020-02-30', '2020-01-01 00:00:00.000001',
     x'80818d8f909dff', x'fa5481ca', x'0041d83dde00', ST_GeomFromText('POINT(1 2)')),
    (3.402823466e38, -0.001, -2.2250738585072014e-308, -1, 0, '', b'0', x'00ff', '0000-00-00', NULL,
     '', '', '', NULL),
    (1e-45, 0, 1.7976931348623157e308, 99999999.9999, '', 'q', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
    """,
)
STORED = "SELECT CAST(f * 1e0 AS CHAR), d, CAST(e AS UNSIGNED), HEX(western), HEX(japanese), HEX(wide), day FROM exact"


async def dumped(host: EngineHost, tenant: Tenant) -> tuple[list[bytes], DumpFormat, list[Content]]:
    async with host.adapter.dumping(tenant) as dump:
        chunks = [chunk async for chunk in dump.chunks()]
        return chunks, dump.format, await dump.contents()


async def each(chunks: list[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def run_all(host: EngineHost, tenant: Tenant, *statements: str) -> None:
    async with session_of(host, tenant) as session:
        for statement in statements:
            await session.run(statement)


async def test_values_that_the_tools_print_inexactly_are_carried_exactly(host: EngineHost) -> None:
    async with tenants(host, 2) as [source, target]:
        await run_all(host, source, *EXACT)
        chunks, form, told = await dumped(host, source)
        await host.adapter.load(target, form, each(chunks))
        assert await host.adapter.contents(target) == told
        assert await host.as_root_in(target, STORED.replace("exact", f"{target.name}.exact")) == (
            await host.as_root_in(source, STORED.replace("exact", f"{source.name}.exact"))
        )


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE exact SET f = 16777216 WHERE id = 1",
        "UPDATE exact SET e = 2 WHERE id = 2",
        "UPDATE exact SET japanese = x'81ca81ca' WHERE id = 1",
        "DELETE FROM exact WHERE id = 3",
    ],
)
async def test_a_difference_that_the_tools_do_not_print_is_seen(host: EngineHost, change: str) -> None:
    async with tenants(host) as [tenant]:
        await run_all(host, tenant, *EXACT)
        before = await host.adapter.contents(tenant)
        await run_all(host, tenant, change)
        assert await host.adapter.contents(tenant) != before
