"""What can be asked for: the engines and regions of the registered hosts."""

import msgspec

from app.contracts.base import Engine
from app.engines.registry import ADAPTERS
from app.store.session import fetch


class Region(msgspec.Struct, kw_only=True):
    code: str
    label: str
    is_available: bool


class Extension(msgspec.Struct, kw_only=True):
    """What a tenant may add to its database with CREATE EXTENSION."""

    name: str
    regions: list[str]
    """The codes of those in which every host has it."""


class CatalogEntry(msgspec.Struct, kw_only=True):
    """Interface specification, section 2.7, which doesn't have `extensions`."""

    value: str
    label: str
    is_provisionable: bool
    is_available: bool
    regions: list[Region]
    extensions: list[Extension]
    """None for engines without such a thing."""


_SQLITE = CatalogEntry(
    value="sqlite", label="SQLite", is_provisionable=False, is_available=False, regions=[], extensions=[]
)
"""Announced by the specification as a rollout in progress."""

_AREAS = {
    "us": "US",
    "eu": "Europe",
    "ap": "Asia Pacific",
    "sa": "South America",
    "ca": "Canada",
    "af": "Africa",
    "me": "Middle East",
}


# Of a region, what a database gets wherever it is placed there.
_EXTENSIONS = """
WITH open AS (
    SELECT engine, region, extensions FROM engine_hosts WHERE sick_until IS DISTINCT FROM 'infinity' AND NOT draining
), common AS (
    SELECT o.engine, o.region, name FROM open o, unnest(o.extensions) AS name GROUP BY 1, 2, 3
    HAVING count(*) = (SELECT count(*) FROM open p WHERE p.engine = o.engine AND p.region = o.region)
)
SELECT engine, name, array_agg(region ORDER BY region) AS regions FROM common GROUP BY 1, 2 ORDER BY 1, 2
"""


async def catalog() -> list[CatalogEntry]:
    """Every engine; a region is available when one of its hosts takes new databases. Hosts that were
    set aside are no part of it."""
    rows = await fetch(
        """
        SELECT engine, region, bool_or(NOT draining) AS open FROM engine_hosts
        WHERE sick_until IS DISTINCT FROM 'infinity'
        GROUP BY engine, region ORDER BY engine, region
        """
    )
    offered = await fetch(_EXTENSIONS)
    entries = []
    for engine in Engine:
        regions = [
            Region(code=row["region"], label=region_label(row["region"]), is_available=row["open"])
            for row in rows
            if row["engine"] == engine
        ]
        entries.append(
            CatalogEntry(
                value=engine.value,
                label=ADAPTERS[engine].label,
                is_provisionable=bool(regions),
                is_available=any(region.is_available for region in regions),
                regions=regions,
                extensions=[
                    Extension(name=row["name"], regions=row["regions"]) for row in offered if row["engine"] == engine
                ],
            )
        )
    return [*entries, _SQLITE]


def region_label(code: str) -> str:
    """`us-east-1` is `US East 1`; a code of another form stands for itself."""
    area, _, rest = code.partition("-")
    if area not in _AREAS or not rest:
        return code
    return f"{_AREAS[area]} {rest.replace('-', ' ').title()}"
