"""Extensions that an operator listed and a host lacks."""

from collections.abc import Sequence

from app.engines.base import EngineError
from app.engines.registry import ADAPTERS
from app.hosts.service import list_hosts
from app.upkeep.reconcile.report import Violation

MISSING_EXTENSION = "extension_missing"


async def missing_extensions(listed: Sequence[str]) -> list[Violation]:
    """A finding for each missing extension of each host, as of the last inspection; or one for the list, if it can't
    be used."""
    found = []
    for host in await list_hosts():
        try:
            missing = ADAPTERS[host.engine].missing_extensions(listed, host.extensions)
        except EngineError as error:
            return [Violation(rule=MISSING_EXTENSION, subject="HEADWATER_POSTGRES_EXTENSIONS", detail=str(error))]
        found += [
            Violation(
                rule=MISSING_EXTENSION,
                subject=f"{host.host}:{host.port}/{name}",
                detail="new databases there lack it: a superuser makes it in the template",
            )
            for name in missing
        ]
    return found
