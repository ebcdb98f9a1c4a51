"""Blueprints and their applications beside the model."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.model.expected import Blueprint, Database, Refusal, User
from tests.model.steps import PLACES
from tests.model.webhooks import WebhookSteps

SCRIPTS = st.sampled_from(
    [
        "CREATE TABLE IF NOT EXISTS notes (id integer PRIMARY KEY, body text);",
        "CREATE TABLE IF NOT EXISTS tags (name varchar(40) NOT NULL);\nDELETE FROM tags WHERE name = 'é';",
        "-- nothing but a comment beside it\nCREATE TABLE IF NOT EXISTS counters (n bigint)",
    ]
)
"""Each may be applied to either engine, and again."""
INVALID = st.sampled_from(
    ["CREATE TABEL notes (id integer)", "BEGIN; COMMIT;", "DROP DATABASE postgres;", "-- nothing at all"]
)
TITLES = st.sampled_from(["Notes", "Notes and tags", "Zähler"])


class BlueprintSteps(WebhookSteps):
    @rule(who=PLACES, name=TITLES, sql=SCRIPTS)
    def create_blueprint(self, who: int, name: str, sql: str) -> None:
        user = self._user(who)
        sent = self._change(user, "createBlueprint", {"name": name, "sql_content": sql})
        assert sent.status == 201, sent.answer
        made = Blueprint(sent.answer["data"]["uuid"], user.teams[0], name, None, sql)
        self.model.blueprints.append(made)
        _shows(sent.answer["data"], made)
        of_team = {blueprint.uuid for blueprint in self.model.blueprints if blueprint.team is made.team}
        slugs = [item["slug"] for item in self._own_blueprints(user, 100) if item["uuid"] in of_team]
        assert len(set(slugs)) == len(slugs)

    @rule(who=PLACES, sql=INVALID)
    def create_an_invalid_blueprint(self, who: int, sql: str) -> None:
        user = self._user(who)
        sent = self._change(user, "createBlueprint", {"name": "Never", "sql_content": sql})
        assert (sent.status, sent.answer["error"]["code"]) == (422, "blueprint_invalid")
        report = self.world.call(user, "validateBlueprint", {"sql_content": sql}).json()["data"]
        assert not report["valid"]
        assert report["errors"]

    @precondition(lambda self: self.model.blueprints)
    @rule(who=PLACES, which=PLACES)
    def get_blueprint(self, who: int, which: int) -> None:
        user, blueprint = self._user(who), self._blueprint(which)
        answer = self.world.call(user, "getBlueprint", uuid=blueprint.uuid)
        if self._has(user, blueprint):
            _shows(answer.json()["data"], blueprint)
            assert answer.json()["data"]["sql_content"] == blueprint.sql
        else:
            assert answer.status_code == 404

    @precondition(lambda self: self.model.blueprints)
    @rule(
        who=PLACES,
        which=PLACES,
        body=st.fixed_dictionaries(
            {}, optional={"name": TITLES, "sql_content": SCRIPTS, "description": st.none() | TITLES}
        ),
    )
    def update_blueprint(self, who: int, which: int, body: dict[str, Any]) -> None:
        user, blueprint = self._user(who), self._blueprint(which)
        answer = self.world.call(user, "updateBlueprint", body, uuid=blueprint.uuid)
        if not self._has(user, blueprint):
            assert answer.status_code == 404
            return
        blueprint.name = body.get("name", blueprint.name)
        blueprint.description = body.get("description", blueprint.description)
        if body.get("sql_content", blueprint.sql) != blueprint.sql:
            blueprint.sql = body["sql_content"]
            blueprint.version += 1
        _shows(answer.json()["data"], blueprint)

    @precondition(lambda self: self.model.blueprints)
    @rule(who=PLACES, which=PLACES)
    def delete_blueprint(self, who: int, which: int) -> None:
        user, blueprint = self._user(who), self._blueprint(which)
        answer = self.world.call(user, "deleteBlueprint", uuid=blueprint.uuid)
        assert answer.status_code == (200 if self._has(user, blueprint) else 404)
        blueprint.deleted = blueprint.deleted or blueprint.team in user.teams

    @rule(who=PLACES, limit=st.integers(1, 5))
    def list_blueprints(self, who: int, limit: int) -> None:
        user = self._user(who)
        expected = [blueprint for blueprint in reversed(self.model.blueprints) if self._has(user, blueprint)]
        seen = self._own_blueprints(user, limit)
        assert [item["uuid"] for item in seen] == [blueprint.uuid for blueprint in expected]
        for item, blueprint in zip(seen, expected, strict=True):
            _shows(item, blueprint)
            assert "sql_content" not in item

    @precondition(lambda self: self.model.blueprints and self.model.databases)
    @rule(who=PLACES, which=PLACES, where=PLACES, dry_run=st.booleans())
    def apply_blueprint(self, who: int, which: int, where: int, dry_run: bool) -> None:
        user, blueprint, database = self._user(who), self._blueprint(which), self._database(where)
        body = {"blueprint_uuid": blueprint.uuid, "dry_run": dry_run, "timeout": 60}
        sent = self._change(user, "applyBlueprint", body, uuid=database.uuid)
        if not (self._has(user, blueprint) and self.model.sees(user, database)):
            self._refused(sent, Refusal(404, "not_found"))
        elif sent.status == 422:
            # It is still being made.
            self._refused(sent, Refusal(422, "database_not_active"))
        else:
            data = sent.answer["data"]
            assert (sent.status, data["status"]) == (200, "rolled_back" if dry_run else "completed"), sent.answer
            assert (data["blueprint_version"], data["is_dry_run"]) == (blueprint.version, dry_run)
            assert data["statements_succeeded"] == data["statements_total"] == len(data["execution_log"])

    def _own_blueprints(self, user: User, limit: int) -> list[dict[str, Any]]:
        """Without those that the operator shares with all."""
        pages = self._pages(user, "listBlueprints", limit, "uuid")
        return [item for item in pages if not item["is_system_blueprint"]]

    def _blueprint(self, place: int) -> Blueprint:
        return self.model.blueprints[place % len(self.model.blueprints)]

    def _database(self, place: int) -> Database:
        return self.model.databases[place % len(self.model.databases)]

    @staticmethod
    def _has(user: User, blueprint: Blueprint) -> bool:
        return blueprint.team in user.teams and not blueprint.deleted


def _shows(data: dict[str, Any], blueprint: Blueprint) -> None:
    assert {name: data[name] for name in ("uuid", "name", "description", "version", "size_bytes")} == {
        "uuid": blueprint.uuid,
        "name": blueprint.name,
        "description": blueprint.description,
        "version": blueprint.version,
        "size_bytes": len(blueprint.sql.encode()),
    }
    assert not data["is_system_blueprint"]
