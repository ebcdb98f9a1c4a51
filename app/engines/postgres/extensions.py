"""The extensions that an operator may have installed in new tenant databases.

Tenants create trusted extensions themselves. Every other one runs C code that a superuser vouches for. It is accepted
only if it was reviewed: it works on values alone, and accesses no file, no network, and no other tenant.
"""

from collections.abc import Sequence
from pathlib import Path

from app.engines.base import EngineError

SCRIPT = Path(__file__).with_name("extensions.sql")
REVIEWED = ("bloom", "moddatetime", "vector")
"""The list in the script is the same."""

_NETWORK = "it opens connections from the engine host"
_FILES = "it reads or writes the server's files"
_PAGES = "it reads or changes pages beneath the rights on tables"
_SHARED = "it shows what other tenants do, or uses up what they share"
_CODE = "it runs programs with the server's rights"
_REASONS = {
    **dict.fromkeys(("dblink", "postgres_fdw", "http", "pg_net", "mysql_fdw", "oracle_fdw", "tds_fdw"), _NETWORK),
    **dict.fromkeys(("adminpack", "file_fdw", "pg_read_file", "dict_xsyn"), _FILES),
    **dict.fromkeys(
        (
            *("amcheck", "pageinspect", "pg_freespacemap", "pg_surgery", "pg_visibility", "pg_walinspect"),
            *("pg_logicalinspect", "pgrowlocks", "pgstattuple"),
        ),
        _PAGES,
    ),
    **dict.fromkeys(("pg_buffercache", "pg_cron", "pg_prewarm", "pg_stat_statements", "pg_background"), _SHARED),
    **dict.fromkeys(("plperlu", "plpython3u", "pltclu", "plsh", "pljavau", "plr"), _CODE),
}


def check_names(names: Sequence[str]) -> None:
    """Raises `EngineError` with a sentence for each name that is not accepted."""
    faults = [f"{name}: {_reason(name)}" for name in names if name not in REVIEWED]
    if faults:
        raise EngineError(
            f"HEADWATER_POSTGRES_EXTENSIONS may name {', '.join(REVIEWED)}, and what it names is something else: "
            + "; ".join(faults)
        )


def _reason(name: str) -> str:
    return _REASONS.get(name, "tenants add it by themselves where PostgreSQL trusts it; else it isn't known to be safe")
