"""The installation that a command works on: the one in the environment, or the stack that runs in `HEADWATER_HOME`."""

import getpass
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import rich_click as click

from app.audit.drafts import MOST_TEXT
from app.backups.storage.store import BackupStore
from app.core import context
from app.core.secrets import SecretBox
from app.core.settings import InvalidSettings, Settings
from app.hosts.adapters import check_keys
from app.local import stack_file
from app.local.home import Home
from app.quotas.file import load_plans
from app.quotas.plans import Plans
from app.store.migrate import MigrationFailed, require_current
from app.store.notify import RowWatch
from app.store.session import connected


def settings() -> Settings:
    """The processes' settings; what the environment leaves out is taken from the running stack."""
    try:
        given = Settings.load(os.environ)
        # Every command refuses a wrong file, whether it needs the plans or not.
        load_plans(given.plans_file)
    except InvalidSettings as error:
        raise click.ClickException(str(error)) from None
    if given.control_dsn is not None:
        return given
    running = stack_file.read(given.home)
    if running is None:
        raise click.ClickException(
            f"No stack runs in {given.home.absolute()}. Start one with 'headwater up', or name a running one's folder"
            " in HEADWATER_HOME, or an installation's own database in HEADWATER_CONTROL_DSN."
        )
    return msgspec.structs.replace(
        given,
        control_dsn=running.control_dsn,
        control_admin_dsn=running.control_admin_dsn or None,
        public_url=given.public_url or running.api_url,
        temporal_address=running.temporal_address,
        temporal_namespace=running.temporal_namespace,
        temporal_ui_url=given.temporal_ui_url or running.temporal_ui_url,
        secret_keys=given.secret_keys or Home(given.home).kept_secret_keys(),
    )


@asynccontextmanager
async def store() -> AsyncIterator[None]:
    """Connects to our own database for the block. What is done in it, an operator does."""
    async with connected(_control_dsn(), max_size=4):
        try:
            await require_current()
        except MigrationFailed as error:
            raise click.ClickException(str(error)) from None
        token = context.actor.set(context.Actor(kind=context.ActorKind.OPERATOR, name=_login()))
        try:
            yield
        finally:
            context.actor.reset(token)


def row_watch() -> RowWatch:
    """For waiting until the running processes have done what the command asked for."""
    return RowWatch(_control_dsn())


def _control_dsn() -> str:
    dsn = settings().control_dsn
    assert dsn is not None, "settings() refuses a machine without one"
    return dsn


def _login() -> str:
    """What the operating system calls whoever runs the command; behind `sudo`, whoever asked it."""
    try:
        return (os.environ.get("SUDO_USER") or getpass.getuser())[:MOST_TEXT]
    except (KeyError, OSError):
        return str(os.getuid())


def plans() -> Plans:
    return load_plans(settings().plans_file)


def secret_box() -> SecretBox:
    return box_of(settings().secret_keys)


def box_of(keys: str | None) -> SecretBox:
    if keys is None:
        raise click.ClickException("The keys of secrets are missing. Set HEADWATER_SECRET_KEYS as the service has it.")
    try:
        return SecretBox.from_setting(keys)
    except ValueError as error:
        raise click.ClickException(str(error)) from None


async def sealing_box() -> SecretBox:
    """To seal what the running processes have to open. Belongs in `store`. Raises `InvalidSecret` for other keys than
    theirs."""
    box = secret_box()
    await check_keys(box)
    return box


def backup_store(identity: Path | None = None) -> BackupStore:
    """`identity` is a file of age identities, in place of the setting's."""
    given = settings()
    if identity is not None:
        given = msgspec.structs.replace(given, backup_age_identity_file=identity)
    try:
        return BackupStore.from_settings(given, secret_box())
    except InvalidSettings as error:
        raise click.ClickException(str(error)) from None
