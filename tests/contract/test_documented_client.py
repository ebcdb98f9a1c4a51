"""A client that knows the API from its description alone gets a database's whole life done, without a surprise."""

from uuid import uuid4

from app.auth.keys import KeyControls
from tests.contract.documented import DocumentedClient
from tests.support.service import RunningService


async def test_a_databases_life(service: RunningService) -> None:
    caller = await service.caller()
    client = DocumentedClient(service.http, caller.api_key)
    assert (await client.call("getMe")).status_code == 200
    (offered, *_) = [
        entry for entry in (await client.call("listDatabaseTypes")).json()["data"] if entry["is_available"]
    ]
    body = {"name": "orders", "db_type": offered["value"], "region": offered["regions"][0]["code"]}
    made = await client.call("createDatabase", body, key="k", wait="true", timeout=60)
    assert made.status_code == 201
    replay = await client.call("createDatabase", body, key="k", wait="true", timeout=60)
    assert replay.json()["idempotency_replay"] is True
    uuid = made.json()["data"]["uuid"]
    assert (await client.call("getDatabase", uuid=uuid)).status_code == 200
    assert (await client.call("renameDatabase", {"name": "orders-eu"}, uuid=uuid)).status_code == 200
    assert (await client.call("changeQuotas", {"connection_hard_limit": 5}, uuid=uuid)).status_code == 200
    assert len((await client.call("listDatabases", limit=1)).json()["data"]) == 1
    assert (await client.call("renameDatabase", {"deletion_protection": True}, uuid=uuid)).status_code == 200
    assert (await client.call("deleteDatabase", uuid=uuid)).status_code == 409
    end = {"deletion_protection": False, "expires_at": "2030-01-01T00:00:00+01:00"}
    assert (await client.call("renameDatabase", end, uuid=uuid)).status_code == 200
    assert (await client.call("undeleteDatabase", uuid=uuid)).status_code == 409
    assert (await client.call("deleteDatabase", uuid=uuid)).status_code == 200
    assert (await client.call("deleteDatabase", uuid=uuid)).status_code == 404
    assert len((await client.call("listDeletedDatabases", limit=1)).json()["data"]) == 1
    assert (await client.call("undeleteDatabase", uuid=uuid)).status_code == 200
    assert (await client.call("undeleteDatabase", uuid=str(uuid4()))).status_code == 404


async def test_the_life_of_credentials(service: RunningService) -> None:
    caller = await service.caller()
    client = DocumentedClient(service.http, caller.api_key)
    made = (await client.call("createDatabase", {"name": "orders"}, wait="true", timeout=60)).json()["data"]
    uuid = made["uuid"]
    rotated = await client.call("rotateCredentials", {"overlap_seconds": 3600}, uuid=uuid, key="k")
    assert rotated.status_code == 200
    again = await client.call("rotateCredentials", {"overlap_seconds": 3600}, uuid=uuid, key="k")
    assert again.json()["data"] == rotated.json()["data"]
    assert (await client.call("rotateCredentials", {}, uuid=uuid)).status_code == 409
    rotation = rotated.json()["data"]["uuid"]
    assert (await client.call("getCredentialRotation", uuid=rotation)).json()["data"]["status"] == "overlapping"
    assert len((await client.call("listCredentialRotations", uuid=uuid, limit=1)).json()["data"]) == 1
    assert (await client.call("completeCredentialRotation", uuid=rotation)).json()["data"]["status"] == "completed"
    body = {"name": "reporting", "access": "read_only"}
    assert (await client.call("createDatabaseUser", body, uuid=uuid)).status_code == 201
    assert (await client.call("createDatabaseUser", body, uuid=uuid)).status_code == 409
    too_many = {"name": "app", "access": "read_write", "connection_limit": 10}
    assert (await client.call("createDatabaseUser", too_many, uuid=uuid)).status_code == 422
    assert len((await client.call("listDatabaseUsers", uuid=uuid, limit=1)).json()["data"]) == 1
    assert len((await client.call("listCredentials", uuid=uuid)).json()["data"]) == 3
    fresh = await client.call("rotateDatabaseUser", {"end_sessions": True}, uuid=uuid, name="reporting", key="r")
    assert fresh.json()["data"]["db_password"]
    again = await client.call("rotateDatabaseUser", {"end_sessions": True}, uuid=uuid, name="reporting", key="r")
    assert again.json()["data"] == fresh.json()["data"]
    assert (await client.call("rotateDatabaseUser", {}, uuid=uuid, name="nobody")).status_code == 404
    assert (await client.call("deleteDatabaseUser", uuid=uuid, name="reporting")).status_code == 200
    assert (await client.call("deleteDatabaseUser", uuid=uuid, name="reporting")).status_code == 404


