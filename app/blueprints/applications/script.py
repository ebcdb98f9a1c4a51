"""The statements of one script, one after the other."""

import time
from collections.abc import Sequence

import msgspec

from app.blueprints.applications.log import Log
from app.blueprints.preparation import PreparedStatement
from app.contracts.applications import SCRIPT_SECONDS
from app.engines.errors import StatementFailed, StatementUncertain
from app.engines.scripts import ScriptSession

STATEMENT_SECONDS = 300.0
"""How long one statement may take."""


class ExecutionFault(msgspec.Struct, frozen=True, kw_only=True):
    """Where a script stopped. `position` is None when it was none of its statements."""

    position: int | None
    message: str
    code: str | None

    def message_with_line(self, log: Log) -> str:
        code = f" [{self.code}]" if self.code else ""
        if self.position is None:
            return f"The end of the script failed: {self.message}{code}"
        entry = log.entries[self.position]
        return f"Statement {entry.index} (line {entry.line}) failed: {self.message}{code}"


async def run_all(
    session: ScriptSession,
    statements: Sequence[PreparedStatement],
    log: Log,
    *,
    durable: bool = False,
    on_copy: bool = False,
) -> ExecutionFault | None:
    """Runs the statements and returns the first failure, after which nothing more is run. With `durable`, each
    statement is written down before it is started; `on_copy`, one that fails for want of data is no failure. Raises
    `HostUnavailable`, and `StatementUncertain` unless `on_copy`."""
    deadline = time.monotonic() + SCRIPT_SECONDS
    for position, statement in enumerate(statements):
        if statement.left_out is not None:
            continue
        log.begin(position)
        if durable:
            await log.flush()
        began = time.monotonic()
        try:
            if began >= deadline:
                raise StatementFailed(f"all statements together may take {SCRIPT_SECONDS:.0f} s, and these are over")
            seconds = min(STATEMENT_SECONDS, deadline - began)
            rows = await (_run_on_copy if on_copy else _run)(session, statement.text, seconds)
        except StatementFailed as error:
            message = log.fail(position, error, _since(began), at_line=_line(statement, error))
            if not (on_copy and error.wants_data):
                return ExecutionFault(position=position, message=message, code=error.code)
            log.doubt(position)
            continue
        log.succeed(position, rows, _since(began))
    if durable:
        await log.flush()
    return None


async def _run(session: ScriptSession, statement: str, seconds: float) -> int | None:
    return await session.run(statement, seconds)


async def _run_on_copy(session: ScriptSession, statement: str, seconds: float) -> int | None:
    """Runs a statement on the copy. What is in doubt there goes with the copy, so it is a failure like any other."""
    try:
        return await session.run(statement, seconds)
    except StatementUncertain as error:
        raise StatementFailed(str(error)) from error


def _since(began: float) -> int:
    return round(1000 * (time.monotonic() - began))


def _line(statement: PreparedStatement, error: StatementFailed) -> int | None:
    """The script's line that has the fault, if it is another one than the statement's first."""
    if error.position is None:
        return None
    below = statement.text.count("\n", 0, error.position)
    return statement.line + below if below else None
