"""Which extensions a tenant gets: what the host says, and what it does."""

from tests.engines.harness import EngineHost, RefusedError, as_root, session_of, tenants


async def test_what_is_listed_is_what_a_tenant_can_make(host: EngineHost) -> None:
    told = await host.adapter.extensions()
    if host.flavour != "postgres":
        assert told == []
        return
    assert {"citext", "hstore", "pg_trgm"} <= set(told)
    made: list[str] = []
    async with tenants(host) as [tenant], session_of(host, tenant) as session:
        for (name,) in await as_root(host, "SELECT name FROM pg_available_extensions ORDER BY 1"):
            try:
                await session.run(f'CREATE EXTENSION IF NOT EXISTS "{name}" CASCADE')
            except RefusedError:
                continue
            made.append(name)
    assert made == told
