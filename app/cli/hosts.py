"""`headwater hosts`: the servers that hold tenant databases."""

from pathlib import Path
from typing import IO
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec
import rich_click as click

from app.audit.actions import Action
from app.audit.drafts import Draft, drafting, note
from app.audit.events import change
from app.backups.restores.evacuation import evacuate
from app.cli.installation import plans, sealing_box, settings, store
from app.cli.output import shown
from app.cli.parameters import PORT, POSITIVE
from app.cli.tables import Rows
from app.contracts.base import Engine
from app.engines.base import AdminAddress
from app.engines.registry import ADAPTERS
from app.engines.tls import TlsMode, TlsPolicy, certificates
from app.hosts import changes, listing, records, registration
from app.hosts.listing import HostSummary
from app.hosts.registration import DEFAULT_CAPACITY, DEFAULT_OVERCOMMIT, HostAdded, NewHost
from app.operators.lost_hosts import give_up
from app.upkeep.reconcile import findings

_TLS_MODES = [mode.value for mode in TlsMode if mode is not TlsMode.PREFER]
_LONGEST_DSN = 8192
_LARGEST_CA = 1_048_576


class Drained(msgspec.Struct):
    host_id: int
    draining: bool


class HostChanged(msgspec.Struct, omit_defaults=True):
    """What was given of it."""

    host_id: int
    connection_overcommit: int | None = None
    storage_gb: int | None = None


class Removed(msgspec.Struct):
    host_id: int
    removed: bool = True


@click.group()
def hosts() -> None:
    """Engine hosts."""


@hosts.command("list")
@shown
async def list_hosts() -> list[HostSummary]:
    """Show every host with its load."""
    async with store():
        return await listing.list_hosts()


@hosts.command("add")
@click.option(
    "--engine", type=click.Choice([engine.value for engine in Engine]), required=True, help="MariaDB is mysql."
)
@click.option("--region", required=True, help="Such as us-east-1; a worker has to serve its queue.")
@click.option(
    "--admin-dsn",
    help="postgresql://… or mysql://… of an account that may provision. Other users of this machine can see it: "
    "better give --dsn-file.",
)
@click.option("--dsn-file", type=click.File(), help="A file with the DSN, - for standard input.")
@click.option("--tls", type=click.Choice(_TLS_MODES), help="By default disable on loopback, else verify-full.")
@click.option(
    "--ca",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A PEM with the authorities that sign the server's certificate; by default those that this machine trusts.",
)
@click.option("--public-host", help="The host that tenants connect to; by default the DSN's.")
@click.option("--public-port", type=PORT, help="The port that tenants connect to; by default the DSN's.")
@click.option(
    "--capacity", type=POSITIVE, default=DEFAULT_CAPACITY, show_default=True, help="The most databases that it takes."
)
@click.option(
    "--connection-capacity",
    type=POSITIVE,
    help="Sessions that tenants may have open together; by default the server's limit less 50, or less a tenth of a "
    "small one.",
)
@click.option(
    "--connection-overcommit",
    type=POSITIVE,
    help="How often each of them may be allocated to databases, 1 for strict; by default a registered host's own, and "
    f"{DEFAULT_OVERCOMMIT} for a new one.",
)
@click.option(
    "--storage-gb",
    type=POSITIVE,
    help="What its databases may take together: nothing is restored or cloned there beyond it. By default a registered "
    "host's own; without it restores don't ask.",
)
@shown
async def add_host(
    engine: str,
    region: str,
    admin_dsn: str | None,
    dsn_file: IO[str] | None,
    tls: str | None,
    ca: Path | None,
    public_host: str | None,
    public_port: int | None,
    capacity: int,
    connection_capacity: int | None,
    connection_overcommit: int | None,
    storage_gb: int | None,
) -> HostAdded:
    """Check, harden and register a host, or update a registered one. That keeps its TLS mode unless another is given,
    and goes on draining if it does."""
    admin = _address(Engine(engine), _dsn(admin_dsn, dsn_file))
    given = _policy(tls, ca)
    host, port = public_host or admin.host, public_port or admin.port
    async with store():
        box = await sealing_box()
        policy = given or await records.tls_of(Engine(engine), host, port) or registration.usual_tls(admin.host)
        new = NewHost(
            engine=Engine(engine),
            region=region,
            admin=msgspec.structs.replace(admin, tls=policy),
            public_host=host,
            public_port=port,
            capacity=capacity,
            connection_capacity=connection_capacity,
            connection_overcommit=connection_overcommit,
            storage_gb=storage_gb,
        )
        with drafting(Draft(action=Action.HOST_ADD, object="host")):
            return await registration.add_host(box, new, settings().postgres_extensions)


