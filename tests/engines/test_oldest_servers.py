"""Servers that are too old to isolate tenants, or to give an account two passwords, are refused as hosts."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from app.engines.base import AdminAddress, EngineError
from app.engines.mysql import MySQLAdapter
from app.local.mysql_data import detect_flavour
from tests import servers
from tests.servers import machine_mysqld


@pytest.mark.parametrize(
    ("version", "needed"),
    [("8.0.13", "mysql 8.0.14 or later is needed"), ("10.4.30-MariaDB", "mariadb 10.5 or later is needed")],
)
async def test_why_a_server_of_an_older_version_is_refused(tmp_path: Path, version: str, needed: str) -> None:
    """A MariaDB server that calls itself so."""
    program = machine_mysqld()
    if "mariadb" not in (await detect_flavour(program)):
        pytest.skip("MySQL's servers say which version they are of")
    async with servers.mysql(tmp_path, program, f"--version={version}") as server:
        parts = urlsplit(server.admin_dsn)
        administrator = AdminAddress(
            host=server.host, port=server.port, user=str(parts.username), password=str(parts.password), tls=server.tls
        )
        adapter = MySQLAdapter(administrator)
        try:
            with pytest.raises(EngineError, match=f"{needed}; this is {version}"):
                await adapter.inspect_host()
        finally:
            await adapter.close()
