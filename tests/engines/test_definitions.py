"""What is no table's data takes room as well, and a frozen tenant may give it back."""

import pytest

from app.engines.base import Tenant
from tests.engines.harness import EngineHost, kind_of, refusal, session_of, tenants

BODY = 2**20
"""Bytes of each."""
DEFINITIONS = {
    "postgres": {
        "a function": "CREATE FUNCTION defined() RETURNS text LANGUAGE sql AS 'SELECT ''{body}'''",
        "a view": "CREATE VIEW defined AS SELECT '{body}' AS t",
        "a comment": "COMMENT ON TABLE kept IS '{body}'",
        "a setting for another database": "ALTER ROLE CURRENT_USER IN DATABASE postgres SET search_path TO '{body}'",
    },
    "mysql": {
        "a procedure": "CREATE PROCEDURE defined() SELECT '{body}'",
        "a function": "CREATE FUNCTION defined() RETURNS INT DETERMINISTIC BEGIN SET @t = '{body}'; RETURN 1; END",
        "a view": "CREATE VIEW defined AS SELECT '{body}' AS t",
        "a trigger": "CREATE TRIGGER defined AFTER DELETE ON kept FOR EACH ROW SET @t = '{body}'",
    },
}
CASES = [(engine, kind) for engine, kinds in DEFINITIONS.items() for kind in kinds]
DROPS = {
    "a procedure": "DROP PROCEDURE defined",
    "a function": "DROP FUNCTION defined",
    "a view": "DROP VIEW defined",
    "a trigger": "DROP TRIGGER defined",
}


async def _octets(host: EngineHost, tenant: Tenant) -> int:
    return (await host.adapter.measure([tenant.name]))[tenant.name].storage_bytes


@pytest.mark.parametrize(
    ("engine", "kind"), [(engine, kind) for engine, kinds in DEFINITIONS.items() for kind in kinds]
)
async def test_definitions_are_storage(host: EngineHost, engine: str, kind: str) -> None:
    if engine != kind_of(host):
        pytest.skip(f"what a tenant of {engine} defines")
    async with tenants(host) as [tenant]:
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE kept (n INT)")
            before = await _octets(host, tenant)
            # PostgreSQL would compress what repeats itself.
            body = "".join(f"{number:08x}" for number in _scattered(BODY // 8))
            await session.run(DEFINITIONS[engine][kind].format(body=body))
        assert await _octets(host, tenant) >= before + BODY // 2


@pytest.mark.parametrize("kind", DROPS)
async def test_a_frozen_tenant_drops_what_it_defined(host: EngineHost, kind: str) -> None:
    statement = DEFINITIONS[kind_of(host)].get(kind)
    if statement is None:
        pytest.skip("there are functions alone")
    async with tenants(host) as [tenant]:
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE kept (n INT)")
            await session.run(statement.format(body="short"))
        # A pause takes what the server grants to whoever makes a routine.
        await host.adapter.revoke_access(tenant)
        await host.adapter.restore_access(tenant, frozen=True)
        async with session_of(host, tenant) as session:
            await session.run(DROPS[kind])
            # One right drops triggers and makes them.
            assert kind == "a trigger" or await refusal(session, statement.format(body="short")) is not None


async def test_a_trigger_that_a_frozen_tenant_makes_writes_nothing_and_is_storage(host: EngineHost) -> None:
    if kind_of(host) != "mysql":
        pytest.skip("a frozen tenant makes no trigger")
    async with tenants(host) as [tenant]:
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE kept (n INT)")
            await session.run("INSERT INTO kept VALUES (1)")
        await host.adapter.freeze(tenant)
        before = await _octets(host, tenant)
        async with session_of(host, tenant) as session:
            await session.run("CREATE TRIGGER writing AFTER DELETE ON kept FOR EACH ROW INSERT INTO kept VALUES (2)")
            assert await refusal(session, "DELETE FROM kept") is not None
            await session.run("DROP TRIGGER writing")
            await session.run(DEFINITIONS["mysql"]["a trigger"].format(body="x" * BODY))
            assert await _octets(host, tenant) >= before + BODY
            await session.run("DROP TRIGGER defined")
            await session.run("DELETE FROM kept")
            assert await _octets(host, tenant) < before + BODY // 2


def _scattered(count: int) -> list[int]:
    state, found = 1, []
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        found.append(state)
    return found
