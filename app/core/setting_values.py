"""What the value of a setting may be, and how it is read from its variable's text."""

from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import Meta

from app.core.logging import LEVELS

_LARGEST = 1_000_000_000
"""About 31 years in seconds, so that the resulting times can still be represented."""
_ABOVE_ZERO = f"above 0, at most {_LARGEST}"
_FROM_ZERO = f"from 0 to {_LARGEST}"

# An operator reads the description in place of msgspec's messages, which name Python's types. "nan" fulfils no bound.
PositiveInt = Annotated[int, Meta(gt=0, le=_LARGEST, description=f"a whole number {_ABOVE_ZERO}")]
NonNegativeInt = Annotated[int, Meta(ge=0, le=_LARGEST, description=f"a whole number {_FROM_ZERO}")]
PositiveFloat = Annotated[float, Meta(gt=0, le=_LARGEST, description=f"a number {_ABOVE_ZERO}")]
NonNegativeFloat = Annotated[float, Meta(ge=0, le=_LARGEST, description=f"a number {_FROM_ZERO}")]
NonNegativeFloats = Annotated[
    tuple[NonNegativeFloat, ...], Meta(min_length=1, description=f"numbers {_FROM_ZERO}, comma-separated")
]
Percent = Annotated[int, Meta(ge=1, le=100, description="a whole number from 1 to 100")]
SecondsOfADay = Annotated[int, Meta(ge=1, le=86_400, description="a whole number from 1 to 86400")]
Port = Annotated[int, Meta(ge=1, le=65_535, description="a port from 1 to 65535")]
Url = Annotated[str, Meta(pattern="^https?://", description="a URL")]
Origin = Annotated[
    str,
    Meta(
        pattern=r"^https?://([a-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?$",
        description="https://host or http://host, with no path",
    ),
]
LogFormat = Annotated[Literal["json", "console"], Meta(description="json or console")]
LogLevel = Annotated[str, Meta(pattern=f"^({'|'.join(LEVELS)})$", description=f"one of {', '.join(LEVELS)}")]
ObjectLock = Annotated[Literal["off", "governance", "compliance"], Meta(description="off, governance or compliance")]


def read(text: str, kind: Any) -> Any:
    """Reads the text as a value of the type `kind`, which may also be a union of a type and None. `on` and `off` are
    booleans too, and commas separate the items of a tuple. Raises `ValueError` with what was expected."""
    if type(None) in get_args(kind):
        kind = get_args(kind)[0]
    base = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    if base is Path:
        return Path(text).expanduser()
    value: Any = text
    if get_origin(base) is tuple:
        value = [part.strip() for part in text.split(",") if part.strip()]
    elif base is bool:
        value = {"on": "true", "off": "false"}.get(text.lower(), text)
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError as fault:
        raise ValueError(f"expected {_description(kind) or fault}") from None


def _description(kind: Any) -> str | None:
    if kind is bool:
        return "true or false, or on or off"
    return next((meta.description for meta in get_args(kind) if isinstance(meta, Meta)), None)
