"""Query parameters that narrow a list of databases. A parameter that may be repeated matches any of its values, but
`label` all.

They are read as text: `app.databases.filters` refuses values that do not exist, and says which do.
"""

from typing import Annotated

from litestar.params import QueryParameter

from app.contracts.base import Engine
from app.databases.filters import LISTED, MOST_LABELS_SOUGHT, MOST_REGIONS, NAME_PATTERN, PLAN_NAMES
from app.databases.labels import KEY_PATTERN, VALUE_PATTERN

NameFilter = Annotated[
    str | None,
    QueryParameter(
        name="name", description="What the name begins with.", schema_extra={"pattern": f"^{NAME_PATTERN}$"}
    ),
]
StatusFilter = Annotated[
    tuple[str, ...],
    QueryParameter(
        name="status",
        description="May be repeated: any of them.",
        schema_extra={"items": {"type": "string", "enum": [status.value for status in LISTED]}},
    ),
]
EngineFilter = Annotated[
    tuple[str, ...],
    QueryParameter(
        name="db_type",
        description="May be repeated: any of them.",
        schema_extra={"items": {"type": "string", "enum": [engine.value for engine in Engine]}},
    ),
]
RegionFilter = Annotated[
    tuple[str, ...],
    QueryParameter(
        name="region",
        description="A region's code. May be repeated: any of them.",
        schema_extra={"items": {"type": "string", "minLength": 1, "maxLength": 255}, "maxItems": MOST_REGIONS},
    ),
]
PlanFilter = Annotated[
    tuple[str, ...],
    QueryParameter(
        name="plan",
        description="May be repeated: any of them.",
        schema_extra={"items": {"type": "string", "enum": list(PLAN_NAMES)}},
    ),
]
LabelFilter = Annotated[
    tuple[str, ...],
    QueryParameter(
        name="label",
        description="A label, as `key:value`. May be repeated: all of them.",
        schema_extra={
            "items": {"type": "string", "pattern": f"^{KEY_PATTERN}:{VALUE_PATTERN}$"},
            "maxItems": MOST_LABELS_SOUGHT,
        },
    ),
]
