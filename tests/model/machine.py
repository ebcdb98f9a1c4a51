"""Everything that clients do, in any order, step by step beside the model."""

from typing import Any
from uuid import uuid4

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.model.blueprints import BlueprintSteps
from tests.model.expected import NO_QUOTAS, PLANS, Database, Refusal, Sent, User
from tests.model.steps import PLACES

NAMES = st.from_regex(r"[a-z0-9][a-z0-9-]{0,62}", fullmatch=True)
QUOTAS = st.fixed_dictionaries(
    {},
    optional={
        "storage_hard_limit_gb": st.none() | st.sampled_from([0.25, 0.5, 1, 2.5]),
        "connection_hard_limit": st.none() | st.sampled_from([1, 5, 10, 11, 60]),
        "warning_threshold_pct": st.none() | st.integers(1, 100),
    },
)
ENGINES = st.sampled_from(["postgres"] * 4 + ["mysql"])
BAD_BODIES = st.sampled_from(
    [
        ("createDatabase", {}, Refusal(422, "missing_required_field", "name")),
        ("createDatabase", {"name": "No"}, Refusal(422, "invalid_field", "name")),
        ("createDatabase", {"name": "a", "plan": "gold"}, Refusal(422, "invalid_field", "plan")),
        ("createDatabase", {"name": "a", "db_type": "sqlite"}, Refusal(422, "invalid_field", "db_type")),
        ("createDatabase", {"name": "a", "region": "nowhere-1"}, Refusal(422, "invalid_field", "region")),
        (
            "createDatabase",
            {"name": "a", "connection_hard_limit": 0},
            Refusal(422, "invalid_field", "connection_hard_limit"),
        ),
        ("createDatabase", {"name": "a", "colour": "red"}, Refusal(422, "invalid_field", "colour")),
        ("renameDatabase", {}, Refusal(422, "missing_required_field", "name")),
        ("renameDatabase", {"name": None}, Refusal(422, "invalid_field", "name")),
        ("renameDatabase", {"name": "a", "plan": "pro"}, Refusal(422, "invalid_field", "plan")),
        ("changeQuotas", {"warning_threshold_pct": 101}, Refusal(422, "invalid_field", "warning_threshold_pct")),
        ("changeQuotas", {"storage_hard_limit_gb": "1"}, Refusal(422, "invalid_field", "storage_hard_limit_gb")),
        ("changeQuotas", [], Refusal(422, "invalid_field", "body")),
    ]
)


