"""`headwater backups`: which there are, and taking and proving one beside the running service."""

import pytest

from tests.backups.test_taking import filled, taken
from tests.cli.command import Headwater
from tests.support.client import Caller
from tests.support.service import RunningService


@pytest.fixture
def command(service: RunningService) -> Headwater:
    return Headwater(
        {
            "CONTROL_DSN": service.control_dsn,
            "TEMPORAL_ADDRESS": service.temporal.address,
            "SECRET_KEYS": service.secret_keys,
            "HOME": str(service.folder),
        }
    )


async def test_an_operator_takes_and_proves_one(command: Headwater, caller: Caller) -> None:
    database = await filled(caller, "orders")
    mine = (await taken(caller, database))["data"]
    run = await command.json("backups", "run", database["uuid"], "--description", "by hand", "--wait")
    assert (run["status"], run["description"], run["rows"]) == ("completed", "by hand", 100)
    # On a machine that stalls an attempt may be taken for dead.
    assert run["attempts"] >= 1
    assert run["tool"].startswith("pg_dump")
    listed = await command.json("backups", "list", "--database", database["uuid"])
    assert [one["uuid"] for one in listed] == [run["uuid"], mine["uuid"]]
    assert await command.json("backups", "list", "--team", str(caller.team_id), "--status", "failed") == []
    assert "There is no team nobody." in await command.refusal("backups", "list", "--team", "nobody")
    tested = await command.json("backups", "test", run["uuid"][:13], "--wait")
    assert tested["proof"]["status"] == "proven"
    proven = await command.json("backups", "list", "--proof", "proven", "--team", str(caller.team_id))
    # The other one may have been proven by its schedule.
    assert run["uuid"] in {one["uuid"] for one in proven} <= {run["uuid"], mine["uuid"]}
    assert (await command.json("backups", "show", run["uuid"]))["proof"]["status"] == "proven"
    assert "No such backup" in await command.refusal("backups", "show", "00000000")


async def test_an_operators_backup_is_bound_as_a_teams(headwater: Headwater) -> None:
    for option, value in (("--keep-days", "3651"), ("--description", "n" * 256)):
        said = await headwater.refusal("backups", "run", "orders", option, value)
        assert f"$.{option.removeprefix('--').replace('-', '_')}" in said
