"""MySQL and MariaDB."""

from collections.abc import Sequence

from app.contracts.base import Engine
from app.engines.base import EngineAdapter, EngineLimits, FoundTenant, HostFacts, Tenant, Usage


class MySQLAdapter(EngineAdapter):
    engine = Engine.MYSQL
    label = "MySQL"
    uri_scheme = "mysql"
    default_port = 3306

    async def close(self) -> None:
        raise NotImplementedError

    async def inspect_host(self) -> HostFacts:
        raise NotImplementedError

    async def harden_host(self) -> tuple[str, ...]:
        raise NotImplementedError

    async def create(self, tenant: Tenant, limits: EngineLimits) -> None:
        raise NotImplementedError

    async def verify_login(self, tenant: Tenant) -> None:
        raise NotImplementedError

    async def set_limits(self, tenant: Tenant, limits: EngineLimits) -> None:
        raise NotImplementedError

    async def revoke(self, tenant: Tenant) -> None:
        raise NotImplementedError

    async def restore(self, tenant: Tenant) -> None:
        raise NotImplementedError

    async def destroy(self, tenant: Tenant) -> None:
        raise NotImplementedError

    async def measure(self, names: Sequence[str]) -> dict[str, Usage]:
        raise NotImplementedError

    async def list_tenants(self) -> list[FoundTenant]:
        raise NotImplementedError