@hosts.command("set")
@click.argument("host_id", type=POSITIVE)
@click.option(
    "--connection-overcommit",
    type=POSITIVE,
    help="How often each connection may be allocated to databases, 1 for strict.",
)
@click.option("--storage-gb", type=click.IntRange(min=0), help="What its databases may take together, 0 for no bound.")
@shown
async def set_host(host_id: int, connection_overcommit: int | None, storage_gb: int | None) -> HostChanged:
    """Change how much a host may allocate, and hold. What is allocated, or there, stays."""
    if connection_overcommit is None and storage_gb is None:
        raise click.UsageError("Expected --connection-overcommit or --storage-gb.")
    async with store(), change(Action.HOST_SET, ("host", host_id)):
        if connection_overcommit is not None:
            before = await changes.change_overcommit(host_id, connection_overcommit)
            note(changes={"connection_overcommit": (before, connection_overcommit)})
        if storage_gb is not None:
            had = await changes.change_storage(host_id, storage_gb or None)
            note(changes={"storage_gb": (had, storage_gb or None)})
    return HostChanged(host_id, connection_overcommit, storage_gb)


@hosts.command("drain")
@click.argument("host_id", type=POSITIVE)
@shown
async def drain_host(host_id: int) -> Drained:
    """Place no new databases on a host; those that are there stay."""
    async with store(), change(Action.HOST_DRAIN, ("host", host_id)):
        await changes.drain_host(host_id)
    return Drained(host_id, draining=True)


@hosts.command("undrain")
@click.argument("host_id", type=POSITIVE)
@shown
async def undrain_host(host_id: int) -> Drained:
    """Place new databases on a host again."""
    async with store(), change(Action.HOST_UNDRAIN, ("host", host_id)):
        await changes.undrain_host(host_id)
    return Drained(host_id, draining=False)


@hosts.command("evacuate")
@click.argument("host_id", type=POSITIVE)
@click.option(
    "--discard",
    is_flag=True,
    help="Give up what lies on the host of databases that were moved already, or are due to be destroyed.",
)
@shown
async def evacuate_host(host_id: int, discard: bool) -> Rows:
    """Make the databases of a lost host again on others, from their newest backups. Repeat it to see how far it is."""
    async with store():
        # Before the work: each database is a transaction of its own.
        async with change(Action.HOST_EVACUATE, ("host", host_id)):
            await changes.drain_host(host_id)
            note(changes={"discard": (None, discard)})
        if discard:
            await give_up(plans(), host_id)
        rows = await evacuate(host_id)
    return Rows(rows=rows, total=len(rows), noun="databases", max_rows=len(rows) or 1)


@hosts.command("remove")
@click.argument("host_id", type=POSITIVE)
@shown
async def remove_host(host_id: int) -> Removed:
    """Remove a host that has no databases any more, and its administrator's credentials. Drain it first."""
    async with store(), change(Action.HOST_REMOVE, ("host", host_id)):
        await changes.remove_host(host_id)
        await findings.forget_host(host_id)
    return Removed(host_id)


def _dsn(given: str | None, file: IO[str] | None) -> str:
    if (given is None) == (file is None):
        raise click.UsageError("Give the administrator's string with --dsn-file, or with --admin-dsn.")
    if file is None:
        assert given is not None
        return given
    try:
        # One byte more than is allowed, so that a large file is never read completely.
        text = file.read(_LONGEST_DSN + 1)
    except (OSError, UnicodeDecodeError):
        raise click.BadParameter("can't be read as text", param_hint="'--dsn-file'") from None
    lines = text.split()
    if len(lines) != 1 or len(text) > _LONGEST_DSN:
        raise click.BadParameter("expected one line that holds one connection string", param_hint="'--dsn-file'")
    return lines[0]


def _policy(mode: str | None, ca: Path | None) -> TlsPolicy | None:
    """None when no option was given."""
    if ca is None:
        return None if mode is None else TlsPolicy(mode=TlsMode(mode))
    if mode == TlsMode.DISABLE.value:
        raise click.BadParameter("has no meaning with --tls disable", param_hint="'--ca'")
    if ca.stat().st_size > _LARGEST_CA:
        raise click.BadParameter(f"is larger than {_LARGEST_CA} octets", param_hint="'--ca'")
    authorities = certificates(ca.read_text("ascii", "replace"))
    policy = TlsPolicy(mode=TlsMode(mode) if mode else TlsMode.VERIFY_FULL, ca=authorities)
    try:
        policy.context  # noqa: B018  what it raises is wanted
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--ca'") from None
    return policy


def _address(engine: Engine, dsn: str) -> AdminAddress:
    adapter = ADAPTERS[engine]
    parts = _split(dsn)
    schemes = {adapter.uri_scheme, engine.value}
    if parts.scheme not in schemes or not parts.hostname or not parts.username:
        raise _bad_dsn(f"expected {adapter.uri_scheme}://user:password@host:port/database")
    if parts.query or parts.fragment:
        raise _bad_dsn("what follows the database isn't read: TLS is chosen with --tls and --ca")
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
    return click.BadParameter(message, param_hint="the administrator's string")
