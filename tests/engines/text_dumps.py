"""A second dump, as text and by the server's full administrator, to compare databases with."""

import asyncio
from urllib.parse import urlsplit

from app.engines.base import Tenant
from app.local.postgres import find_programs
from tests.servers import RunningServer


async def text_of(server: RunningServer, tenant: Tenant) -> list[str]:
    """Its lines in order of their text, with one name for all tenants."""
    address = urlsplit(server.admin_dsn)._replace(path=f"/{tenant.name}").geturl()
    process = await asyncio.create_subprocess_exec(
        str(find_programs(None) / "pg_dump"), address, stdout=asyncio.subprocess.PIPE
    )
    text, _ = await process.communicate()
    assert process.returncode == 0
    lines = text.decode().replace(tenant.name, "tenant").splitlines()
    return sorted(line for line in lines if line and not line.startswith(("\\restrict", "\\unrestrict", "--")))
