"""What users may do in a database that gets a backup of itself, and in one that gets a backup of another."""

import pytest

from app.engines.base import Access, Login, Tenant
from tests.engines.accounts import rotated, session_as, user_of
from tests.engines.harness import LIMITS, EngineHost, Session, refusal, session_of, tenants
from tests.engines.test_dumps import dumped, streamed, tables

DENIED = "42501"
_ACCESSES = (Access.READ_WRITE, Access.READ_ONLY, Access.READ_WRITE)
DEFAULTS = """
SELECT pg_get_userbyid(defaclrole)::text, defaclnamespace::regnamespace::text, defaclobjtype::text,
       ARRAY(SELECT entry::text FROM unnest(defaclacl) AS entry ORDER BY entry::text)
FROM pg_default_acl ORDER BY 1, 2, 3
"""

pytestmark = pytest.mark.parametrize("engine_server", ["postgres"], indirect=True, scope="session")


async def protect(session: Session, user: Login, other: Login) -> None:
    """Everything that a tenant may say of its users: what one may read, and more, and less."""
    for statement in (
        "CREATE TABLE visits (n int, secret text)",
        "INSERT INTO visits VALUES (1, 'a'), (2, 'b')",
        "ALTER TABLE visits ENABLE ROW LEVEL SECURITY",
        # The server writes a TO of its own into it.
        "CREATE POLICY everybody ON visits USING (CAST('1 day' AS interval day to hour) > '1 hour')",
        f"CREATE POLICY hidden ON visits AS RESTRICTIVE TO {user.name} USING (n > 1)",
        f'CREATE POLICY "of ""two"" ON" ON visits AS RESTRICTIVE TO {user.name}, {other.name} USING (n > 0)',
        *(
            f"COMMENT ON POLICY {policy} ON visits IS 'who sees what'"
            for policy in ("everybody", "hidden", '"of ""two"" ON"')
        ),
        "CREATE TABLE salaries (n int)",
        f"REVOKE SELECT ON salaries FROM {user.name}",
        f"GRANT INSERT ON salaries TO {user.name}",
        "CREATE FUNCTION told() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "REVOKE EXECUTE ON FUNCTION told FROM PUBLIC",
        f"GRANT EXECUTE ON FUNCTION told TO {user.name}",
        "CREATE SCHEMA closed CREATE TABLE kept (n int)",
        f"REVOKE USAGE ON SCHEMA closed FROM {user.name}",
        f"ALTER DEFAULT PRIVILEGES GRANT INSERT ON TABLES TO {user.name}",
    ):
        await session.run(statement)


async def check(host: EngineHost, tenant: Tenant, user: Login, other: Login) -> None:
    async with session_as(host, tenant, user) as session:
        assert await session.run("SELECT n FROM visits") == [(2,)]
        assert await session.run("SELECT told()") == [(1,)]
        assert await refusal(session, "SELECT n FROM salaries") == DENIED
        assert await refusal(session, "SELECT n FROM closed.kept") == DENIED
        await session.run("SET default_transaction_read_only = off")
        await session.run("INSERT INTO salaries VALUES (1)")
    async with session_as(host, tenant, other) as session:
        assert await session.run("SELECT n FROM visits") == [(1,), (2,)]
        assert await session.run("SELECT count(*) FROM salaries") != [(None,)]
        assert await refusal(session, "SELECT told()") == DENIED


@pytest.mark.parametrize("frozen", [False, True])
async def test_a_database_that_is_replaced_keeps_the_rights_of_its_users(host: EngineHost, frozen: bool) -> None:
    before = await host.catalog()
    async with tenants(host, 2) as [tenant, scratch]:
        user, other = (user_of(tenant, Access.READ_ONLY, number) for number in (1, 2))
        for one in (user, other):
            await host.adapter.put_user(tenant, one)
        async with session_of(host, tenant) as session:
            await protect(session, user, other)
            await check(host, tenant, user, other)
            await session.run("DELETE FROM salaries")
        rights = await host.rights(tenant)
        if frozen:
            await host.adapter.freeze(tenant)
        chunks, form, told = await dumped(host, tenant)
        if frozen:
            await host.adapter.thaw(tenant)
        async with session_of(host, tenant) as session:
            await session.run("DROP SCHEMA public CASCADE")
            await session.run("CREATE SCHEMA public")
        await host.adapter.load(scratch, form, streamed(chunks), becomes=tenant)
        await host.adapter.revoke_access(tenant)
        for _ in range(2):
            await host.adapter.replace(tenant, scratch)
        assert await host.adapter.contents(tenant) == told
        await host.adapter.destroy(scratch)
        await host.adapter.restore_access(tenant)
        if not frozen:
            assert await host.rights(tenant) == rights
            await check(host, tenant, user, other)
        async with session_as(host, tenant, user) as session:
            assert await session.run("SELECT n FROM visits") == [(2,)]
            assert await refusal(session, "SELECT n FROM salaries") == DENIED
        async with session_of(host, tenant) as session:
            await session.run("CREATE TABLE later (n int)")
        async with session_as(host, tenant, other) as session:
            assert await session.run("SELECT n FROM later") == []
        await host.adapter.remove_user(tenant, user.name)
    assert await host.catalog() == before


