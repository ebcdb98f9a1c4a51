"""The initial contents of a stack's own database: an operator, a key, the engine hosts, and the system blueprints."""

from collections.abc import Sequence

import msgspec

from app.accounts.sessions.links import console_url, make_link
from app.audit.actions import Action
from app.audit.events import change
from app.auth.keys import KeyControls, create_key, is_key_active
from app.auth.scopes import TEAM_SCOPES
from app.auth.users import create_user, find_user, set_operator
from app.blueprints.shipped import publish_shipped
from app.contracts.base import Engine
from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.databases.passwords import find_oldest_password, password_place
from app.engines.base import AdminAddress
from app.hosts.changes import drain_host, set_aside
from app.hosts.records import change_port, find_again, is_draining
from app.hosts.registration import DEFAULT_CAPACITY, DEFAULT_OVERCOMMIT, NewHost, add_host
from app.store.service_role import prepare
from app.store.session import connected, transaction

_EMAIL = "operator@localhost"
_NAME = "Operator"
_KEY_NAME = "Embedded stack"
_REQUESTS_PER_MINUTE = 100_000


class ControlDsns(msgspec.Struct, frozen=True, kw_only=True):
    """How to log in to the stack's own database: as the owner of the tables, and as the service."""

    admin: str
    service: str


class SeedHost(msgspec.Struct, frozen=True, kw_only=True):
    """An engine host of the stack. `last_port` is its former port, if it has changed. `capacity` and
    `connection_overcommit` are what may be placed on it."""

    engine: Engine
    region: str
    admin: AdminAddress
    last_port: int | None = None
    capacity: int = DEFAULT_CAPACITY
    connection_overcommit: int = DEFAULT_OVERCOMMIT


class RemovedHost(msgspec.Struct, frozen=True, kw_only=True):
    """An engine host of an earlier stack that this one doesn't run, because its region or engine is left out."""

    engine: Engine
    host: str
    port: int


async def seed(
    dsns: ControlDsns, box: SecretBox, hosts: Sequence[SeedHost], gone: Sequence[RemovedHost], last_key: str | None
) -> str:
    """Migrates our database to this version, makes the service's role in it, registers the hosts, and sets removed ones
    aside. Returns an API key with every scope of teams, of a `pro` team: the last stack's key if it is still valid.
    Raises `InvalidSecret`, before anything is registered, when `box` lacks the key of stored secrets."""
    await prepare(dsns.admin, dsns.service)
    async with connected(dsns.service, max_size=4):
        await _check_keys(box)
        for host in hosts:
            await _register(box, host)
        for absent in gone:
            await set_aside(absent.engine, absent.host, absent.port)
        await publish_shipped()
        return await _api_key(last_key)


async def operator_link(dsn: str, settings: Settings, api_url: str) -> str | None:
    """A link with which the stack's operator signs in to the console. None where there is no console, or the operator
    is gone."""
    if not settings.console:
        return None
    public = msgspec.structs.replace(settings, public_url=settings.public_url or api_url)
    async with connected(dsn, max_size=1):
        user_id = await find_user(_EMAIL)
        if user_id is None:
            return None
        async with change(Action.SIGN_IN_LINK_CREATE, ("user", user_id)):
            return (await make_link(user_id, console_url(public), settings.sign_in_link_seconds)).url


async def _check_keys(box: SecretBox) -> None:
    # Of all sealed values the oldest database's password most likely needs a key that was removed.
    oldest = await find_oldest_password()
    if oldest is not None:
        box.open(oldest.password_sealed, password_place(oldest.uuid))


async def _register(box: SecretBox, host: SeedHost) -> None:
    address = (host.engine, host.admin.host, host.admin.port)
    async with transaction():
        if host.last_port is not None:
            await change_port(*address, last=host.last_port)
        else:
            # The last stack didn't know where it had been.
            await find_again(*address, host.region)
        draining = await is_draining(*address)
        added = await add_host(
            box,
            NewHost(
                engine=host.engine,
                region=host.region,
                admin=host.admin,
                public_host=host.admin.host,
                public_port=host.admin.port,
                capacity=host.capacity,
                connection_overcommit=host.connection_overcommit,
            ),
        )
        if draining:  # what the operator decided outlives a restart
            await drain_host(added.host_id)


async def _api_key(last_key: str | None) -> str:
    if last_key is not None and await is_key_active(last_key):
        return last_key
    async with transaction():
        user_id = await find_user(_EMAIL)
        if user_id is None:
            user_id = (await create_user(email=_EMAIL, name=_NAME, tier="pro")).user_id
            await set_operator(user_id, True)
        key = await create_key(
            user_id=user_id,
            name=_KEY_NAME,
            scopes=TEAM_SCOPES,
            controls=KeyControls(requests_per_minute=_REQUESTS_PER_MINUTE),
        )
    return key.api_key
