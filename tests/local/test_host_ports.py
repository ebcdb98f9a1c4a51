"""The ports of a stack's engine hosts: tenants have them in their connection strings."""

from pathlib import Path

from app.core.settings import Settings
from app.local import stack_file
from app.local.home import Home
from app.local.ports import LOOPBACK, PortAllocator
from app.local.screen import Screen
from app.local.stack_file import StackFile, StackHost
from app.local.stack_services import StackServices
from tests.support.ports import free_port


def _host(region: str, port: int) -> StackHost:
    return StackHost(engine="postgres", region=region, host=LOOPBACK, port=port, admin_dsn="")


def _ports(folder: Path, *regions: str) -> list[int]:
    """Those that the next stack with these regions chooses."""
    settings, last = Settings(home=folder, regions=regions), stack_file.read_last(folder)
    planned = StackServices(settings, Home(folder), Screen(), PortAllocator(), last, {})
    return [host.server.port for host in planned.hosts]


def test_no_host_gets_the_port_of_one_that_may_be_back(tmp_path: Path) -> None:
    # The usual ones of the first two hosts, free or not, and one that a host got in their place.
    left_out = [_host("us-east-1", 15_432), _host("us-east-2", free_port())]
    last = StackFile(
        api_url="",
        api_key="",
        temporal_address="",
        temporal_namespace="",
        temporal_ui_url="",
        control_dsn="",
        hosts=[_host("eu-west-1", 15_433)],
        processes={},
        absent_hosts=left_out,
    )
    stack_file.remember(tmp_path, last)
    known = {host.port for host in last.known_hosts()}
    assert known.isdisjoint(_ports(tmp_path, "ap-south-1", "ap-south-2"))
    first, back = _ports(tmp_path, "ap-south-1", "us-east-2")
    assert (first in known, back) == (False, left_out[1].port)
