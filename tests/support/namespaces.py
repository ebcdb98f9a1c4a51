"""Namespaces of a Temporal server: services that share the server and a namespace would take each other's tasks."""

from datetime import timedelta
from uuid import uuid4

from google.protobuf.duration_pb2 import Duration
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest

from app.core.temporal import connect
from app.local.temporal import TemporalService


async def new_namespace(server: TemporalService) -> str:
    """One of its own, for a service beside others."""
    name = f"test-{uuid4().hex}"
    client = await connect(server.address, "default")
    retention = Duration()
    retention.FromTimedelta(timedelta(days=3))
    await client.workflow_service.register_namespace(
        RegisterNamespaceRequest(namespace=name, workflow_execution_retention_period=retention)
    )
    return name
