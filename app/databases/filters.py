"""The filters of a list of databases."""

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, TypeVar, get_args

import msgspec

from app.contracts.base import DatabaseStatus, Engine
from app.core.errors import InvalidField
from app.databases.labels import parse_label
from app.databases.schemas import PlanName

Choice = TypeVar("Choice", bound=StrEnum)

LISTED = tuple(status for status in DatabaseStatus if status is not DatabaseStatus.DELETED)
"""The statuses of the databases in a list; the deleted ones have a list of their own."""
PLAN_NAMES: tuple[str, ...] = get_args(get_args(PlanName)[0])
MOST_REGIONS = 10
MOST_LABELS_SOUGHT = 5
NAME_PATTERN = "[a-z0-9][a-z0-9-]{0,62}"
"""The pattern of a name, or of its beginning."""
_REGION_PATTERN = r"[^\x00]{1,255}"


class DatabaseFilters(msgspec.Struct, frozen=True, kw_only=True):
    """Selects databases; an empty value doesn't restrict. A database has one of the statuses, one of the engines and so
    on, and all of the labels."""

    name: str | None = None
    """What its name begins with."""
    statuses: tuple[DatabaseStatus, ...] = ()
    engines: tuple[Engine, ...] = ()
    regions: tuple[str, ...] = ()
    plans: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    """Each as `key:value`."""

    @property
    def values(self) -> tuple[Any, ...]:
        """The parameters of `conditions`."""
        return (self.name, *(values or None for values in self._sequences), self.labels)

    @property
    def _sequences(self) -> tuple[tuple[str, ...], ...]:
        return self.statuses, self.engines, self.regions, self.plans


def conditions(first: int) -> str:
    """SQL that is true of a row `d` of `databases` that the filters let through. Their `values` are the parameters from
    `first` on."""
    parts = [f"(${first}::text IS NULL OR starts_with(d.name, ${first}::text))"]
    for number, column in enumerate(("status", "engine", "region", "plan"), first + 1):
        parts.append(f"(${number}::text[] IS NULL OR d.{column} = any(${number}::text[]))")
    parts.append(f"d.labels @> ${first + 5}::text[]")
    return " AND ".join(parts)


def read_filters(
    *,
    name: str | None = None,
    status: Sequence[str] = (),
    db_type: Sequence[str] = (),
    region: Sequence[str] = (),
    plan: Sequence[str] = (),
    label: Sequence[str] = (),
) -> DatabaseFilters:
    """Reads the filters from a query's parameters. Raises `InvalidField` that names the parameter, its value, and the
    values that there are."""
    if name is not None and not re.fullmatch(NAME_PATTERN, name):
        raise InvalidField("name", f"No name begins with {name[:100]!r}: names have 1 to 63 of a-z, 0-9 and -.")
    statuses = _distinct(status)
    if DatabaseStatus.DELETED in statuses:
        raise InvalidField("status", "Deleted databases are in a list of their own: GET /api/v1/deleted_databases.")
    _check_count("region", len(region), MOST_REGIONS)
    _check_count("label", len(label), MOST_LABELS_SOUGHT)
    for code in region:
        if not re.fullmatch(_REGION_PATTERN, code):
            raise InvalidField("region", f"There is no region {code[:100]!r}.")
    regions, labels = _distinct(region), tuple(parse_label(one) for one in _distinct(label))
    return DatabaseFilters(
        name=name,
        statuses=tuple(DatabaseStatus(_chosen("status", one, LISTED)) for one in statuses),
        engines=tuple(Engine(_chosen("db_type", one, Engine)) for one in _distinct(db_type)),
        regions=regions,
        plans=tuple(_chosen("plan", one, PLAN_NAMES) for one in _distinct(plan)),
        labels=labels,
    )


def check_regions(asked: Iterable[str], known: Iterable[str]) -> None:
    """Raises `InvalidField` for a region that does not exist."""
    choices = sorted(known)
    for region in asked:
        _chosen("region", region, choices)


def _distinct(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


def _chosen(parameter: str, value: str, choices: Iterable[str]) -> str:
    known = [str(choice) for choice in choices]
    if value not in known:
        there_is = f"Expected one of {', '.join(known)}; the parameter may be repeated." if known else "There is none."
        raise InvalidField(parameter, f"There is no {parameter} {value[:100]!r}. {there_is}")
    return value


def _check_count(parameter: str, count: int, most: int) -> None:
    if count > most:
        raise InvalidField(parameter, f"{parameter} can be given {most} times, not {count}.")
