"""A create by a client: a member of the warm pool becomes the team's, or a new database is provisioned."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC
from time import monotonic, perf_counter
from uuid import UUID

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from app.audit.drafts import note
from app.auth.principal import Principal
from app.auth.teams import TeamRecord, get_team, keep_team
from app.backups.restores.filling import RESTORATIONS, accept_filling, operation_type
from app.backups.restores.sources import FoundSource, find_source
from app.blueprints.applications.queue import start_next
from app.blueprints.applications.records import find_at_creation
from app.blueprints.applications.schemas import ApplicationView
from app.blueprints.applications.service import UNDER_WAY, PlannedApplication, add, plan_at_creation
from app.blueprints.applications.views import view as application_view
from app.blueprints.applications.waiting import await_end
from app.blueprints.large_scripts import LargeScripts, size_to_prepare
from app.contracts.applications import ApplicationStatus
from app.contracts.base import DatabaseStatus
from app.contracts.databases import ProvisionDatabaseInput
from app.contracts.queues import provision_workflow_id
from app.core.context import current_request_id
from app.core.errors import InvalidField, NotFound
from app.core.ids import new_uuid
from app.core.secrets import SecretBox
from app.databases.expiry import check_expiry, check_protection
from app.databases.labels import new_labels
from app.databases.limits import Before, request_limits
from app.databases.ownership import MemberKind, ReadyMember, assign, hold
from app.databases.pool.claim import ReadyMembers, count_claim, lock_member
from app.databases.records import DatabaseRecord, count_owned
from app.databases.retention import check_retained
from app.databases.schemas import CreateDatabase, DatabaseView, Provisioning
from app.databases.views import append_event_for, event_insertion, full_view
from app.operations.acceptance import accept, insertion
from app.operations.accepted import accepted_on
from app.operations.kinds import OperationStatus, OperationType
from app.operations.schemas import OperationReference
from app.outbox.event_types import EventType
from app.outbox.provisionings import request_provisioning
from app.outbox.workflow_starts import INTERACTIVE, Accepted, PendingStart
from app.provisioning.placement import insert_placed
from app.provisioning.waiting import await_active, await_limits
from app.quotas.bounds import check_bound
from app.quotas.plans import Plans, check_plan, check_quotas, limits_in_force
from app.store.notify import RowWatch
from app.store.session import execute_chain
from app.web.idempotency import Answer, StoreAnswer


class CreatedDatabase(Struct, kw_only=True):
    message: str
    data: DatabaseView
    operation: OperationReference | UnsetType = UNSET
    """The operation that the create is, as it is when the answer is made."""
    provisioning: Provisioning | UnsetType = UNSET
    blueprint_application: ApplicationView | UnsetType = UNSET
    """That of the `blueprint_uuid` which was asked for."""
    request_id: str = field(default_factory=current_request_id)
    idempotency_replay: bool | UnsetType = UNSET
    """True when an earlier request with this key did it, and this is the answer that it got."""


class DatabaseCreation:
    """One request for a database, in the steps that `Idempotency.run` takes."""

    def __init__(
        self,
        principal: Principal,
        request: CreateDatabase,
        *,
        plans: Plans,
        box: SecretBox,
        members: ReadyMembers,
        watch: RowWatch,
        scripts: LargeScripts,
        wait_seconds: float = 0,
        limits_seconds: float = 5,
    ) -> None:
        """`wait_seconds` is how long the client waits for the database to become active, `limits_seconds` how long for
        the limits of a member of the pool."""
        self._principal = principal
        self._request = request
        self._plans = plans
        self._box = box
        self._members = members
        self._watch = watch
        self._scripts = scripts
        self._wait_seconds = wait_seconds
        self._limits_seconds = limits_seconds
        self._started = monotonic()
        self._kind = self._kind_of(request)
        self._source: FoundSource | None = None
        """What fills the database; found in `begin`."""
        self._made_with = self._kind.connections
        """The connections that the member which it took allows so far, if these are fewer."""
        self._made: DatabaseRecord | None = None
        """The row as it was written: a member of the warm pool that was taken, or a new database."""

    @property
    def claimed(self) -> bool:
        """Whether it took a member of the warm pool."""
        return self._made is not None and self._made.status is DatabaseStatus.ACTIVE

    async def immediate(self, store_answer: StoreAnswer) -> Answer | None:
        """Claims a member, appends the event and stores the answer, all in one statement, where nothing else has to be
        read or done. None when nothing was done: the pool has no member that is just what is asked for, another create
        took it, the key has come before, or the request needs more than this. Raises `InvalidField`."""
        team = _asked_team(self._principal, self._request)
        # A free team's databases are counted under a lock.
        if team.tier == "free" or self._request.blueprint_uuid is not UNSET or self._request.blueprint_variables:
            return None
        if self._request.source is not UNSET:
            return None
        if not self._is_valid():
            # The key may have come before, when the moment of its end lay further ahead.
            return None
        started = perf_counter()
        for fresh in (False, True):
            async with self._members.reserved(self._kind, fresh=fresh) as member:
                if member is None:
                    continue
                record = self._owned(member, team)
                operation = OperationReference(uuid=new_uuid(), status=OperationStatus.SUCCEEDED)
                answer = _answer(record, self._describe(record, operation))
                steps = (
                    hold(member, team.id),
                    *store_answer(str(record.uuid), answer),
                    assign(record, self._principal.user_id),
                    insertion(OperationType.CREATE, record, at=record.created_at, uuid=operation.uuid),
                    event_insertion(self._plans, EventType.DATABASE_PROVISIONED, record),
                )
                done = await execute_chain(*steps)
            if done:
                self._members.prefetch(self._kind)
            if done == len(steps):
                self._made = record
                count_claim(record.engine, record.region, "hit", perf_counter() - started)
                return answer
            if done:
                return None
        return None

    async def begin(self) -> Accepted:
        """Claims a member or inserts a new database, appends the event, and requests the workflow that is to follow, in
        the request's transaction. Raises `InvalidField`, `PlanLimitExceeded`, `DeletionsPending`, `TooManyUnderWay` or
        `CapacityExhausted`; nothing is made then."""
        self._check_request()
        await self._find_source()
        blueprint = await self._plan_blueprint()
        team = await _team_for_create(self._plans, self._principal, self._request)
        if self._source is not None:
            await check_bound(self._plans, RESTORATIONS, team.id)
        if blueprint is not None:
            await check_bound(self._plans, UNDER_WAY, team.id)
        record = self._made = await self._claim_or_insert(team)
        await append_event_for(self._plans, _EVENTS[record.status], record)
        start = await self._request_workflow(record)
        if blueprint is not None:
            await add(self._box, self._principal, record, blueprint, at_creation=True)
            # Begun here if the database is active already, or else by the step that makes it active. A request starts
            # one workflow by itself.
            application = await start_next(record.id, relayed=start is not None)
            start = start or application
        made = record.status is DatabaseStatus.ACTIVE
        settled = (start is None and blueprint is None) if made else not self._wait_seconds
        return Accepted(subject=str(record.uuid), start=start, settled=settled)

    async def _find_source(self) -> None:
        source = self._request.source
        if not isinstance(source, UnsetType):
            self._source = await find_source(self._principal, source)
            self._request = self._source.completed(self._request)
            self._kind = self._kind_of(self._request)

    def _kind_of(self, request: CreateDatabase) -> MemberKind:
        return MemberKind(
            engine=request.engine,
            region=None if request.region is UNSET else request.region,
            connections=limits_in_force(self._plans, request.plan_name, request.quotas).connection_hard_limit,
        )

    def _check_request(self) -> None:
        request = self._request
        check_protection(
            deletion_protection=request.deletion_protection, expires_at=request.expires_at, field="expires_at"
        )
        check_expiry(request.expires_at, self._principal.admitted_at)
        new_labels(request.labels)

    def _is_valid(self) -> bool:
        try:
            self._check_request()
        except InvalidField:
            return False
        return True

    async def finish(self, subject: str) -> Answer:
        """Waits for the database, its limits and its blueprint's application, each if there is something to wait for.
        Without a wait a new database is answered as it was written, however soon it is made. Raises `NotFound` when it
        was deleted meanwhile."""
        record = self._made
        if record is None or (record.status is DatabaseStatus.PROVISIONING and self._wait_seconds):
            record = await await_active(self._watch, UUID(subject), self._wait_seconds)
        if record.status is DatabaseStatus.ACTIVE and record.limits_applied < record.limits_revision:
            _, record = await await_limits(self._watch, record.uuid, self._limits_seconds)
        if record.status is DatabaseStatus.DELETED:
            raise NotFound("database")
        body = self._describe(record, await accepted_on(record.uuid, operation_type(self._request.source)))
        if self._request.blueprint_uuid is not UNSET:
            await self._add_application(body)
        return _answer(record, body)

    @asynccontextmanager
    async def limit_preparation(self) -> AsyncIterator[None]:
        """Takes a slot for large scripts for the time in which `begin` reads the blueprint's script."""
        uuid, values, user = self._request.blueprint_uuid, self._request.blueprint_variables, self._principal
        size = 0 if uuid is UNSET else await size_to_prepare(user, uuid, values)
        async with self._scripts.slot(user.team_ids, size):
            yield

    async def _plan_blueprint(self) -> PlannedApplication | None:
        """What is to be applied once the database is active."""
        request = self._request
        if request.blueprint_uuid is not UNSET:
            return await plan_at_creation(
                self._principal, request.blueprint_uuid, request.engine, request.blueprint_variables
            )
        if request.blueprint_variables:
            raise InvalidField("blueprint_variables", "There is no blueprint_uuid that they could be for.")
        return None

    async def _claim_or_insert(self, team: TeamRecord) -> DatabaseRecord:
        """A member of the pool, or a new database where the pool has none with room, or it is not to be empty."""
        user = self._principal.user_id
        if self._source is not None:
            return await insert_placed(
                self._box,
                self._request,
                self._kind,
                team_id=team.id,
                user_id=user,
                among=self._source.hosts,
                prefers=self._source.prefers,
            )
        started = perf_counter()
        member = await lock_member(self._kind)
        took = perf_counter() - started
        if member is None:
            record = await insert_placed(self._box, self._request, self._kind, team_id=team.id, user_id=user)
            count_claim(record.engine, record.region, "miss", took)
            return record
        record = self._owned(member, team)
        self._made_with = min(member.connections, self._kind.connections)
        await execute_chain(assign(record, user), insertion(OperationType.CREATE, record, at=record.created_at))
        count_claim(record.engine, record.region, "hit", took)
        return record

    def _owned(self, member: ReadyMember, team: TeamRecord) -> DatabaseRecord:
        """The member's row as it is once it is the team's. Where it allows another number of connections than it was
        made with, `limits_revision` is ahead of `limits_applied`."""
        request, now = self._request, self._principal.admitted_at
        return msgspec.structs.replace(
            member,
            team_id=team.id,
            team_name=team.name,
            name=request.name,
            plan=request.plan_name,
            storage_hard_limit_gb=request.storage_hard_limit_gb,
            connection_hard_limit=request.connection_hard_limit,
            warning_threshold_pct=request.warning_threshold_pct,
            connections=self._kind.connections,
            deletion_protection=request.deletion_protection,
            # As a row is read: in UTC.
            expires_at=request.expires_at and request.expires_at.astimezone(UTC),
            labels=new_labels(request.labels),
            limits_revision=member.limits_revision + (member.connections != self._kind.connections),
            created_at=now,
            updated_at=now,
            provisioned_at=now,
        )

    def _describe(self, record: DatabaseRecord, operation: OperationReference | UnsetType) -> CreatedDatabase:
        view = full_view(self._plans, record, self._box)
        if record.status is not DatabaseStatus.PROVISIONING:
            limited = record.limits_applied >= record.limits_revision
            message = "Database created." if limited else "Database created; its limits follow in a moment."
            return CreatedDatabase(message=message, data=view, operation=operation)
        progress = Provisioning(
            completed=False, waited_seconds=int(self._elapsed()), poll_url=f"/api/v1/databases/{record.uuid}"
        )
        message = "Database is being provisioned."
        return CreatedDatabase(message=message, data=view, operation=operation, provisioning=progress)

    async def _add_application(self, body: CreatedDatabase) -> None:
        """Waits for the end of the blueprint's application, if the database is active, and describes it; it is kept no
        longer than operations. A database whose blueprint failed is active all the same."""
        application = await find_at_creation(body.data.uuid)
        if application is None:
            return
        if body.data.status is DatabaseStatus.ACTIVE:
            left = self._wait_seconds - self._elapsed() if self._wait_seconds else 0
            application = await await_end(self._watch, application, left)
        body.blueprint_application = await application_view(application)
        if application.status is ApplicationStatus.FAILED:
            body.message = "Database created; its blueprint could not be applied."

    async def _request_workflow(self, record: DatabaseRecord) -> PendingStart | None:
        """Requests the workflow that provisions the database, or applies the limits of a member that was claimed, and
        accepts its operation. Returns the one to start after the commit; a provisioning is started by a worker of its
        region."""
        if record.status is DatabaseStatus.PROVISIONING:
            restoration = await self._accept_create(record)
            provisioning = ProvisionDatabaseInput(
                database=record.uuid,
                engine=record.engine,
                region=record.region,
                team_id=record.team_id,
                placement=record.placement,
                restoration=restoration,
            )
            await request_provisioning(provisioning, priority=INTERACTIVE)
            return None
        if record.limits_applied >= record.limits_revision:
            return None
        quotas = msgspec.structs.replace(record.quotas, connection_hard_limit=self._made_with)
        before = Before(quotas=quotas, connections=self._made_with)
        return await request_limits(record, record.limits_revision, before=before)

    async def _accept_create(self, record: DatabaseRecord) -> UUID | None:
        """Accepts the operation. Returns the restoration that fills the database, if one does."""
        workflow_id = provision_workflow_id(record.uuid)
        if self._source is not None:
            return await accept_filling(self._source, record, workflow_id=workflow_id)
        await accept(OperationType.CREATE, record, workflow_id=workflow_id, undo={}, taken=1)
        return None

    def _elapsed(self) -> float:
        """Seconds since the request came."""
        return monotonic() - self._started


