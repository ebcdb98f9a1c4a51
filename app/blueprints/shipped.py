"""The system blueprints that come with Headwater. All are SQL for both engines."""

from pathlib import Path

import msgspec

from app.blueprints import service
from app.blueprints.records import BlueprintRecord
from app.store.session import transaction

_FOLDER = Path(__file__).parent / "system"


class Shipped(msgspec.Struct, frozen=True):
    """`<file>.sql` holds the SQL, `<file>.json` the variables."""

    file: str
    name: str
    description: str


SHIPPED = (
    Shipped("accounts", "Accounts", "Users, their roles and their sessions."),
    Shipped("audit-log", "Audit log", "Who did what, when, and to what."),
    Shipped("job-queue", "Job queue", "Jobs in a table, taken one by one with SKIP LOCKED."),
)


async def publish_shipped() -> list[BlueprintRecord]:
    """Publishes the shipped blueprints. Those that are published already, with the same content, stay as they are."""
    published = []
    for one in SHIPPED:
        sql = (_FOLDER / f"{one.file}.sql").read_text()
        variables = msgspec.json.decode((_FOLDER / f"{one.file}.json").read_bytes())
        async with transaction():
            published.append(await service.publish(one.name, sql, description=one.description, variables=variables))
    return published