async def test_a_blueprints_life(service: RunningService) -> None:
    caller = await service.caller()
    client = DocumentedClient(service.http, caller.api_key)
    sql = {"sql_content": "CREATE TABLE {{table}} (id integer)", "variables": {"table": {"type": "identifier"}}}
    assert (await client.call("validateBlueprint", {"sql_content": "SELEC"})).json()["data"]["valid"] is False
    saved = (await client.call("createBlueprint", {"name": "Notes", **sql})).json()["data"]["uuid"]
    new = {"name": "orders", "blueprint_uuid": saved, "blueprint_variables": {"table": "a"}}
    made = (await client.call("createDatabase", new, wait="true", timeout=60)).json()
    assert made["blueprint_application"]["status"] == "completed"
    for number, (dry_run, status) in enumerate(((True, "rolled_back"), (False, "completed"), (False, "failed"))):
        body = {"blueprint_uuid": saved, "variables": {"table": "b"}, "dry_run": dry_run, "timeout": 60}
        answer = await client.call("applyBlueprint", body, uuid=made["data"]["uuid"])
        assert (number, answer.json()["data"]["status"]) == (number, status)
        shown = await client.call("getBlueprintApplication", id=answer.json()["data"]["id"])
        assert shown.json()["data"]["execution_log"] == answer.json()["data"]["execution_log"]
    later = await client.call("applyBlueprint", {**body, "wait": False}, uuid=made["data"]["uuid"])
    assert later.status_code == 202
    assert (await client.call("applyBlueprint", {**body, "timeout": 0}, uuid=made["data"]["uuid"])).status_code == 422
    assert (await client.call("updateBlueprint", {"description": "Short ones."}, uuid=saved)).status_code == 200
    assert (await client.call("updateBlueprint", {"sql_content": "SELEC"}, uuid=saved)).status_code == 422
    assert (await client.call("getBlueprint", uuid=saved)).json()["data"]["description"] == "Short ones."
    assert len((await client.call("listBlueprints", limit=1)).json()["data"]) == 1
    assert (await client.call("deleteBlueprint", uuid=saved)).status_code == 200
    assert (await client.call("deleteBlueprint", uuid=saved)).status_code == 404


async def test_a_webhook_endpoints_life(service: RunningService) -> None:
    client = DocumentedClient(service.http, (await service.caller()).api_key)
    body = {"url": "https://192.0.2.1.example.com/", "events": ["database.deleted"]}
    made = await client.call("createWebhookEndpoint", body, key="k")
    assert made.status_code == 201
    assert (await client.call("createWebhookEndpoint", body, key="k")).json()["idempotency_replay"] is True
    endpoint = made.json()["data"]["id"]
    assert len((await client.call("listWebhookEndpoints", limit=1)).json()["data"]) == 1
    assert (await client.call("rotateWebhookSecret", id=endpoint)).status_code == 201
    pinged = await client.call("testWebhookEndpoint", id=endpoint)
    assert (pinged.status_code, pinged.json()["data"]["status"]) == (200, "failed")
    delivery = pinged.json()["data"]["id"]
    (listed,) = (await client.call("listWebhookDeliveries", id=endpoint)).json()["data"]
    assert listed["id"] == delivery
    shown = await client.call("getWebhookDelivery", id=endpoint, delivery_id=delivery)
    assert len(shown.json()["data"]["attempts"]) == 1
    assert (await client.call("retryWebhookDelivery", id=endpoint, delivery_id=delivery)).status_code == 202
    assert (await client.call("revokeWebhookEndpoint", id=endpoint)).status_code == 200
    refused = [
        await client.call("revokeWebhookEndpoint", id=endpoint),
        await client.call("testWebhookEndpoint", id=endpoint),
        await client.call("rotateWebhookSecret", id=endpoint),
        await client.call("retryWebhookDelivery", id=endpoint, delivery_id=delivery),
        await client.call("getWebhookDelivery", id=endpoint, delivery_id=delivery + 10**9),
        await client.call("createWebhookEndpoint", {"url": "https://10.0.0.1/"}),
        await client.call("listWebhookDeliveries", id=endpoint, starting_after=10**9),
    ]
    assert [answer.status_code for answer in refused] == [404, 404, 404, 404, 404, 422, 422]


async def test_its_refusals(service: RunningService) -> None:
    caller = await service.caller(tier="free")
    client = DocumentedClient(service.http, caller.api_key)
    nowhere = str(uuid4())
    made = (await client.call("createDatabase", {"name": "a"}, key="k")).json()["data"]["uuid"]
    answers = [
        (await client.call("changeQuotas", {"connection_hard_limit": 11}, uuid=made), 422),
        (await client.call("createDatabase", {}), 422),
        (await client.call("createDatabase", {"name": "a", "plan": "pro"}), 422),
        (await client.call("createDatabase", {"name": "a"}, key="k"), 202),
        (await client.call("createDatabase", {"name": "b"}, key="k"), 409),
        (await client.call("createDatabase", {"name": "b"}), 422),
        (await client.call("listDatabases", starting_after=nowhere), 422),
        (await client.call("listDatabases", limit=101), 422),
        (await client.call("getDatabase", uuid=nowhere), 404),
        (await client.call("renameDatabase", {"name": "b"}, uuid=nowhere), 404),
        (await client.call("renameDatabase", [], uuid=nowhere), 422),
        (await client.call("changeQuotas", {}, uuid=nowhere), 404),
        (await client.call("deleteDatabase", "a body that is not asked for", uuid=nowhere), 404),
        (await client.call("renameDatabase", {"name": "x" * 1024 * 1024}, uuid=nowhere), 413),
        (await DocumentedClient(service.http, "pk_live_unknown").call("getMe"), 403),
        (await DocumentedClient(service.http, "two tokens").call("getMe"), 401),
    ]
    assert [answer.status_code for answer, _ in answers] == [expected for _, expected in answers]


async def test_its_limits(service: RunningService) -> None:
    hurried = await service.caller(controls=KeyControls(requests_per_minute=1))
    spent = await service.caller(controls=KeyControls(monthly_quota=1))
    elsewhere = await service.caller(controls=KeyControls(allowed_ips=("192.0.2.1",)))
    narrow = await service.caller(scopes=("queries:write",))
    for caller in (hurried, spent):
        client = DocumentedClient(service.http, caller.api_key)
        assert [(await client.call("getMe")).status_code for _ in range(2)] == [200, 429]
    for caller in (elsewhere, narrow):
        assert (await DocumentedClient(service.http, caller.api_key).call("listDatabases")).status_code == 403
