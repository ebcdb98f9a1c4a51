"""Clients that log in over and over and never finish put off no end of a tenant's access."""

import asyncio
from contextlib import suppress
from typing import Any

import aiomysql
import pymysql
import pytest

from app.engines.base import Tenant
from tests.engines.harness import EngineHost, tenants
from tests.support.waiting import ended, until

CLIENTS = 4


class _UnfinishedLogin(aiomysql.Connection):  # type: ignore[misc]  # the driver is untyped
    """Names its account, and then says nothing until it is cut off."""

    async def _process_auth(self, _plugin: bytes, _packet: Any) -> None:
        await self._reader.read()


async def test_logins_that_never_finish_hold_up_neither_revocation_nor_removal(host: EngineHost) -> None:
    if host.flavour != "mariadb":
        pytest.skip("it shows nobody's name before the login is finished")
    async with tenants(host) as [tenant]:
        clients = [asyncio.create_task(_come_back(host, tenant)) for _ in range(CLIENTS)]
        try:
            await until(lambda: _all_shown(host, tenant))
            await host.adapter.revoke(tenant)
            await host.adapter.destroy(tenant)
        finally:
            await ended(*clients)


async def _come_back(host: EngineHost, tenant: Tenant) -> None:
    address = host.administrator
    while True:
        # The server switches from this plugin to the account's own, and waits for the answer.
        login = _UnfinishedLogin(
            host=address.host,
            port=address.port,
            user=tenant.name,
            password="any",
            auth_plugin="mysql_clear_password",
        )
        try:
            with suppress(pymysql.MySQLError):
                await login._connect()
        finally:
            login.close()


async def _all_shown(host: EngineHost, tenant: Tenant) -> bool:
    return await host.sessions(tenant.name) >= CLIENTS
