"""The verifier is the server's own: it logs in, and it is what the server would have stored."""

import base64
import hmac

import asyncpg
import pytest

from app.core import ids
from app.core.scram import verifier
from tests.servers import RunningServer


def test_two_verifiers_of_one_password_share_no_salt() -> None:
    assert verifier("secret") != verifier("secret")
    assert verifier("secret", salt=b"0123456789abcdef") == verifier("secret", salt=b"0123456789abcdef")


def test_the_rfc_7677_example() -> None:
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    challenge = f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    message = f"n=user,r={nonce[:20]},{challenge},c=biws,r={nonce}"
    _, _, keys = verifier("pencil", salt=base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")).split("$")
    server_key = base64.b64decode(keys.split(":")[1])
    signature = base64.b64encode(hmac.digest(server_key, message.encode(), "sha256")).decode()
    assert signature == "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


async def test_it_logs_in(postgres_server: RunningServer) -> None:
    name, password = ids.engine_name(), ids.engine_password()
    root = await asyncpg.connect(postgres_server.admin_dsn)
    try:
        await root.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{verifier(password)}'")
        await root.execute(f"GRANT CONNECT ON DATABASE postgres TO {name}")
        target = {"host": postgres_server.host, "port": postgres_server.port, "user": name, "database": "postgres"}
        session = await asyncpg.connect(password=password, **target)
        await session.close()
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(password=password + "x", **target)
    finally:
        await root.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")
        await root.close()


async def test_the_server_stores_it_as_it_is(postgres_server: RunningServer) -> None:
    """Not as a password to be hashed once more."""
    name, stored = ids.engine_name(), verifier("a password")
    root = await asyncpg.connect(postgres_server.admin_dsn)
    try:
        await root.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{stored}'")
        assert await root.fetchval("SELECT rolpassword FROM pg_authid WHERE rolname = $1", name) == stored
    finally:
        await root.execute(f"DROP ROLE {name}")
        await root.close()
