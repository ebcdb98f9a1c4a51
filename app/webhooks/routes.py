"""`/api/v1/webhook_endpoints`. Interface specification, section 4.14."""

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, TypeVar

import msgspec
from litestar import Controller, Request, Response, delete, get, params, patch, post
from litestar.di import NamedDependency
from litestar.params import FromPath, QueryParameter, SkipValidation

from app.auth.principal import Principal
from app.auth.scopes import Scope
from app.contracts.webhooks import DeliveryStatus
from app.core.errors import EndpointLimitReached, InvalidField, PingsUnderWay
from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.outbox.event_types import EventType
from app.outbox.workflow_starts import Accepted
from app.web.envelope import Change, Item, Page
from app.web.idempotency import Answer, Idempotency
from app.web.operation import operation
from app.web.parameters import Limit, StartingAfterId, cursor_id, path_id
from app.webhooks import records, service
from app.webhooks.egress.sender import Sender
from app.webhooks.examples import (
    EXAMPLE_ATTEMPTS,
    EXAMPLE_DELIVERY,
    EXAMPLE_ENDPOINT,
    EXAMPLE_PING,
    EXAMPLE_RETRIED,
    EXAMPLE_SECRET,
)
from app.webhooks.ping import Pings
from app.webhooks.schemas import (
    ChangeEndpoint,
    CreateEndpoint,
    DeliveryView,
    DeliveryWithAttempts,
    EndpointView,
    EndpointWithSecret,
    RevokedEndpoint,
    delivery_view,
    delivery_with_attempts,
    endpoint_view,
)

_CREATED = "Webhook endpoint created. Keep the secret: it is not shown again."
_CHANGED = "Webhook endpoint changed."
_ROTATED = "Signing secret replaced. Keep the new one: it is not shown again."

Status = Annotated[
    str | None,
    QueryParameter(
        name="status",
        description="Only deliveries with this status.",
        schema_extra={"enum": [status.value for status in DeliveryStatus]},
    ),
]
Event = Annotated[
    str | None,
    QueryParameter(
        name="event_type",
        description="Only deliveries of this event.",
        schema_extra={"enum": [event.value for event in EventType]},
    ),
]

Call = Request[Principal, Any, Any]


Choice = TypeVar("Choice", bound=StrEnum)


class WebhookServices(msgspec.Struct, frozen=True, kw_only=True):
    """What the routes work with."""

    settings: Settings
    box: SecretBox
    sender: Sender
    idempotency: Idempotency
    pings: Pings


Injected = NamedDependency[SkipValidation[WebhookServices]]
"""The type of a route's parameter `services`. We made it ourselves: there is nothing to validate."""


