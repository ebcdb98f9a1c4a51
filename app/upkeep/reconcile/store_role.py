"""Whether the service logs in to our own database with more power than it needs."""

from app.store.migrate import ADVICE
from app.store.service_role import current_role, powers_beyond_need
from app.upkeep.reconcile.findings import Violation

EXCESSIVE = "store_role_excessive"


async def check_store_role() -> list[Violation]:
    """One finding with all that the role may do and should not."""
    beyond = await powers_beyond_need()
    if not beyond:
        return []
    return [
        Violation(
            rule=EXCESSIVE,
            subject=await current_role(),
            detail=f"the service's role in our own database {'; '.join(beyond)}: {ADVICE}",
        )
    ]
