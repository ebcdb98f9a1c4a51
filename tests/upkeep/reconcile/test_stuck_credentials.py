"""The consistency check names credentials and users that the engine should know by now, or refuse."""

from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID

import pytest
import pytest_asyncio

from app.core.secrets import SecretBox, new_key_setting
from app.credentials import service as credentials
from app.credentials.schemas import CreateDatabaseUser, RotateCredentials
from app.engines.base import Access
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import execute, transaction
from app.upkeep.reconcile.records import check_records
from tests.operations.support import active
from tests.support.in_process import LoneApi, lone_api

LONG = timedelta(minutes=5)
_KEYS = new_key_setting()
_BOX = SecretBox.from_setting(_KEYS)


@pytest_asyncio.fixture
async def lone(control_dsn: str) -> AsyncIterator[LoneApi]:
    async with lone_api(control_dsn, secret_keys=_KEYS) as api:
        await api.add_host()
        yield api


async def rules_about(database: UUID) -> list[str]:
    """Without the operation of the rotation, which has rules of its own."""
    found = [one.rule for one in await check_records(LONG) if one.subject == str(database)]
    return [rule for rule in found if not rule.startswith("operation_")]


async def rotating(lone: LoneApi) -> UUID:
    """A database whose rotation is pending: no worker is there."""
    _, database = await active(lone)
    async with transaction():
        await credentials.rotate_any(_BOX, database, RotateCredentials())
    return database


async def with_user(lone: LoneApi) -> UUID:
    _, database = await active(lone)
    request = CreateDatabaseUser(name="reporting", access=Access.READ_ONLY, connection_limit=1)
    async with transaction():
        await credentials.add_user_to_any(DEFAULT_PLANS, _BOX, database, request)
    return database


@pytest.mark.parametrize(
    ("rule", "overdue", "in_time"),
    [
        ("rotation_stuck", "status = 'pending', changed_at = now() - $1", "changed_at = now()"),
        ("rotation_stuck", "status = 'cancelling', changed_at = now() - $1", "status = 'cancelled'"),
        ("retirement_overdue", "status = 'overlapping', retires_at = now() - $1", "retires_at = now() + $1"),
        ("retirement_overdue", "status = 'retiring', retires_at = now() - $1", "status = 'completed'"),
    ],
)
async def test_a_rotation(lone: LoneApi, rule: str, overdue: str, in_time: str) -> None:
    database = await rotating(lone)
    assert await rules_about(database) == []
    await _change("credential_rotations", overdue)
    assert await rules_about(database) == [rule]
    await _change("credential_rotations", in_time)
    assert await rules_about(database) == []


@pytest.mark.parametrize(
    ("rule", "overdue", "in_time"),
    [
        ("user_stuck", "status = 'creating', changed_at = now() - $1", "changed_at = now()"),
        ("user_stuck", "status = 'removing', changed_at = now() - $1", "changed_at = now()"),
        ("user_expired", "status = 'active', expires_at = now() - $1", "expires_at = now() + $1"),
    ],
)
async def test_a_user(lone: LoneApi, rule: str, overdue: str, in_time: str) -> None:
    database = await with_user(lone)
    assert await rules_about(database) == []
    await _change("database_users", overdue)
    assert await rules_about(database) == [rule]
    await _change("database_users", in_time)
    assert await rules_about(database) == []


async def _change(table: str, columns: str) -> None:
    """Of the only row. `$1` is longer than what is let pass."""
    columns = columns.replace("$1", "$1::interval")
    await execute(f"UPDATE {table} SET {columns} WHERE $1::interval > interval '0'", 2 * LONG)
