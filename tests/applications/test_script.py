"""A script's statements: where it stops, and what its log says."""

from typing import cast

import pytest

from app.blueprints.applications.journal import Journal
from app.blueprints.applications.log import Log
from app.blueprints.applications.schemas import StatementStatus
from app.blueprints.applications.script import run_all
from app.blueprints.hiding import Secrets
from app.blueprints.preparation import prepare, secrets_of
from app.contracts.base import Engine
from app.engines.errors import MAX_MESSAGE, StatementFailed, StatementUncertain
from app.engines.scripts import ScriptSession
from tests.support.together import together

STATEMENTS = prepare("CREATE TABLE a (n integer);\nDO SLEEP(1000);\nDROP TABLE a;", Engine.MYSQL, {}, {})


class Scripted(ScriptSession):
    """Fails at the second statement."""

    def __init__(self, failure: Exception) -> None:
        self._failure = failure

    async def begin(self) -> str:
        return "session"

    async def run(self, statement: str, seconds: float) -> int | None:
        if statement.startswith("DO"):
            raise self._failure
        return 0

    async def commit(self) -> None: ...

    async def roll_back(self, *, checked: bool) -> None: ...


def new_log() -> Log:
    """Of which nothing is written."""
    return Log(cast(Journal, None), STATEMENTS, lambda message: message.replace("hush", "***"))


def statuses(log: Log) -> list[str]:
    return [entry.status.value for entry in log.entries]


async def test_it_stops_at_the_first_failure() -> None:
    log = new_log()
    fault = await run_all(Scripted(StatementFailed("hush\0", code="1064")), STATEMENTS, log)
    assert fault is not None
    assert fault.message_with_line(log) == "Statement 2 (line 2) failed: ***\ufffd [1064]"
    assert statuses(log) == ["succeeded", "failed", "pending"]


async def test_a_statement_in_doubt() -> None:
    """In the database it is told as such; on a copy, which goes, it is a failure like any other."""
    log = new_log()
    with pytest.raises(StatementUncertain):
        await run_all(Scripted(StatementUncertain("it took too long")), STATEMENTS, log)
    assert log.entries[1].status is StatementStatus.RUNNING
    log = new_log()
    fault = await run_all(Scripted(StatementUncertain("it took too long")), STATEMENTS, log, on_copy=True)
    assert fault is not None
    assert "Statement 2 (line 2) failed: it took too long" in fault.message_with_line(log)


async def test_want_of_data_is_no_failure_on_a_copy() -> None:
    wanting = Scripted(StatementFailed("no such row", code="1452", wants_data=True))
    log = new_log()
    assert await run_all(wanting, STATEMENTS, log, on_copy=True) is None
    assert statuses(log) == ["succeeded", "unknown", "succeeded"]
    log = new_log()
    assert await run_all(wanting, STATEMENTS, log) is not None


def test_of_a_long_message_little_is_searched_for_secrets() -> None:
    searched: list[int] = []

    def counting(message: str) -> str:
        searched.append(len(message))
        return message

    shown = Log(cast(Journal, None), STATEMENTS, counting).shown_text("x" * 15_000_000)

    assert len(shown) == MAX_MESSAGE + 1
    assert sum(searched) <= 3 * MAX_MESSAGE


@together("secret", ["Tuesday", "pa'ss\\wo'rd-71d0c5e1", "Battery-" * 300, "".join(f"{n:06}" for n in range(4000))])
def test_of_a_secret_that_is_cut_in_two_nothing_is_shown(secret: str) -> None:
    """Masks are short, so what is shown may reach to where the search ended."""
    definitions = {"a": {"type": "string", "secret": True}}
    log = Log(cast(Journal, None), STATEMENTS, secrets_of(definitions, {"a": secret}).hide)
    again_and_again = f"{secret}, " * (10 * MAX_MESSAGE // len(secret) + 10)
    for before in range(40):
        shown = log.shown_text("." * before + again_and_again)
        assert shown.endswith("…")
        assert not set(shown) - set(".*, …"), shown[-200:]


def test_what_is_left_of_a_secret_before_the_border_is_masked() -> None:
    secrets = Secrets(["Correct-Horse-Battery-Staple"])
    for length in range(1, 60):
        message = "." * (2 * MAX_MESSAGE - length) + "Correct-Horse-Battery-Staple-" * 10
        log = Log(cast(Journal, None), STATEMENTS, lambda text: secrets.hide(text.lstrip(".")))
        assert not set(log.shown_text(message)) - set("*…")
