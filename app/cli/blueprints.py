"""`headwater blueprints`: system blueprints."""

from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import rich_click as click

from app.audit.actions import Action
from app.audit.drafts import note
from app.audit.events import change
from app.blueprints import service
from app.blueprints.encodings import text_of
from app.blueprints.records import BlueprintRecord
from app.blueprints.schemas import CreateBlueprint
from app.blueprints.shipped import publish_shipped
from app.cli.installation import store
from app.cli.output import shown
from app.contracts.base import Engine
from app.core.errors import BlueprintInvalid, InvalidField

_File = click.Path(exists=True, dir_okay=False, path_type=Path)


class PublishedBlueprint(msgspec.Struct, kw_only=True):
    uuid: UUID
    name: str
    slug: str
    version: int
    size_bytes: int
    dialects: list[Engine]


@click.group()
def blueprints() -> None:
    """System blueprints: visible to everyone, changed only here."""


@blueprints.command("publish")
@click.argument("file", type=_File)
@click.option("--name", required=True, help="A name that exists gets a new version if its SQL has changed.")
@click.option("--description", help="A sentence about the blueprint.")
@click.option("--variables", "variables_file", type=_File, help="A JSON file with the definitions of its variables.")
@shown
async def publish(file: Path, name: str, description: str | None, variables_file: Path | None) -> PublishedBlueprint:
    """Publish the SQL in FILE as a system blueprint."""
    given = _request(file, name, description, variables_file)
    try:
        async with store(), change(Action.BLUEPRINT_PUBLISH, "blueprint"):
            record = await service.publish(
                given.name, given.sql_content, description=given.description, variables=given.variables
            )
            note(subject=("blueprint", record.uuid))
    except BlueprintInvalid as error:
        raise click.ClickException("\n".join([error.message, *error.errors])) from None
    return _published(record)


@blueprints.command("ship")
@shown
async def ship() -> list[PublishedBlueprint]:
    """Publish the system blueprints that come with Headwater."""
    async with store(), change(Action.BLUEPRINT_PUBLISH, "blueprint"):
        return [_published(record) for record in await publish_shipped()]


def _request(file: Path, name: str, description: str | None, variables_file: Path | None) -> CreateBlueprint:
    """Validated like a client's request. Raises `InvalidField`."""
    fields: dict[str, Any] = {"name": name, "sql_content": text_of(file.read_bytes()), "description": description}
    if variables_file is not None:
        try:
            fields["variables"] = msgspec.json.decode(variables_file.read_bytes())
        except msgspec.DecodeError as fault:
            raise InvalidField("variables", f"{variables_file} is not JSON: {fault}") from None
    try:
        return msgspec.convert(fields, CreateBlueprint)
    except msgspec.ValidationError as fault:
        raise InvalidField("blueprint", f"It can't be published: {fault}") from None


def _published(record: BlueprintRecord) -> PublishedBlueprint:
    return PublishedBlueprint(
        uuid=record.uuid,
        name=record.name,
        slug=record.slug,
        version=record.version,
        size_bytes=record.size_bytes,
        dialects=record.metadata.dialects if record.metadata else [],
    )
