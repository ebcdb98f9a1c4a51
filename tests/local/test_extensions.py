"""The operator's list of extensions in the embedded stack."""

import pytest

from app.engines.postgres import PostgresAdapter
from app.local import provisioner
from app.local.errors import StackError
from app.local.postgres import PostgresService, find_programs
from tests import servers


class _StartedByTheTest(PostgresService):
    """One that a test has started."""

    def __init__(self, server: servers.RunningServer) -> None:
        super().__init__(
            "listed", folder=server.log.parent, port=server.port, log=server.log, programs=find_programs(None)
        )


async def test_a_start_brings_the_template_to_the_list(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("embedded-list")
    async with servers.postgres(folder) as server:
        service = _StartedByTheTest(server)
        with pytest.raises(StackError, match="dblink: it opens connections"):
            await provisioner.on_postgres(service, "provisioner-passw0rd", ["dblink"])
        for listed in (["vector"], []):
            address = await provisioner.on_postgres(service, "provisioner-passw0rd", listed)
            adapter = PostgresAdapter(address)
            try:
                assert [name for name in await adapter.extensions() if name == "vector"] == listed
            finally:
                await adapter.close()
