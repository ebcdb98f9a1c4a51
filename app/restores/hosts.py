"""Which hosts can take what another one has dumped."""

from app.backups.sources import is_loadable
from app.engines.dumping import DumpFormat
from app.hosts.records import host_versions


async def hosts_that_take(flavour: str, version: str) -> list[int]:
    """The ids of the registered hosts that load what a server of that flavour and version has dumped."""
    dumped = DumpFormat(flavour=flavour, server_version=version, tool="", layout="")
    hosts = await host_versions()
    return [one.id for one in hosts if is_loadable(dumped, flavour=one.flavour, version=one.version)]