class ApiMachine(BlueprintSteps):
    """Databases, and with them all the rest."""

    @rule(
        who=PLACES,
        body=st.fixed_dictionaries({"name": NAMES}, optional={"plan": st.sampled_from(list(PLANS))}),
        engine=ENGINES,
        quotas=QUOTAS,
        team=st.none() | PLACES,
        wait=st.booleans(),
    )
    def create(
        self, who: int, body: dict[str, Any], engine: str, quotas: dict[str, Any], team: int | None, wait: bool
    ) -> None:
        user = self._user(who)
        body = body | quotas | {"db_type": engine if engine in self.engines else "postgres"}
        if team is not None:
            teams = [team for user in self.users for team in user.teams]
            body["team_id"] = teams[team % len(teams)].id
        refusal = self.model.refuses_create(user, body)
        sent = self.world.change(user, "createDatabase", body, **({"wait": "true", "timeout": 60} if wait else {}))
        self.model.sent.append(sent)
        if refusal:
            self._refused(sent, refusal)
            return
        assert sent.status == (201 if wait else 202), sent.answer
        data = sent.answer["data"]
        owner = self.model.team_of(user, body)
        assert owner is not None
        made = Database(
            uuid=data["uuid"],
            team=owner,
            name=body["name"],
            db_type=body["db_type"],
            plan=body.get("plan", "free"),
            quotas=NO_QUOTAS | quotas,
            password=data["db_password"],
        )
        assert data["status"] == ("active" if wait else "provisioning")
        assert made.uuid not in {database.uuid for database in self.model.databases}
        self.model.databases.append(made)
        self._shows(data, made, with_password=True)

    @precondition(lambda self: self.model.databases)
    @rule(who=PLACES, which=PLACES)
    def get(self, who: int, which: int) -> None:
        user, database = self._user(who), self._database(which)
        answer = self.world.call(user, "getDatabase", uuid=database.uuid)
        if self.model.sees(user, database):
            self._shows(answer.json()["data"], database, with_password=True)
        else:
            assert answer.status_code == 404

    @precondition(lambda self: self.model.databases)
    @rule(who=PLACES, which=PLACES, name=NAMES)
    def rename(self, who: int, which: int, name: str) -> None:
        user, database = self._user(who), self._database(which)
        sent = self._change(user, "renameDatabase", {"name": name}, uuid=database.uuid)
        if self._found(sent, user, database):
            database.name = name
            self._shows(sent.answer["data"], database)

    @precondition(lambda self: self.model.databases)
    @rule(who=PLACES, which=PLACES, quotas=QUOTAS)
    def change_quotas(self, who: int, which: int, quotas: dict[str, Any]) -> None:
        user, database = self._user(who), self._database(which)
        sent = self._change(user, "changeQuotas", quotas, uuid=database.uuid)
        if not self.model.sees(user, database):
            self._refused(sent, Refusal(404, "not_found"))
            return
        after = database.quotas | quotas
        if refusal := self.model.refuses_quotas(database.team, database.plan, after):
            self._refused(sent, refusal)
            return
        assert sent.status == 200
        database.quotas = after
        self._shows(sent.answer["data"], database)

    @precondition(lambda self: self.model.databases)
    @rule(who=PLACES, which=PLACES)
    def delete(self, who: int, which: int) -> None:
        user, database = self._user(who), self._database(which)
        sent = self._change(user, "deleteDatabase", uuid=database.uuid)
        if self._found(sent, user, database):
            database.deleted = True
            data = sent.answer["data"]
            assert (data["uuid"], data["deleted"]) == (database.uuid, True)
            assert data["has_remote_resources"] == (data["destroy_scheduled_at"] is not None)

    @rule(who=PLACES, limit=st.integers(1, 5))
    def list_all(self, who: int, limit: int) -> None:
        user = self._user(who)
        expected = self.model.visible(user)
        seen: list[dict[str, Any]] = []
        more, cursor = True, dict[str, str]()
        while more:
            page = self.world.call(user, "listDatabases", limit=limit, **cursor).json()
            seen, more = seen + page["data"], page["has_more"]
            assert more == (len(seen) < len(expected))
            cursor = {"starting_after": seen[-1]["uuid"]} if seen else {}
        assert [item["uuid"] for item in seen] == [database.uuid for database in expected]
        for item, database in zip(seen, expected, strict=True):
            self._shows(item, database)

    @precondition(lambda self: self.model.databases)
    @rule(who=PLACES, which=PLACES)
    def list_after(self, who: int, which: int) -> None:
        user, database = self._user(who), self._database(which)
        answer = self.world.call(user, "listDatabases", starting_after=database.uuid, limit=100)
        if database.team not in user.teams:
            assert answer.status_code == 422
            return
        older = self.model.databases[: self.model.databases.index(database)]
        expected = [item.uuid for item in reversed(older) if self.model.sees(user, item)]
        assert [item["uuid"] for item in answer.json()["data"]] == expected

    @rule(who=PLACES, bad=BAD_BODIES, which=PLACES)
    def send_nonsense(self, who: int, bad: tuple[str, Any, Refusal], which: int) -> None:
        operation, body, refusal = bad
        uuid = self._database(which).uuid if self.model.databases else str(uuid4())
        given = {} if operation == "createDatabase" else {"uuid": uuid}
        user = self._user(who)
        # Whether the team may have a database at all comes before where it could be.
        if refusal.field == "region":
            refusal = self.model.refuses_create(user, body) or refusal
        self._refused(self.world.change(user, operation, body, **given), refusal)

    @rule(who=PLACES, tier=st.sampled_from(["free", "pro", "enterprise"]))
    def change_tier(self, who: int, tier: str) -> None:
        team = self._user(who).teams[0]
        self.world.set_tier(team, tier)
        team.tier = tier

    @rule(who=PLACES)
    def ask_who_is_calling(self, who: int) -> None:
        user = self._user(who)
        data = self.world.call(user, "getMe").json()["data"]
        assert data["api_key"]["preview"][:12] == user.api_key[:12]
        assert data["api_key"]["last_used_at"] is None or data["api_key"]["status"] == "active"

    def teardown(self) -> None:
        """What is left is deleted, so that long runs don't fill the engines."""
        for user in getattr(self, "users", []):
            for database in self.model.visible(user):
                self.world.change(user, "deleteDatabase", uuid=database.uuid)
                database.deleted = True

    def _found(self, sent: Sent, user: User, database: Database) -> bool:
        """Whether the user has the database; the answer has to say the same."""
        if self.model.sees(user, database):
            assert sent.status == 200, sent.answer
            return True
        self._refused(sent, Refusal(404, "not_found"))
        return False

    @staticmethod
    def _shows(data: dict[str, Any], database: Database, *, with_password: bool = False) -> None:
        shown = {name: data[name] for name in ("uuid", "name", "db_type", "plan", "quotas", "limits", "team_id")}
        assert shown == {
            "uuid": database.uuid,
            "name": database.name,
            "db_type": database.db_type,
            "plan": database.plan,
            "quotas": database.quotas,
            "limits": database.limits,
            "team_id": database.team.id,
        }
        assert data["status"] in ("provisioning", "active")
        assert data.get("db_password") == (database.password if with_password else None)
        assert (database.password in data["connection_string"]) == with_password