class WebhookController(Controller):
    path = "/webhook_endpoints"

    @post(
        "",
        **operation(
            "createWebhookEndpoint",
            "Create a webhook endpoint",
            action="webhook_endpoint.create",
            scopes=(Scope.WEBHOOKS_WRITE,),
            answers={201: EndpointWithSecret},
            examples={201: EndpointWithSecret(message=_CREATED, data=EXAMPLE_ENDPOINT, secret=EXAMPLE_SECRET)},
            body=CreateEndpoint,
            example={
                "url": "https://hooks.example.com/headwater",
                "events": ["database.provisioned", "database.deleted"],
            },
            idempotent=True,
            errors=(EndpointLimitReached,),
            links=("revokeWebhookEndpoint", "testWebhookEndpoint", "listWebhookDeliveries", "rotateWebhookSecret"),
            link_by="id",
        ),
    )
    async def create(self, request: Call, services: Injected, data: params.JSONBody[CreateEndpoint]) -> Response[bytes]:
        # Looked up before the transaction: a name server that hangs must not hold one open.
        settings, guard = services.settings, services.sender.guard
        fault = await service.url_fault(guard, request.user, data.url, timeout=settings.webhook_lookup_timeout_seconds)
        most = settings.webhook_endpoints_per_team

        async def begin() -> Accepted:
            return await service.create(services.box, request.user, data, fault=fault, most=most)

        return await services.idempotency.run(request, begin=begin, finish=_with_secret(services, 201, _CREATED))

    @get(
        "",
        **operation(
            "listWebhookEndpoints",
            "List webhook endpoints, newest first, revoked ones too",
            scopes=(Scope.WEBHOOKS_READ,),
            answers={200: Page[EndpointView]},
            examples={200: Page(data=[EXAMPLE_ENDPOINT], has_more=False)},
            errors=(InvalidField,),
        ),
    )
    async def list_endpoints(
        self, request: Call, limit: Limit = 25, starting_after: StartingAfterId = None
    ) -> Page[EndpointView]:
        page, has_more = await service.list_page(request.user, starting_after=cursor_id(starting_after), limit=limit)
        return Page(data=[endpoint_view(record) for record in page], has_more=has_more)

    @get(
        "/{id:str}",
        **operation(
            "getWebhookEndpoint",
            "Get a webhook endpoint",
            scopes=(Scope.WEBHOOKS_READ,),
            answers={200: Item[EndpointView]},
            examples={200: Item(data=EXAMPLE_ENDPOINT)},
        ),
    )
    async def get_endpoint(self, request: Call, id: FromPath[str]) -> Item[EndpointView]:
        return Item(data=endpoint_view(await service.get(request.user, path_id(id, service.ENDPOINT))))

    @patch(
        "/{id:str}",
        **operation(
            "changeWebhookEndpoint",
            "Change where a webhook endpoint's events go, and which they are",
            action="webhook_endpoint.change",
            scopes=(Scope.WEBHOOKS_WRITE,),
            answers={200: Change[EndpointView]},
            examples={200: Change(message=_CHANGED, data=EXAMPLE_ENDPOINT)},
            body=ChangeEndpoint,
            example={"events": ["database.provisioned", "database.deleted"]},
            idempotent=True,
        ),
    )
    async def change(
        self, request: Call, services: Injected, id: FromPath[str], data: params.JSONBody[ChangeEndpoint]
    ) -> Response[bytes]:
        settings, guard, fault = services.settings, services.sender.guard, None
        if isinstance(data.url, str):
            timeout = settings.webhook_lookup_timeout_seconds
            fault = await service.url_fault(guard, request.user, data.url, timeout=timeout)

        async def begin() -> Accepted:
            return await service.change(request.user, path_id(id, service.ENDPOINT), data, fault=fault)

        async def finish(subject: str) -> Answer:
            record = await records.find_endpoint(int(subject))
            assert record is not None, "endpoints are revoked, and stay"
            return Answer(200, Change(message=_CHANGED, data=endpoint_view(record)))

        return await services.idempotency.run(request, begin=begin, finish=finish)

    @delete(
        "/{id:str}",
        **operation(
            "revokeWebhookEndpoint",
            "Revoke a webhook endpoint; nothing more is delivered to it",
            action="webhook_endpoint.revoke",
            scopes=(Scope.WEBHOOKS_WRITE,),
            answers={200: Change[RevokedEndpoint]},
            examples={200: Change(message="Webhook endpoint revoked.", data=RevokedEndpoint(id=3))},
            idempotent=True,
        ),
    )
    async def revoke(self, request: Call, services: Injected, id: FromPath[str]) -> Response[bytes]:
        async def begin() -> Accepted:
            return await service.revoke(request.user, path_id(id, service.ENDPOINT))

        async def finish(subject: str) -> Answer:
            return Answer(200, Change(message="Webhook endpoint revoked.", data=RevokedEndpoint(id=int(subject))))

        return await services.idempotency.run(request, begin=begin, finish=finish)

    @post(
        "/{id:str}/secret_rotations",
        **operation(
            "rotateWebhookSecret",
            "Replace a webhook endpoint's signing secret; the old one signs beside it for a while",
            action="webhook_endpoint.rotate_secret",
            scopes=(Scope.WEBHOOKS_WRITE,),
            answers={201: EndpointWithSecret},
            examples={201: EndpointWithSecret(message=_ROTATED, data=EXAMPLE_ENDPOINT, secret=EXAMPLE_SECRET)},
            idempotent=True,
        ),
    )
    async def rotate_secret(self, request: Call, services: Injected, id: FromPath[str]) -> Response[bytes]:
        async def begin() -> Accepted:
            overlap = timedelta(seconds=services.settings.webhook_secret_overlap_seconds)
            endpoint = path_id(id, service.ENDPOINT)
            return await service.rotate_secret(services.box, request.user, endpoint, overlap)

        return await services.idempotency.run(request, begin=begin, finish=_with_secret(services, 201, _ROTATED))

    @post(
        "/{id:str}/test_deliveries",
        **operation(
            "testWebhookEndpoint",
            "Send a ping and report its outcome",
            action="webhook_endpoint.test",
            scopes=(Scope.WEBHOOKS_WRITE,),
            answers={200: Item[DeliveryView]},
            examples={200: Item(data=EXAMPLE_PING)},
            errors=(PingsUnderWay,),
        ),
    )
    async def test_endpoint(self, request: Call, services: Injected, id: FromPath[str]) -> Item[DeliveryView]:
        endpoint = await service.get(request.user, path_id(id, service.ENDPOINT), active=True)
        return Item(data=delivery_view(await services.pings.send(endpoint)))

    @get(
        "/{id:str}/deliveries",
        **operation(
            "listWebhookDeliveries",
            "List an endpoint's deliveries, newest first",
            scopes=(Scope.WEBHOOKS_READ,),
            answers={200: Page[DeliveryView]},
            examples={200: Page(data=[EXAMPLE_DELIVERY], has_more=False)},
            errors=(InvalidField,),
        ),
    )
    async def list_deliveries(
        self,
        request: Call,
        id: FromPath[str],
        limit: Limit = 25,
        starting_after: StartingAfterId = None,
        status: Status = None,
        event_type: Event = None,
    ) -> Page[DeliveryView]:
        page, has_more = await service.list_deliveries(
            request.user,
            path_id(id, service.ENDPOINT),
            status=_chosen(DeliveryStatus, "status", status),
            event_type=_chosen(EventType, "event_type", event_type),
            starting_after=cursor_id(starting_after),
            limit=limit,
        )
        return Page(data=[delivery_view(record) for record in page], has_more=has_more)

    @get(
        "/{id:str}/deliveries/{delivery_id:str}",
        **operation(
            "getWebhookDelivery",
            "Get a delivery with its attempts",
            scopes=(Scope.WEBHOOKS_READ,),
            answers={200: Item[DeliveryWithAttempts]},
            examples={200: Item(data=EXAMPLE_ATTEMPTS)},
        ),
    )
    async def get_delivery(
        self, request: Call, id: FromPath[str], delivery_id: FromPath[str]
    ) -> Item[DeliveryWithAttempts]:
        record, attempts, body = await service.get_delivery(
            request.user, path_id(id, service.ENDPOINT), path_id(delivery_id, service.DELIVERY)
        )
        return Item(data=delivery_with_attempts(record, attempts, body))

    @post(
        "/{id:str}/deliveries/{delivery_id:str}/retries",
        **operation(
            "retryWebhookDelivery",
            "Send a delivery again, whatever became of it, from the start of the schedule",
            action="webhook_delivery.retry",
            scopes=(Scope.WEBHOOKS_WRITE,),
            answers={202: Item[DeliveryView]},
            examples={202: Item(message="The delivery is sent again.", data=EXAMPLE_RETRIED)},
        ),
    )
    async def retry_delivery(
        self, request: Call, services: Injected, id: FromPath[str], delivery_id: FromPath[str]
    ) -> Item[DeliveryView]:
        record = await service.send_again(
            request.user, path_id(id, service.ENDPOINT), path_id(delivery_id, service.DELIVERY)
        )
        return Item(message="The delivery is sent again.", data=delivery_view(record))


def _chosen(choices: type[Choice], name: str, given: str | None) -> Choice | None:
    """Raises `InvalidField`."""
    if given is not None and given not in set(choices):
        raise InvalidField(name, f"Expected one of {', '.join(choices)}.")
    return None if given is None else choices(given)


def _with_secret(services: WebhookServices, status: int, message: str) -> Any:
    async def finish(subject: str) -> Answer:
        record, secret = await service.with_secret(services.box, subject)
        return Answer(status, EndpointWithSecret(message=message, data=endpoint_view(record), secret=secret))

    return finish
