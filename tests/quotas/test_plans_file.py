"""An operator's file of plans: in force everywhere, or refused with its place."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.core.settings import InvalidSettings
from app.quotas.file import load_plans
from app.quotas.plans import DEFAULT_PLANS, Quotas, limits_in_force
from tests.support.in_process import LoneApi, lone_api
from tests.support.service import RunningService

WHOLE = "storage_gb = 1.5\nconnections = 7\nwarning_pct = 60\n"


@pytest.fixture
def written(tmp_path: Path) -> Path:
    return tmp_path / "plans.toml"


def test_what_it_names_takes_the_place_of_the_built_in(written: Path) -> None:
    written.write_text(f"[free]\n{WHOLE}runtime_hours = 20\n[pro]\n{WHOLE}")
    plans = load_plans(written)
    for plan, hours in (("free", 20), ("pro", None)):
        limits = limits_in_force(plans, plan, Quotas())
        assert (limits.storage_hard_limit_gb, limits.connection_hard_limit) == (1.5, 7)
        assert limits.warning_threshold_pct == 60
        assert plans.by_name[plan].runtime_hours == hours
    assert plans.by_name["launch"] == DEFAULT_PLANS.by_name["launch"]
    assert limits_in_force(plans, "free", Quotas(connection_hard_limit=3)).connection_hard_limit == 3


def test_of_a_tier_what_is_left_out_stays(written: Path) -> None:
    written.write_text("[tiers.free]\ndeleted_databases = 9\n")
    plans = load_plans(written)
    assert plans.tiers["free"].deleted_databases == 9
    assert plans.tiers["free"].deleted_storage_gb == DEFAULT_PLANS.tiers["free"].deleted_storage_gb
    assert plans.tiers["pro"] == DEFAULT_PLANS.tiers["pro"]


def test_without_a_file_nothing_changes() -> None:
    assert load_plans(None) == DEFAULT_PLANS


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"[fre]\n{WHOLE}", "[fre]: no such plan; there are free, launch, grow, pro"),
        ("[free]\nstorage_gb = 1\nwarning_pct = 80\n", "[free]: Object missing required field `connections`"),
        (f"[free]\n{WHOLE}conections = 3\n", "[free]: Object contains unknown field `conections`"),
        (f"[free]\n{WHOLE}runtime_hours = 0\n", "at `$.runtime_hours`"),
        (f"[free]\n{WHOLE}runtime_hours = nan\n", "runtime_hours"),
        (f"[free]\n{WHOLE.replace('1.5', 'nan')}", "storage_gb"),
        (f"[free]\n{WHOLE.replace('1.5', '0')}", "at `$.storage_gb`"),
        (f"[free]\n{WHOLE.replace('7', '0')}", "at `$.connections`"),
        (f"[free]\n{WHOLE.replace('7', '7.5')}", "at `$.connections`"),
        (f"[free]\n{WHOLE.replace('60', '101')}", "at `$.warning_pct`"),
        ("[tiers.gold]\n", "[tiers.gold]: no such tier; there are free, pro, enterprise"),
        ("[tiers.free]\nblueprint = 3\n", "[tiers.free]: Object contains unknown field `blueprint`"),
        ("[tiers.free]\ndeleted_databases = -1\n", "at `$.deleted_databases`"),
        ("tiers = 3\n", "[tiers]: Expected a table for each tier"),
        ("free = 1\n", "[free]: Expected `object`"),
        ("[free\n", "line 1"),
    ],
)
def test_what_cannot_be_used_is_named(written: Path, text: str, says: str) -> None:
    written.write_text(text)
    with pytest.raises(InvalidSettings) as refused:
        load_plans(written)
    assert f"HEADWATER_PLANS_FILE: {written}: " in str(refused.value)
    assert says in str(refused.value)


def test_all_faults_are_reported_at_once(written: Path) -> None:
    written.write_text("[free]\n[gold]\n")
    with pytest.raises(InvalidSettings) as refused:
        load_plans(written)
    assert [line.split(": ")[2] for line in str(refused.value).splitlines()] == ["[free]", "[gold]"]


@pytest.fixture
def smaller(written: Path) -> Path:
    written.write_text(f"[free]\n{WHOLE}")
    return written


async def test_the_api_answers_by_it(service: RunningService, smaller: Path) -> None:
    async with service.another_api(PLANS_FILE=str(smaller)) as (http, _):
        caller = await service.caller(tier="free", http=http)
        made = (await caller.create(wait=True)).json()["data"]
        assert (made["limits"]["connection_hard_limit"], made["limits"]["storage_hard_limit_gb"]) == (7, 1.5)


async def test_two_apis_of_one_process_have_their_own(lone: LoneApi, smaller: Path) -> None:
    async with lone_api(lone.control_dsn, plans_file=smaller) as other:
        for api, connections in ((other, 7), (lone, 10), (other, 7)):
            made = (await (await api.caller()).create(plan="free")).json()["data"]
            assert made["limits"]["connection_hard_limit"] == connections


@pytest.mark.parametrize(
    "command", [["app.http"], ["workers", "--queue", "control"], ["app.local"], ["app.cli.main", "databases", "list"]]
)
def test_a_wrong_one_stops_every_process(written: Path, command: list[str]) -> None:
    written.write_text("[gold]\n")
    environ = {"PATH": os.environ["PATH"], "HEADWATER_PLANS_FILE": str(written)}
    argv = [sys.executable, "-m", *command]
    if command[0] == "app.cli.main":
        argv = [sys.executable, "-c", "from app.cli.main import main; main()", *command[1:]]
    ended = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode in (1, 2)
    assert "[gold]: no such plan" in " ".join((ended.stdout + ended.stderr).replace("│", " ").split())
