"""A rotation beside the engine's own statement: `python -m benchmarks.rotations`.

Between any two rotations by the API, one by the adapter alone on another database, the bare `ALTER` of an account over
an open connection, and a login by the plain driver.
"""

import asyncio
import secrets
import time
from statistics import median
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import httpx

from app.contracts.base import Engine
from app.core.ids import engine_password, marker
from app.engines.base import Access, AdminAddress, EngineAdapter, Login, Tenant
from app.engines.registry import open_adapter
from app.local.stack_file import StackHost
from benchmarks.driver import connect_and_run
from benchmarks.raw import Raw, raw_on
from benchmarks.stack import running_stack

_PAIRS = 60
_ALTER = {
    Engine.POSTGRES: "ALTER ROLE {name} PASSWORD '{password}'",
    Engine.MYSQL: "ALTER USER {name} IDENTIFIED BY '{password}'",
}


class _ByAdapter:
    """Rotations of one database by the adapter alone: `add_credential` and a login."""

    def __init__(self, adapter: EngineAdapter, made: dict[str, Any]) -> None:
        self._adapter = adapter
        self._tenant = Tenant(name=made["db_name"], password=made["db_password"], marker=marker(UUID(made["uuid"])))
        self._number = 0

    async def time_one(self) -> tuple[float, float]:
        """The seconds for both, and for the login among them."""
        self._number += 1
        name = self._tenant.name + (f"_l{self._number}" if self._adapter.rotation_renames else "")
        new, old = (
            _login(name, engine_password()),
            _login(self._tenant.login or self._tenant.name, self._tenant.password),
        )
        started = time.perf_counter()
        await self._adapter.add_credential(self._tenant, new)
        added = time.perf_counter()
        await self._adapter.log_in_as(self._tenant, new)
        ended = time.perf_counter()
        self._tenant = Tenant(name=self._tenant.name, login=new.name, password=new.password, marker=self._tenant.marker)
        await self._adapter.retire_credential(self._tenant, new, old, end_sessions=False)
        return ended - started, ended - added


def _login(name: str, password: str) -> Login:
    return Login(name=name, password=password, access=Access.READ_WRITE, connections=None)


async def _by_api(client: httpx.AsyncClient, database: str) -> float:
    started = time.perf_counter()
    rotated = (await _post(client, f"/databases/{database}/credential_rotations", {"overlap_seconds": 60}))["data"]
    took = time.perf_counter() - started
    await _post(client, f"/credential_rotations/{rotated['uuid']}/completions", {})
    return took


async def _post(client: httpx.AsyncClient, path: str, body: Any) -> Any:
    answer = await client.post(path, json=body, headers={"Idempotency-Key": str(uuid4())})
    answer.raise_for_status()
    return answer.json()


async def _bare(raw: Raw, engine: Engine, name: str) -> float:
    statement = _ALTER[engine].format(name=name, password=secrets.token_hex(16))
    started = time.perf_counter()
    await raw.run(statement)
    return time.perf_counter() - started


async def _compare(host: StackHost, client: httpx.AsyncClient) -> None:
    engine = Engine(host.engine)
    made, beside = [
        (await _post(client, "/databases?wait=true&timeout=60", {"name": "bench", "db_type": engine}))["data"]
        for _ in range(2)
    ]
    parts = urlsplit(host.admin_dsn)
    assert parts.hostname
    assert parts.port
    assert parts.username
    admin = AdminAddress(host=parts.hostname, port=parts.port, user=parts.username, password=parts.password or "")
    adapter = open_adapter(engine, admin, "")
    alone = _ByAdapter(adapter, beside)
    api: list[float] = []
    by_adapter: list[tuple[float, float]] = []
    bare: list[float] = []
    plain: list[float] = []
    async with raw_on(host) as raw:
        account = f"raw{secrets.token_hex(8)}"
        for statement in raw.statements(account, secrets.token_hex(16)):
            await raw.run(statement)
        for _ in range(_PAIRS):
            api.append(await _by_api(client, made["uuid"]))
            by_adapter.append(await alone.time_one())
            bare.append(await _bare(raw, engine, account))
            shown = (await client.get(f"/databases/{made['uuid']}")).json()["data"]
            plain.append(await connect_and_run(shown, "SELECT 1"))
    await adapter.close()
    allowed = 3 * median(bare) + median(plain)
    print(
        f"{engine.value}: API {_ms(median(api))}, adapter with its login {_ms(median(one for one, _ in by_adapter))}"
        f" (its login {_ms(median(one for _, one in by_adapter))}), bare ALTER {_ms(median(bare))},"
        f" plain login {_ms(median(plain))}; three ALTER and a login {_ms(allowed)}"
    )


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


async def main() -> None:
    with running_stack() as stack:
        headers = {"Authorization": f"Bearer {stack.api_key}"}
        async with httpx.AsyncClient(base_url=f"{stack.api_url}/api/v1", headers=headers, timeout=90) as client:
            seen: set[str] = set()
            for host in stack.hosts:
                if host.engine not in seen:
                    seen.add(host.engine)
                    await _compare(host, client)


if __name__ == "__main__":
    asyncio.run(main())
