"""The test delivery: one request, made while the caller waits, through the same guard and under the same signature."""

from time import time

import msgspec

from app.core.clock import utc_now
from app.core.ids import new_uuid
from app.core.secrets import SecretBox
from app.egress.sender import Sender
from app.events.types import EventType
from app.store.session import transaction
from app.webhooks import circuit, records
from app.webhooks.attempts import body_of
from app.webhooks.records import DeliveryRecord, EndpointRecord
from app.webhooks.schemas import endpoint_view
from app.webhooks.signing import signed_headers


async def ping(box: SecretBox, sender: Sender, endpoint: EndpointRecord) -> DeliveryRecord:
    """Its record is written with its outcome: a process that dies in between leaves none that would stay pending."""
    webhook_id = f"msg_{new_uuid().hex}"
    message = {"event": EventType.PING.value, "timestamp": utc_now().isoformat(), "data": endpoint_view(endpoint)}
    payload = msgspec.json.encode(message).decode()
    body = body_of(payload)
    headers = signed_headers(
        await records.signing_secrets(box, endpoint.id),
        event=EventType.PING.value,
        webhook_id=webhook_id,
        timestamp=int(time()),
        body=body,
    )
    answer = await sender.send(endpoint.url, headers, body)
    async with transaction():
        delivery = await records.insert_ping(webhook_id, endpoint.id, payload, answer)
    await circuit.note(endpoint.id, answer, probing=False)
    record = await records.find_delivery(delivery, endpoint.id)
    assert record is not None, "it was written a moment ago"
    return record
