"""A login that a full PostgreSQL server turns away proves credentials only where it has looked at the password."""

import asyncpg
import pytest

from app.engines.base import HostUnavailable, TenantFull, accepted_when_full
from app.engines.errors import ServerFull
from app.engines.postgres.errors import translated_entry, translated_login


def refusal(function: str) -> asyncpg.TooManyConnectionsError:
    """As the server refuses it, in whatever language."""
    error = asyncpg.TooManyConnectionsError("zu viele Verbindungen")
    error.server_source_function = function
    return error


@pytest.mark.parametrize("function", ["InitializeSessionUserId", "CheckMyDatabase", "exec_stmt_raise"])
def test_a_role_or_a_database_that_is_full_has_accepted_the_password(function: str) -> None:
    with pytest.raises(TenantFull) as caught, translated_login("host"):
        raise refusal(function)
    assert not isinstance(caught.value, ServerFull)
    with accepted_when_full():
        raise caught.value


@pytest.mark.parametrize("function", ["InitProcess", "InitPostgres"])
def test_a_server_that_is_full_has_not_seen_it(function: str) -> None:
    with pytest.raises(ServerFull) as caught, translated_login("host"):
        raise refusal(function)
    with pytest.raises(HostUnavailable), accepted_when_full():
        raise caught.value


def test_a_database_that_is_full_blames_no_host() -> None:
    with pytest.raises(TenantFull), translated_entry("host"):
        raise refusal("CheckMyDatabase")
    with pytest.raises(HostUnavailable), translated_entry("host"):
        raise refusal("InitPostgres")
