"""`/api/v1/blueprints` and `/api/v1/blueprint_validations`. Interface specification, section 4.12."""

import asyncio
from typing import Any
from uuid import UUID

import msgspec
from litestar import Controller, Request, Response, delete, get, params, patch, post
from litestar.di import NamedDependency
from litestar.params import FromPath, SkipValidation
from msgspec import UnsetType

from app.audit.events import audited
from app.auth.principal import Principal
from app.auth.scopes import Reach, Scope
from app.blueprints import records, service
from app.blueprints.checking import validated
from app.blueprints.encodings import as_text
from app.blueprints.examples import (
    EXAMPLE_BLUEPRINT,
    EXAMPLE_DELETED_BLUEPRINT,
    EXAMPLE_REQUEST,
    EXAMPLE_SQL,
    EXAMPLE_VALIDATION,
    EXAMPLE_VERSION,
    EXAMPLE_WHOLE_BLUEPRINT,
    EXAMPLE_WHOLE_VERSION,
)
from app.blueprints.large_scripts import LargeScripts
from app.blueprints.schemas import (
    BlueprintVersionView,
    BlueprintView,
    CreateBlueprint,
    DeletedBlueprint,
    UpdateBlueprint,
    ValidateBlueprint,
)
from app.blueprints.validation import Validation
from app.blueprints.views import version_view, view
from app.core.errors import BlueprintInvalid, InvalidField, SystemBlueprint, TeamLimitReached, require_found
from app.hosts.records import offered_extensions
from app.outbox.workflow_starts import Accepted
from app.quotas.plans import Plans
from app.web.admitted import expect_still
from app.web.envelope import Change, Item, Page
from app.web.idempotency import Answer, Idempotency
from app.web.operation import COMPUTES, operation
from app.web.parameters import Limit, StartingAfter, StartingAfterId, cursor_id, cursor_uuid, path_id, path_uuid

Call = Request[Principal, Any, Any]


class BlueprintServices(msgspec.Struct, frozen=True, kw_only=True):
    """What the routes work with."""

    plans: Plans
    idempotency: Idempotency
    scripts: LargeScripts


_VERSION = "version of a blueprint"
Injected = NamedDependency[SkipValidation[BlueprintServices]]
"""The type of a route's parameter `services`. We made it ourselves: there is nothing to validate."""


