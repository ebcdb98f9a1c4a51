"""`GET /api/v1/database_types`. Interface specification, sections 2.7 and 4.3."""

from litestar import get
from msgspec import Struct, field

from app.auth.scopes import Scope
from app.catalog.service import CatalogEntry, catalog
from app.web.guards import requires
from app.web.request_id import current_request_id


class Catalog(Struct, kw_only=True):
    data: list[CatalogEntry]
    request_id: str = field(default_factory=current_request_id)


@get(
    "/database_types",
    operation_id="listDatabaseTypes",
    summary="List engines and regions",
    guards=[requires(Scope.DATABASES_READ)],
)
async def list_database_types() -> Catalog:
    return Catalog(data=await catalog())