async def test_what_users_let_others_do_with_what_they_make_is_kept(host: EngineHost) -> None:
    """Also after a rotation, with a user that only reads, and where the database is made again, as on another host."""
    before = await host.catalog()
    async with tenants(host, 2) as [tenant, scratch]:
        now = await rotated(host, tenant)
        user, reader, other = (user_of(tenant, access, n) for n, access in enumerate(_ACCESSES, start=1))
        for one in (user, reader, other):
            await host.adapter.put_user(now, one)
        async with session_as(host, now, user) as session:
            await session.run('CREATE SCHEMA "a "" TO b; c"')
        # As users do where no guard makes everything be done by the tenant.
        given = [f'IN SCHEMA "a "" TO b; c" GRANT SELECT ON TABLES TO {one}' for one in (other.name, tenant.name)]
        given.append(f"GRANT USAGE ON TYPES TO {other.name} WITH GRANT OPTION")
        for each in (*given, "REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC"):
            await host.as_root_in(tenant, f"ALTER DEFAULT PRIVILEGES FOR ROLE {user.name} {each}")
        said = await host.as_root_in(tenant, DEFAULTS)
        assert {row[0] for row in said} == {tenant.name, now.login, user.name}
        chunks, form, _ = await dumped(host, now)
        await host.adapter.load(scratch, form, streamed(chunks), becomes=now)
        await host.adapter.revoke_access(now)
        await host.adapter.replace(now, scratch)
        await host.adapter.destroy(scratch)
        await host.adapter.restore_access(now)
        assert await host.as_root_in(tenant, DEFAULTS) == said
        await host.adapter.remove_user(now, other.name)
        await host.adapter.clear(now)
        await host.adapter.load(now, form, streamed(chunks))
        left = await host.as_root_in(tenant, DEFAULTS)
        assert {row[:3] for row in left} == {row[:3] for row in said if row[2] != "T"}
        assert other.name not in str(left), "what is said of somebody who isn't there any more is left out"
    assert await host.catalog() == before


async def test_what_others_may_do_with_large_objects_to_come_is_kept(host: EngineHost) -> None:
    async with tenants(host, 2) as [tenant, scratch]:
        user = user_of(tenant, Access.READ_ONLY)
        await host.adapter.put_user(tenant, user)
        async with session_of(host, tenant) as session:
            if await session.run("SELECT 1 WHERE current_setting('server_version_num')::int < 180000"):
                pytest.skip("no default rights on large objects before PostgreSQL 18")
            await session.run(f"ALTER DEFAULT PRIVILEGES GRANT SELECT ON LARGE OBJECTS TO {user.name}")
        said = await host.as_root_in(tenant, DEFAULTS)
        assert "L" in {row[2] for row in said}
        chunks, form, _ = await dumped(host, tenant)
        await host.adapter.load(scratch, form, streamed(chunks), becomes=tenant)
        await host.adapter.revoke_access(tenant)
        await host.adapter.replace(tenant, scratch)
        await host.adapter.destroy(scratch)
        await host.adapter.restore_access(tenant)
        assert await host.as_root_in(tenant, DEFAULTS) == said
        async with session_of(host, tenant) as session:
            [(made,)] = await session.run("SELECT lo_from_bytea(0, 'later')")
        async with session_as(host, tenant, user) as session:
            assert await session.run(f"SELECT convert_from(lo_get({made}), 'UTF8')") == [("later",)]


async def test_a_database_that_is_made_again_keeps_the_rights_of_its_users(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        user, other = (user_of(tenant, Access.READ_ONLY, number) for number in (1, 2))
        for one in (user, other):
            await host.adapter.put_user(tenant, one)
        async with session_of(host, tenant) as session:
            await protect(session, user, other)
        chunks, form, told = await dumped(host, tenant)
        rights = await host.rights(tenant)
        await host.adapter.destroy(tenant)
        await host.adapter.create(tenant, LIMITS)
        await host.adapter.revoke_access(tenant)
        later = user_of(tenant, Access.READ_ONLY, 3)
        for one in (user, other, later):
            await host.adapter.put_user(tenant, one)
        await host.adapter.clear(tenant)
        await host.adapter.load(tenant, form, streamed(chunks))
        assert await host.adapter.contents(tenant) == told
        await host.adapter.restore_access(tenant)
        assert rights <= await host.rights(tenant)
        await check(host, tenant, user, other)
        async with session_as(host, tenant, later) as session:
            assert await session.run("SELECT count(*) FROM salaries") == [(1,)], "one that wasn't there reads all"


async def test_users_of_another_database_are_other_people(host: EngineHost) -> None:
    async with tenants(host, 2) as [source, target]:
        users = [user_of(source, Access.READ_ONLY, number) for number in (1, 2)]
        for one in users:
            await host.adapter.put_user(source, one)
        same = user_of(target, Access.READ_ONLY, 1)
        await host.adapter.put_user(target, same)
        async with session_of(host, source) as session:
            await protect(session, *users)
        chunks, form, told = await dumped(host, source)
        await host.adapter.clear(target)
        await host.adapter.load(target, form, streamed(chunks))
        assert await host.adapter.contents(target) == told, "a policy for users alone is no difference"
        assert len(tables(told)) == 3
        async with session_of(host, target) as session:
            told_of = "SELECT polname, obj_description(oid, 'pg_policy') FROM pg_policy"
            assert await session.run(told_of) == [("everybody", "who sees what")]
            assert await session.run(f"SELECT has_function_privilege('{same.name}', 'told()', 'EXECUTE')") == [(False,)]
        await host.adapter.destroy(source)
