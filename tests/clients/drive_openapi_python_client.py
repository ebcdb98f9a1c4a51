"""A database's life through the client that openapi-python-client generates. Prints what each answer said."""

import json
import os
from typing import Any
from uuid import UUID, uuid4

# Generated beside a copy of this file; what is wrong in it, the run shows.
from openapi_python import AuthenticatedClient
from openapi_python.api.databases import (
    change_quotas,
    create_database,
    delete_database,
    get_database,
    rename_database,
    undelete_database,
)
from openapi_python.api.deleted_databases import list_deleted_databases
from openapi_python.models import ChangeDatabase, ChangeQuotas, CreateDatabase


def main() -> None:
    client = AuthenticatedClient(base_url=os.environ["API_URL"], token=os.environ["API_KEY"], timeout=90)

    def change() -> dict[str, Any]:
        return {"client": client, "idempotency_key": str(uuid4())}

    created = create_database.sync(**change(), body=CreateDatabase(name="orders"), wait=True, timeout=60)
    uuid: UUID = created.data.uuid
    got = get_database.sync(uuid, client=client)
    renamed = rename_database.sync(uuid, **change(), body=ChangeDatabase(name="orders-eu"))
    limited = change_quotas.sync(uuid, **change(), body=ChangeQuotas(connection_hard_limit=5))
    deleted = delete_database.sync(uuid, **change())
    gone = get_database.sync(uuid, client=client)
    kept = list_deleted_databases.sync(client=client)
    back = undelete_database.sync(uuid, **change())
    answers = {
        "created": created.data.status.value,
        "got": got.data.connection_string,
        "renamed": renamed.data.name,
        "limited": limited.data.limits.connection_hard_limit,
        "deleted": deleted.data.deleted,
        "gone": gone.error.code,
        "kept": [one.name for one in kept.data],
        "back": back.data.status.value,
    }
    print(json.dumps(answers))  # noqa: T201 - what the test reads


if __name__ == "__main__":
    main()
