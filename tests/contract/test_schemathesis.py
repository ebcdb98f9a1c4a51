"""Every check of schemathesis over every operation, with two users: examples, coverage, fuzzing, sequences."""

import asyncio
import json
import os
import re
import sys
from pathlib import Path

import pytest

from app.http.app import describe
from tests.contract.documented import Description
from tests.contract.fuzzing_hooks import OWN_KEYS, OWN_TEAMS
from tests.support.client import OPERATOR_TOO, Caller
from tests.support.service import RunningService

DESCRIPTION = Description(describe())
_ROOT = Path(__file__).parents[2]


async def fuzz(service: RunningService, folder: Path, *, examples: int) -> str:
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


def covered(report: str) -> None:
    """That nothing was left out: all operations, all phases, and the described links with them."""
    assert re.search(rf"Tested: {len(DESCRIPTION.operations)}$", report, re.MULTILINE), report
    for phase in ("Examples", "Coverage", "Fuzzing", "Stateful"):
        assert re.search(rf"✅ {phase}", report), report
    links = re.search(r"API Links: +(\d+) covered", report)
    assert links, report
    assert int(links[1]) >= 4, report


async def test_a_short_run(service: RunningService, tmp_path: Path) -> None:
    covered(await fuzz(service, tmp_path, examples=6))


@pytest.mark.soak
async def test_a_long_run(service: RunningService, tmp_path: Path) -> None:
    report = await fuzz(service, tmp_path, examples=200)
    covered(report)
