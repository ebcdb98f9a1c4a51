"""The namespace that the deployment makes, on a real Temporal server."""

import asyncio
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client

from app.local.temporal import TemporalService
from tests.deployment import compose


async def test_the_namespace_is_made_once_and_keeps_closed_workflows(temporal_server: TemporalService) -> None:
    name = f"deployment-{uuid4().hex}"
    environ = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "TEMPORAL_ADDRESS": temporal_server.address,
        "TEMPORAL_NAMESPACE": name,
        # The command keeps a configuration file of its user's.
        "HOME": str(temporal_server.log.parent),
    }
    for _ in range(2):
        script = compose.ROOT / "deploy/temporal/namespace.sh"
        run = await asyncio.to_thread(
            subprocess.run, ["sh", str(script)], env=environ, capture_output=True, text=True, check=False, timeout=60
        )
        assert run.returncode == 0, run.stderr
    client = await Client.connect(temporal_server.address)
    made = await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=name))
    assert made.config.workflow_execution_retention_ttl.ToTimedelta() == timedelta(hours=72)