_EVENTS = {
    DatabaseStatus.ACTIVE: EventType.DATABASE_PROVISIONED,
    DatabaseStatus.PROVISIONING: EventType.DATABASE_PROVISIONING_STARTED,
}


def _answer(record: DatabaseRecord, body: CreatedDatabase) -> Answer:
    return Answer(202 if record.status is DatabaseStatus.PROVISIONING else 201, body)


def _asked_team(principal: Principal, request: CreateDatabase) -> TeamRecord:
    """The team that is to own the database. Raises `InvalidField`, `InsufficientRole` or `NotAMember`."""
    asked = request.team_id if isinstance(request.team_id, int) else None
    place = principal.team_ids.index(principal.owning_team(asked, "database"))
    note(team_id=principal.team_ids[place])
    return TeamRecord(principal.team_ids[place], principal.team_tiers[place], principal.team_names[place])


async def _team_for_create(plans: Plans, principal: Principal, request: CreateDatabase) -> TeamRecord:
    """The same, if it may have this database beside those that it has and those that it deleted. Call it in a
    transaction: a team of the free tier stays locked in it. Raises `InvalidField`, `NotAMember`, `PlanLimitExceeded` or
    `DeletionsPending`."""
    team, owned = _asked_team(principal, request), 0
    if team.tier == "free":
        # Locked, so that two concurrent creates don't both find room for the one database.
        team = await get_team(team.id, lock=True, live=True)
        owned = await count_owned(team.id)
    else:
        await keep_team(team.id)
    check_plan(team.tier, request.plan_name, owned)
    check_quotas(plans, team.tier, request.plan_name, request.quotas)
    await check_retained(plans, team)
    return team