class BlueprintController(Controller):
    path = "/blueprints"

    @post(
        "",
        **operation(
            "createBlueprint",
            "Save a blueprint",
            action="blueprint.create",
            scopes=(Scope.BLUEPRINTS_WRITE,),
            answers={201: Change[BlueprintView]},
            examples={201: Change(message="Blueprint created.", data=EXAMPLE_BLUEPRINT)},
            errors=(BlueprintInvalid, TeamLimitReached),
            body=CreateBlueprint,
            example=EXAMPLE_REQUEST,
            idempotent=True,
            links=(
                "getBlueprint",
                "listBlueprintVersions",
                "listApplicationsOfBlueprint",
                "updateBlueprint",
                "deleteBlueprint",
            ),
        ),
    )
    async def create(
        self, request: Call, services: Injected, data: params.JSONBody[CreateBlueprint]
    ) -> Response[bytes]:
        async def begin() -> Accepted:
            return await service.create(services.plans, request.user, await as_text(data))

        async def finish(subject: str) -> Answer:
            record = await records.find(UUID(subject))
            assert record is not None, "the subject was written with it"
            return Answer(201, Change(message="Blueprint created.", data=view(record)))

        turn = services.scripts.slot(request.user.team_ids, len(data.sql_content))
        return await services.idempotency.run(request, begin=begin, finish=finish, during_begin=turn)

    @get(
        "",
        **operation(
            "listBlueprints",
            "List blueprints, newest first",
            scopes=(Scope.BLUEPRINTS_READ,),
            reach=Reach.OWN,
            answers={200: Page[BlueprintView]},
            examples={200: Page(data=[EXAMPLE_BLUEPRINT], has_more=False)},
            errors=(InvalidField,),
        ),
    )
    async def list_blueprints(
        self, request: Call, limit: Limit = 25, starting_after: StartingAfter = None
    ) -> Page[BlueprintView]:
        page, has_more = await service.list_page(request.user, starting_after=cursor_uuid(starting_after), limit=limit)
        return Page(data=[view(record) for record in page], has_more=has_more)

    @get(
        "/{uuid:str}",
        **operation(
            "getBlueprint",
            "Get a blueprint, with its SQL",
            scopes=(Scope.BLUEPRINTS_READ,),
            reach=Reach.OWN,
            answers={200: Item[BlueprintView]},
            examples={200: Item(data=EXAMPLE_WHOLE_BLUEPRINT)},
        ),
    )
    async def get_blueprint(self, request: Call, uuid: FromPath[str]) -> Item[BlueprintView]:
        record = await service.get(request.user, path_uuid(uuid, "blueprint"))
        return Item(data=view(record, await records.sql_of(record.id, record.version)))

    @get(
        "/{uuid:str}/versions",
        **operation(
            "listBlueprintVersions",
            "List a blueprint's versions, newest first",
            scopes=(Scope.BLUEPRINTS_READ,),
            reach=Reach.OWN,
            answers={200: Page[BlueprintVersionView]},
            examples={200: Page(data=[EXAMPLE_VERSION], has_more=False)},
            errors=(InvalidField,),
        ),
    )
    async def list_versions(
        self, request: Call, uuid: FromPath[str], limit: Limit = 25, starting_after: StartingAfterId = None
    ) -> Page[BlueprintVersionView]:
        blueprint = await service.get(request.user, path_uuid(uuid, "blueprint"))
        after = cursor_id(starting_after)
        if after is not None and not await _version(blueprint.id, after):
            raise InvalidField("starting_after", "This is not a version of this blueprint.")
        page = await records.list_versions(blueprint.id, after=after, limit=limit + 1)
        views = [version_view(blueprint.uuid, version) for version in page[:limit]]
        return Page(data=views, has_more=len(page) > limit)

    @get(
        "/{uuid:str}/versions/{version:str}",
        **operation(
            "getBlueprintVersion",
            "Get a version of a blueprint, with its SQL",
            scopes=(Scope.BLUEPRINTS_READ,),
            reach=Reach.OWN,
            answers={200: Item[BlueprintVersionView]},
            examples={200: Item(data=EXAMPLE_WHOLE_VERSION)},
        ),
    )
    async def get_version(
        self, request: Call, uuid: FromPath[str], version: FromPath[str]
    ) -> Item[BlueprintVersionView]:
        blueprint = await service.get(request.user, path_uuid(uuid, "blueprint"))
        found = require_found(await _version(blueprint.id, path_id(version, _VERSION)), _VERSION)
        return Item(data=version_view(blueprint.uuid, found, await records.sql_of(blueprint.id, found.version)))

    @patch(
        "/{uuid:str}",
        **operation(
            "updateBlueprint",
            "Change a blueprint",
            action="blueprint.change",
            scopes=(Scope.BLUEPRINTS_WRITE,),
            answers={200: Item[BlueprintView]},
            examples={200: Item(message="Blueprint updated.", data=EXAMPLE_BLUEPRINT)},
            errors=(BlueprintInvalid, SystemBlueprint, TeamLimitReached),
            body=UpdateBlueprint,
            example={"description": "Notes of the team."},
        ),
    )
    async def update(
        self, request: Call, services: Injected, uuid: FromPath[str], data: params.JSONBody[UpdateBlueprint]
    ) -> Item[BlueprintView]:
        blueprint = path_uuid(uuid, "blueprint")
        present = await service.get(request.user, blueprint)
        size = present.size_bytes if isinstance(data.sql_content, UnsetType) else len(data.sql_content)
        async with services.scripts.slot(request.user.team_ids, size), audited():
            await expect_still(request)
            await service.update(services.plans, request.user, blueprint, await as_text(data))
            record = await service.get(request.user, blueprint)
        return Item(message="Blueprint updated.", data=view(record))

    @delete(
        "/{uuid:str}",
        **operation(
            "deleteBlueprint",
            "Delete a blueprint",
            action="blueprint.delete",
            scopes=(Scope.BLUEPRINTS_WRITE,),
            answers={200: Item[DeletedBlueprint]},
            examples={200: Item(message="Blueprint deleted.", data=EXAMPLE_DELETED_BLUEPRINT)},
            errors=(SystemBlueprint,),
        ),
    )
    async def delete_blueprint(self, request: Call, uuid: FromPath[str]) -> Item[DeletedBlueprint]:
        blueprint = path_uuid(uuid, "blueprint")
        async with audited():
            await service.delete(request.user, blueprint)
        return Item(message="Blueprint deleted.", data=DeletedBlueprint(uuid=blueprint))


async def _version(blueprint_id: int, version: int) -> records.VersionRecord | None:
    """One of a blueprint's versions, if there is one of that number."""
    return await records.find_version(blueprint_id, version) if version < 2**31 else None


@post(
    "/blueprint_validations",
    **operation(
        "validateBlueprint",
        "Validate SQL without saving it",
        action=COMPUTES,
        scopes=(Scope.BLUEPRINTS_READ,),
        reach=Reach.OWN,
        answers={200: Item[Validation]},
        examples={200: Item(data=EXAMPLE_VALIDATION)},
        body=ValidateBlueprint,
        example={"sql_content": EXAMPLE_SQL},
    ),
)
async def validate_blueprint(
    request: Call, services: Injected, data: params.JSONBody[ValidateBlueprint]
) -> Item[Validation]:
    provided = await offered_extensions()
    async with services.scripts.slot(request.user.team_ids, len(data.sql_content)):
        given = await as_text(data)
        # In a thread of its own: a megabyte takes the parsers a while, and other requests must not wait for it.
        return Item(data=await asyncio.to_thread(validated, given.sql_content, given.variables, provided))
