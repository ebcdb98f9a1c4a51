"""`GET /api/v1/database_types`. Interface specification, sections 2.7 and 4.3."""

from litestar import get
from msgspec import Struct, field

from app.auth.scopes import Scope
from app.catalog.service import CatalogEntry, Extension, Region, catalog
from app.core.context import current_request_id
from app.web.operation import operation


class Catalog(Struct, kw_only=True):
    data: list[CatalogEntry]
    request_id: str = field(default_factory=current_request_id)


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
        answers={200: Catalog},
        examples={200: _EXAMPLE},
    ),
)
async def list_database_types() -> Catalog:
    return Catalog(data=await catalog())
