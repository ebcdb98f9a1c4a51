"""Every check of schemathesis over every operation, with two users: examples, coverage, fuzzing, sequences."""

import asyncio
import json
import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.contract.documented import IS_SHORT, OWN_KEYS, OWN_TEAMS, Description
from tests.support.client import OPERATOR_TOO, Caller
from tests.support.routes import describe
from tests.support.service import RunningService

DESCRIPTION = Description(describe())
_ROOT = Path(__file__).parents[2]


async def fuzz(service: RunningService, folder: Path, *, examples: int, is_short: bool) -> str:
    """The report of one run. Fails with it when a check fails or warns."""
    users = {"owner": await service.caller(scopes=OPERATOR_TOO), "stranger": await service.caller()}
    keys, own = folder / "keys.json", [str(caller.key_id) for caller in users.values()]
    teams = [str(caller.team_id) for caller in users.values()]
    keys.write_text(json.dumps({"auth": [_user(name, caller) for name, caller in users.items()]}))
    process = await asyncio.create_subprocess_exec(
        *(str(Path(sys.executable).parent / "st"), "run", str(service.http.base_url.join("/openapi.json"))),
        *(
            "--auth-wfc",
            str(keys),
            "--max-examples",
            str(examples),
            "--checks",
            "all",
            # What is ended here stays, as its status says: revoked keys, deleted backups, databases that can come back.
            "--exclude-checks",
            "use_after_free",
            "--suppress-health-check",
            "all",
        ),
        cwd=_ROOT,
        env={
            **os.environ,
            "NO_COLOR": "1",
            "PYTHONPATH": str(_ROOT),
            OWN_KEYS: ",".join(own),
            OWN_TEAMS: ",".join(teams),
            **({IS_SHORT: "1"} if is_short else {}),
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    report = output.decode()
    assert process.returncode == 0, report
    return report


def _user(name: str, caller: Caller) -> dict[str, object]:
    return {"name": name, "fixedHeaders": [{"name": "Authorization", "value": f"Bearer {caller.api_key}"}]}


def depends_on_the_state(operation: dict[str, Any]) -> bool:
    """Whether it may refuse as 422 what its schema allows, by its description: a cursor, or an error of its own."""
    content = operation["responses"].get("422", {}).get("content", {})
    errors = {error for one in content.values() for error in one.get("examples", {})}
    cursor = any(parameter["name"] == "starting_after" for parameter in operation.get("parameters", []))
    return bool(errors - {"invalid_field", "missing_required_field"}) or (cursor and bool(content))


def test_all_that_may_be_refused_by_the_state_of_affairs_is_known() -> None:
    """A run would find the others by chance only."""
    settings = tomllib.loads((_ROOT / "schemathesis.toml").read_text())
    known = {
        id
        for part in settings["operations"]
        if 422 in part.get("checks", {}).get("positive_data_acceptance", {}).get("expected-statuses", [])
        for id in part["include-operation-id"]
    }
    refusing = {id for id, one in DESCRIPTION.operations.items() if depends_on_the_state(one.operation)}
    assert refusing - known == set(), "schemathesis.toml has to name them"
    assert known <= DESCRIPTION.operations.keys()


def covered(report: str, *, links: int) -> None:
    """That nothing was left out: all operations, all phases, and at least so many of the described links."""
    assert re.search(rf"Tested: {len(DESCRIPTION.operations)}$", report, re.MULTILINE), report
    for phase in ("Examples", "Coverage", "Fuzzing", "Stateful"):
        assert re.search(rf"✅ {phase}", report), report
    followed = re.search(r"API Links: +(\d+) covered", report)
    assert followed, report
    assert int(followed[1]) >= links, report


async def test_a_short_run(service: RunningService, tmp_path: Path) -> None:
    # A few sequences out of hundreds of links: which ones changes with every operation that is added.
    covered(await fuzz(service, tmp_path, examples=3, is_short=True), links=1)


@pytest.mark.soak
async def test_a_long_run(service: RunningService, tmp_path: Path) -> None:
    covered(await fuzz(service, tmp_path, examples=200, is_short=False), links=4)
