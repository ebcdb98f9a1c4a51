"""Trying a script on a throw-away copy of the schema, where a server can't take statements back.

The copy is a tenant of its own, as closed in as any. Its name is written down before it is made, so that whoever comes
after a crash removes it.
"""

import contextlib
from collections.abc import Sequence

import msgspec

from app.blueprints.applications.journal import Journal
from app.blueprints.applications.log import Log
from app.blueprints.applications.records import ApplicationRecord
from app.blueprints.applications.script import STATEMENT_SECONDS, ExecutionFault, run_all
from app.blueprints.preparation import PreparedStatement
from app.core.ids import engine_name, engine_password, scratch_marker
from app.engines.base import EngineAdapter, EngineError, EngineLimits, LoginRefused, NameTaken, Tenant
from app.engines.errors import shortened

_LIMITS = EngineLimits(connections=3)
_MAX_FAULT = 300
"""Characters of what is shown about one object that couldn't be copied."""


class Rehearsal(msgspec.Struct, frozen=True, kw_only=True):
    fault: ExecutionFault | None
    left_out: list[str]
    """What of the schema couldn't be copied, as it may be shown: a few objects by name, and how many more."""


async def rehearse(
    adapter: EngineAdapter,
    journal: Journal,
    record: ApplicationRecord,
    tenant: Tenant,
    statements: Sequence[PreparedStatement],
    log: Log,
) -> Rehearsal:
    """Runs the statements on a copy. Leaves no copy behind, unless the script's session is lost, or the host with
    it."""
    scratch = Tenant(name=engine_name(), password=engine_password(), marker=scratch_marker(record.id))
    await journal.note_scratch(scratch.name)
    try:
        await adapter.create(scratch, _LIMITS)
        left_out = await adapter.copy_schema(tenant, scratch)
    except LoginRefused:
        await _remove(adapter, journal, scratch)
        raise
    except EngineError:
        # The host may lack room for hours, which is no loss of the script's.
        with contextlib.suppress(EngineError):
            await _remove(adapter, journal, scratch)
        raise
    hide = log.hide
    log.hide = lambda message: hide(message).replace(scratch.name, tenant.name)
    async with adapter.script_session(scratch, STATEMENT_SECONDS) as session:
        await session.begin()
        fault = await run_all(session, statements, log, on_copy=True)
    await _remove(adapter, journal, scratch)
    return Rehearsal(fault=fault, left_out=[shortened(log.shown_text(said), _MAX_FAULT) for said in left_out])


async def remove_scratch(adapter: EngineAdapter, journal: Journal, record: ApplicationRecord) -> ApplicationRecord:
    """Removes the copy that an attempt has left, and returns the record without it. That attempt counts as lost,
    whatever has ended it: the script may end each attempt, in a way that nobody has thought of."""
    if record.scratch_name is None:
        return record
    await _destroy(adapter, Tenant(name=record.scratch_name, password="", marker=scratch_marker(record.id)))
    await journal.note_left_scratch()
    return msgspec.structs.replace(record, scratch_name=None, losses=record.losses + 1)


async def _remove(adapter: EngineAdapter, journal: Journal, scratch: Tenant) -> None:
    await _destroy(adapter, scratch)
    await journal.note_scratch(None)


async def _destroy(adapter: EngineAdapter, scratch: Tenant) -> None:
    with contextlib.suppress(NameTaken):  # a stranger's, so nothing of ours was ever made under it
        await adapter.destroy(scratch)
