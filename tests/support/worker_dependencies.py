"""What a worker works with, where a test makes one in its own process."""

from app.core.secrets import SecretBox, new_key_setting
from app.core.settings import Settings
from app.hosts.adapters import Adapters
from app.quotas.plans import DEFAULT_PLANS
from tests.support.backups import any_store
from workers.queues import WorkerDependencies


def tools(settings: Settings | None = None) -> WorkerDependencies:
    box = SecretBox.from_setting(new_key_setting())
    settings = settings or Settings()
    return WorkerDependencies(
        settings=settings,
        plans=DEFAULT_PLANS,
        box=box,
        adapters=Adapters(box),
        backup_store=any_store(box),
    )
