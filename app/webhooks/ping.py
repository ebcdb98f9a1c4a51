"""The test delivery: one request, made while the caller waits, through the same guard and under the same signature."""

import math
from time import time

import msgspec

from app.audit.events import audited
from app.core.clock import utc_now
from app.core.errors import PingsUnderWay
from app.core.ids import new_uuid
from app.core.limiter import Limiter
from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.outbox.event_types import EventType
from app.store.session import transaction
from app.webhooks import records
from app.webhooks.attempts import body_of
from app.webhooks.circuit import Circuit
from app.webhooks.egress.sender import AttemptResult, Sender
from app.webhooks.records import DeliveryRecord, EndpointRecord
from app.webhooks.schemas import endpoint_view
from app.webhooks.signing import signed_headers

_OF_ONE_ENDPOINT, _OF_ONE_TEAM = 2, 8
"""How many pings are under way at the same time, in one process: a receiver may hang for as long as an attempt may
take, and each ping holds a request open."""


class Pings:
    """Makes the pings of this process: a limited number for one endpoint or team at the same time."""

    def __init__(self, box: SecretBox, sender: Sender, settings: Settings) -> None:
        self._box = box
        self._sender = sender
        self._circuit = Circuit(settings)
        self._longest = settings.webhook_timeout_seconds
        self._of_endpoint = Limiter[int](_OF_ONE_ENDPOINT)
        self._of_team = Limiter[int](_OF_ONE_TEAM)

    async def send(self, endpoint: EndpointRecord) -> DeliveryRecord:
        """Sends a ping. Its record is written with its outcome: a process that dies in between leaves none that would
        stay pending. Raises `PingsUnderWay`."""
        webhook_id = f"msg_{new_uuid().hex}"
        message = {"event": EventType.PING.value, "timestamp": utc_now().isoformat(), "data": endpoint_view(endpoint)}
        payload = msgspec.json.encode(message).decode()
        if not (self._of_endpoint.has_room(endpoint.id) and self._of_team.has_room(endpoint.team_id)):
            raise PingsUnderWay(endpoint.id, math.ceil(self._longest))
        with self._of_endpoint.slot_now(endpoint.id), self._of_team.slot_now(endpoint.team_id):
            # Before it is sent: what a process that dies has sent is recorded all the same.
            async with audited():
                pass
            answer = await self._request(endpoint, webhook_id, body_of(payload))
            async with transaction():
                delivery = await records.insert_ping(webhook_id, endpoint.id, payload, answer)
            await self._circuit.note(endpoint.id, answer, probing=False)
        record = await records.find_delivery(delivery, endpoint.id)
        assert record is not None, "it was written a moment ago"
        return record

    async def _request(self, endpoint: EndpointRecord, webhook_id: str, body: bytes) -> AttemptResult:
        headers = signed_headers(
            await records.signing_secrets(self._box, endpoint.id),
            event=EventType.PING.value,
            webhook_id=webhook_id,
            timestamp=int(time()),
            body=body,
        )
        return await self._sender.send(endpoint.url, headers, body, party=records.party_of(endpoint.team_id))
