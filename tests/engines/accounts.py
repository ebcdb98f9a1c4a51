"""A tenant's accounts: the login that a rotation makes, users, and sessions of any of them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from app.core import ids
from app.engines.base import Access, Login, LoginRefused, Tenant, TenantFull
from tests.engines.harness import EngineHost, Session


def login_of(tenant: Tenant) -> Login:
    """What the tenant logs in as."""
    return Login(name=tenant.login or tenant.name, password=tenant.password, access=Access.READ_WRITE, connections=None)


def next_login(host: EngineHost, tenant: Tenant, number: int = 1) -> Login:
    """What a rotation makes: another account, or another password of the same one."""
    name = f"{tenant.name}_l{number}" if host.adapter.rotation_renames else tenant.name
    return Login(name=name, password=ids.engine_password(), access=Access.READ_WRITE, connections=None)


def user_of(tenant: Tenant, access: Access = Access.READ_WRITE, number: int = 1, connections: int = 1) -> Login:
    return Login(
        name=f"{tenant.name}_u{number}", password=ids.engine_password(), access=access, connections=connections
    )


def logging_in_as(tenant: Tenant, login: Login) -> Tenant:
    """The tenant with these credentials."""
    return msgspec.structs.replace(
        tenant, login="" if login.name == tenant.name else login.name, password=login.password
    )


async def rotated(host: EngineHost, tenant: Tenant, number: int = 1) -> Tenant:
    """The tenant after a rotation that has ended."""
    new = next_login(host, tenant, number)
    await host.adapter.add_credential(tenant, new)
    await host.adapter.log_in_as(tenant, new)
    await host.adapter.retire_credential(tenant, new, login_of(tenant), end_sessions=True)
    return logging_in_as(tenant, new)


async def accepted(host: EngineHost, tenant: Tenant, login: Login) -> bool:
    """Whether its password is, also where the server still counts a session that has ended."""
    try:
        await host.adapter.log_in_as(tenant, login)
    except LoginRefused:
        return False
    except TenantFull:
        pass
    return True


@asynccontextmanager
async def session_as(host: EngineHost, tenant: Tenant, login: Login) -> AsyncIterator[Session]:
    """A plain client's session."""
    account = Tenant(name=login.name, password=login.password, marker=tenant.marker)
    session = await host.login(account, database=tenant.name)
    try:
        yield session
    finally:
        await session.close()
