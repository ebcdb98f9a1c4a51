"""What clients request of applications. Every function that changes something belongs in the request's transaction."""

from typing import Any
from uuid import UUID

import msgspec

from app.auth.principal import Principal
from app.blueprints import records as blueprints
from app.blueprints.applications import records
from app.blueprints.applications.operation import accept_application
from app.blueprints.applications.queue import start_next
from app.blueprints.applications.records import ApplicationRecord, values_place
from app.blueprints.applications.schemas import ApplyToDatabase, Values
from app.blueprints.checking import check_no_values, check_size, prepared, secret_names
from app.blueprints.records import BlueprintRecord, encoded
from app.contracts.base import DatabaseStatus, Engine
from app.core.errors import DatabaseNotActive, InvalidField, TooManyUnderWay, require_found
from app.core.secrets import SecretBox
from app.databases import records as databases
from app.databases.records import DatabaseRecord
from app.outbox.workflow_starts import Accepted
from app.quotas.bounds import Bound, check_bound
from app.quotas.plans import Plans
from app.store.session import execute, fetch_scalar

MASK = "********"
UNDER_WAY = Bound(
    resource="blueprint_applications",
    counted="SELECT count(*) FROM blueprint_applications a JOIN databases d ON d.id = a.database_id"
    " WHERE d.team_id = $1 AND a.completed_at IS NULL",
    refusal=TooManyUnderWay,
)


class PlannedApplication(msgspec.Struct, frozen=True, kw_only=True):
    """A blueprint that is known to work out with these values."""

    blueprint: BlueprintRecord
    values: Values
    statements: int


async def plan(blueprint: BlueprintRecord, engine: Engine, values: Values | None, *, field: str) -> PlannedApplication:
    """Checks that a blueprint works out with these values. Raises `InvalidField`: naming `blueprint_uuid` when the
    blueprint isn't SQL for that engine, `field` when the values are too large, or the variable beneath `field`."""
    metadata = blueprint.metadata
    assert metadata is not None, "it was validated when it was saved"
    dialects = [dialect.value for dialect in metadata.dialects]
    if engine.value not in dialects:
        raise InvalidField(
            "blueprint_uuid",
            f"This blueprint is SQL for {' and '.join(dialects)}; the database's engine is {engine.value}.",
        )
    values = values or {}
    if not blueprint.variables:
        # Nothing can make it another script than the one that was validated.
        check_no_values(values, field=field)
        return PlannedApplication(
            blueprint=blueprint,
            values=values,
            statements=metadata.statement_count - metadata.statements_left_out,
        )
    check_size(values, field=field)
    sql = await blueprints.sql_of(blueprint.id, blueprint.version)
    statements = await prepared(sql, engine, blueprint.variables, values, field=field)
    to_run = [statement for statement in statements if statement.left_out is None]
    return PlannedApplication(blueprint=blueprint, values=values, statements=len(to_run))


async def plan_at_creation(
    principal: Principal, blueprint: UUID, engine: Engine, values: Values | None
) -> PlannedApplication:
    """The same for a database that is to be made. Raises `InvalidField`."""
    record = await blueprints.find_visible(blueprint, principal.readable_teams, lock="FOR KEY SHARE")
    if record is None:
        raise InvalidField("blueprint_uuid", "This is not the uuid of a blueprint that you can see.")
    return await plan(record, engine, values, field="blueprint_variables")


async def apply(
    plans: Plans, box: SecretBox, principal: Principal, database: UUID, request: ApplyToDatabase
) -> Accepted:
    """Raises `NotFound`, `DatabaseNotActive`, `InvalidField` or `TooManyUnderWay`."""
    found = await databases.get_owned(database, principal.team_ids)
    target = await databases.lock_with_team(found)
    teams = principal.readable_teams
    visible = await blueprints.find_visible(request.blueprint_uuid, teams, lock="FOR KEY SHARE")
    blueprint = require_found(visible, "blueprint")
    if target.status is not DatabaseStatus.ACTIVE:
        raise DatabaseNotActive(target.status.value)
    planned = await plan(blueprint, target.engine, request.variables, field="variables")
    assert target.team_id is not None, "it is a team's"
    await check_bound(plans, UNDER_WAY, target.team_id)
    application = await add(box, principal, target, planned, dry_run=request.dry_run)
    return Accepted(subject=str(application), start=await start_next(target.id))


async def add(
    box: SecretBox,
    principal: Principal,
    database: DatabaseRecord,
    planned: PlannedApplication,
    *,
    dry_run: bool = False,
    at_creation: bool = False,
) -> int:
    """Writes a pending application; its turn comes with `start_next`. `check_bound(UNDER_WAY, …)` comes first, in the
    same transaction."""
    application = await fetch_scalar(
        int,
        """
        INSERT INTO blueprint_applications (blueprint_id, blueprint_version, database_id, requested_by_id, status,
                                            is_dry_run, at_creation, definitions, shown_values, statements_total)
        VALUES ($1, $2, $3, $4, 'pending', $5, $6, $7::jsonb, $8::jsonb, $9) RETURNING id
        """,
        planned.blueprint.id,
        planned.blueprint.version,
        database.id,
        principal.user_id,
        dry_run,
        at_creation,
        planned.blueprint.variables_json,
        encoded(_shown(planned.blueprint.variables, planned.values)),
        planned.statements,
    )
    await execute(
        "UPDATE blueprint_applications SET values_sealed = $2 WHERE id = $1",
        application,
        box.seal(msgspec.json.encode(planned.values).decode(), values_place(application)),
    )
    await accept_application(database, application, dry_run=dry_run)
    return application


async def list_of(
    principal: Principal, database: UUID, *, starting_after: int | None, limit: int
) -> tuple[list[ApplicationRecord], bool]:
    """A page of the applications to a database, newest first, and whether more follows. Raises `NotFound`, and
    `InvalidField` for a cursor that is none of them: of one that ended long ago nothing is known any more."""
    record = await databases.get_owned(database, principal.team_ids)
    if starting_after is not None and not await records.is_of_database(starting_after, record.id):
        raise InvalidField("starting_after", "This is not the id of an application to this database.")
    page = await records.list_of_database(record.id, after=starting_after, limit=limit + 1)
    return page[:limit], len(page) > limit


async def list_of_blueprint(
    principal: Principal, blueprint: UUID, *, starting_after: int | None, limit: int
) -> tuple[list[ApplicationRecord], bool]:
    """A page of the applications of a blueprint to the caller's databases, newest first, and whether more follows.
    Raises as `list_of` does."""
    teams, reach = principal.readable_teams, principal.databases
    record = require_found(await blueprints.find_visible(blueprint, teams), "blueprint")
    if starting_after is not None and not await records.is_of_blueprint(starting_after, record.id, teams, reach):
        raise InvalidField("starting_after", "This is not the id of an application of this blueprint.")
    page = await records.list_of_blueprint(record, teams, reach, after=starting_after, limit=limit + 1)
    return page[:limit], len(page) > limit


async def get(principal: Principal, application: int) -> ApplicationRecord:
    """Raises `NotFound`."""
    found = require_found(await records.find_owned(application, principal.team_ids), "blueprint application")
    principal.check_reach(found.database, "blueprint application")
    return found


async def get_any(application: int) -> ApplicationRecord:
    """The application, of any team. Raises `NotFound` when there never was one, or it ended long ago."""
    return require_found(await records.find(application), "blueprint application")


def _shown(definitions: dict[str, Any] | None, values: Values) -> Values | None:
    secret = secret_names(definitions)
    return {name: MASK if name in secret else value for name, value in values.items()} or None
