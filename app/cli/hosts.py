"""`headwater hosts`: the servers that hold tenant databases."""

from urllib.parse import SplitResult, unquote, urlsplit

import msgspec
import rich_click as click

from app.cli.output import shown
from app.cli.parameters import PORT, POSITIVE
from app.cli.running import secret_box, store
from app.contracts.base import Engine
from app.engines.base import AdminAddress
from app.engines.registry import ADAPTERS
from app.hosts import service
from app.hosts.service import DEFAULT_CAPACITY, HostAdded, HostSummary, NewHost
from app.reconcile import findings
from app.store.session import transaction


class Drained(msgspec.Struct):
    host_id: int
    draining: bool


class Removed(msgspec.Struct):
    host_id: int
    removed: bool = True


@click.group()
def hosts() -> None:
    """Engine hosts."""


@hosts.command("list")
@shown
async def list_hosts() -> list[HostSummary]:
    """Show every host with what it carries."""
    async with store():
        return await service.list_hosts()


@hosts.command("add")
@click.option(
    "--engine", type=click.Choice([engine.value for engine in Engine]), required=True, help="MariaDB is mysql."
)
@click.option("--region", required=True, help="Such as us-east-1; a worker has to serve its queue.")
@click.option("--admin-dsn", required=True, help="postgresql://… or mysql://… of an account that may provision.")
@click.option("--public-host", help="What tenants connect to; the DSN's host unless given.")
@click.option("--public-port", type=PORT, help="The DSN's port unless given.")
@click.option("--capacity", type=POSITIVE, default=DEFAULT_CAPACITY, show_default=True, help="Databases.")
@click.option(
    "--connection-capacity", type=POSITIVE, help="Connections promised in all; the server's own unless given."
)
@shown
async def add_host(
    engine: str,
    region: str,
    admin_dsn: str,
    public_host: str | None,
    public_port: int | None,
    capacity: int,
    connection_capacity: int | None,
) -> HostAdded:
    """Check, harden and register a host; or bring a registered one up to date."""
    box = secret_box()
    admin = _address(Engine(engine), admin_dsn)
    new = NewHost(
        engine=Engine(engine),
        region=region,
        admin=admin,
        public_host=public_host or admin.host,
        public_port=public_port or admin.port,
        capacity=capacity,
        connection_capacity=connection_capacity,
    )
    async with store():
        return await service.add_host(box, new)


@hosts.command("drain")
@click.argument("host_id", type=POSITIVE)
@shown
async def drain_host(host_id: int) -> Drained:
    """Put no new database there; those that are there stay."""
    async with store():
        await service.drain_host(host_id)
    return Drained(host_id, draining=True)


@hosts.command("undrain")
@click.argument("host_id", type=POSITIVE)
@shown
async def undrain_host(host_id: int) -> Drained:
    """Put new databases there again."""
    async with store():
        await service.undrain_host(host_id)
    return Drained(host_id, draining=False)


@hosts.command("remove")
@click.argument("host_id", type=POSITIVE)
@shown
async def remove_host(host_id: int) -> Removed:
    """Forget a host that carries no database any more, and its administrator. Drain it first."""
    async with store(), transaction():
        await service.remove_host(host_id)
        await findings.forget_host(host_id)
    return Removed(host_id)


def _address(engine: Engine, dsn: str) -> AdminAddress:
    adapter = ADAPTERS[engine]
    parts = _split(dsn)
    schemes = {adapter.uri_scheme, engine.value}
    if parts.scheme not in schemes or not parts.hostname or not parts.username:
        raise _bad_dsn(f"expected {adapter.uri_scheme}://user:password@host:port/database")
    return AdminAddress(
        host=parts.hostname,
        port=_port(parts) or adapter.default_port,
        user=unquote(parts.username),
        password=unquote(parts.password or ""),
        database=parts.path.strip("/") or None,
    )


def _split(dsn: str) -> SplitResult:
    try:
        return urlsplit(dsn)
    except ValueError:
        raise _bad_dsn("the brackets around the host don't match") from None


def _port(parts: SplitResult) -> int | None:
    try:
        return parts.port
    except ValueError:
        raise _bad_dsn("the port is no number from 0 to 65535") from None


def _bad_dsn(message: str) -> click.BadParameter:
    return click.BadParameter(message, param_hint="'--admin-dsn'")
