"""Who keeps the newest seal of the audit log with the backups: the worker of a region, which reaches the store."""

from pathlib import Path

from app.audit.events import append
from app.audit.sealing import newest_seal, seal_events
from app.contracts.queues import engine_queue
from app.core.secrets import new_key_setting
from app.local.services import start
from app.local.temporal import TemporalService
from tests.support.backups import folder_store
from tests.support.forks import ForkedWorker
from tests.support.namespaces import new_namespace
from tests.support.waiting import until


async def test_the_worker_of_a_region_keeps_the_newest_seal(
    own_store: None, control_dsn: str, temporal_server: TemporalService, tmp_path: Path
) -> None:
    stored = tmp_path / "backups"
    environ = {
        "HEADWATER_CONTROL_DSN": control_dsn,
        "HEADWATER_TEMPORAL_ADDRESS": temporal_server.address,
        "HEADWATER_TEMPORAL_NAMESPACE": await new_namespace(temporal_server),
        "HEADWATER_SECRET_KEYS": new_key_setting(),
        "HEADWATER_BACKUP_STORE": stored.as_uri(),
        "HEADWATER_AUDIT_SEAL_SECONDS": "0.05",
    }
    worker = await start(
        ForkedWorker(
            "worker",
            log=tmp_path / "worker.log",
            environ=lambda: environ,
            queues=(engine_queue("us-east-1"),),
            metrics_port=0,
        )
    )
    try:
        # It runs before there is a seal, as in a new installation.
        await append("host.drain", ("host", 1), changes={"draining": (False, True)})
        assert await seal_events() == 1
        seal = await newest_seal()
        assert seal is not None

        async def kept() -> bool:
            return await folder_store(stored).audit_heads.all() == [(seal.id, seal.hash.hex())]

        await until(kept)
    finally:
        await worker.stop(timeout=5)
