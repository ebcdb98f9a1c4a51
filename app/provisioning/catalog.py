"""`GET /api/v1/database_types`: the engines and regions of the registered hosts. Interface specification, sections 2.7
and 4.3."""

import msgspec
from litestar import get

from app.auth.scopes import Reach, Scope
from app.contracts.base import Engine
from app.core.context import current_request_id
from app.engines.registry import ADAPTERS
from app.hosts.records import ServedRegion, list_served
from app.web.operation import operation


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
    """An engine: `value` is what a create takes as `db_type`, a region's `code` what it takes as `region`. Some region
    has hosts of it where `is_provisionable`, and one that takes new databases where `is_available`."""

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


class Catalog(msgspec.Struct, kw_only=True):
    data: list[CatalogEntry]
    request_id: str = msgspec.field(default_factory=current_request_id)


_EXAMPLE = Catalog(
    data=[
        CatalogEntry(
            value="postgres",
            label="PostgreSQL",
            is_provisionable=True,
            is_available=True,
            regions=[Region(code="us-east-1", label="US East 1", is_available=True)],
            extensions=[Extension(name="pg_trgm", regions=["us-east-1"])],
        )
    ]
)


@get(
    "/database_types",
    **operation(
        "listDatabaseTypes",
        "List engines and regions",
        scopes=(Scope.DATABASES_READ,),
        reach=Reach.OWN,
        answers={200: Catalog},
        examples={200: _EXAMPLE},
    ),
)
async def list_database_types() -> Catalog:
    return Catalog(data=await catalog())


async def catalog() -> list[CatalogEntry]:
    """Every engine; a region is available when one of its hosts takes new databases. Hosts that were
    set aside are no part of it."""
    served = await list_served()
    return [*(_entry(engine, [one for one in served if one.engine is engine]) for engine in Engine), _SQLITE]


def _entry(engine: Engine, served: list[ServedRegion]) -> CatalogEntry:
    regions = [Region(code=one.region, label=region_label(one.region), is_available=one.open) for one in served]
    return CatalogEntry(
        value=engine.value,
        label=ADAPTERS[engine].label,
        is_provisionable=bool(regions),
        is_available=any(region.is_available for region in regions),
        regions=regions,
        extensions=_extensions(served),
    )


def _extensions(served: list[ServedRegion]) -> list[Extension]:
    """The extensions, each with the regions in which a database gets it wherever it is placed there."""
    common = {one.region: set.intersection(*map(set, one.extensions)) for one in served if one.extensions}
    names = sorted({name for names in common.values() for name in names})
    return [
        Extension(name=name, regions=sorted(region for region in common if name in common[region])) for name in names
    ]


def region_label(code: str) -> str:
    """`us-east-1` is `US East 1`; a code of another form stands for itself."""
    area, _, rest = code.partition("-")
    if area not in _AREAS or not rest:
        return code
    return f"{_AREAS[area]} {rest.replace('-', ' ').title()}"
