"""Which dialect is which engine's: the one place that knows the concrete ones."""

import inspect
from collections.abc import Mapping
from types import MappingProxyType

from app.contracts.base import Engine
from app.dialects.base import Dialect
from app.dialects.mysql.dialect import MySQLDialect
from app.dialects.postgres.dialect import PostgresDialect


def complete(*dialects: type[Dialect]) -> Mapping[Engine, Dialect]:
    """The dialects by their engines. Raises `TypeError` when a dialect lacks a method or a name, or an engine has none
    or two."""
    by_engine: dict[Engine, Dialect] = {}
    for dialect in dialects:
        attributes = [name for name in Dialect.__annotations__ if not name.startswith("_")]
        missing = [name for name in attributes if not hasattr(dialect, name)]
        missing += sorted(getattr(dialect, "__abstractmethods__", ())) if inspect.isabstract(dialect) else []
        if missing:
            raise TypeError(f"{dialect.__name__} lacks {', '.join(missing)}")
        if dialect.engine in by_engine:
            raise TypeError(f"{dialect.engine} has two dialects")
        by_engine[dialect.engine] = dialect()
    without = [engine.value for engine in Engine if engine not in by_engine]
    if without:
        raise TypeError(f"no dialect for {', '.join(without)}")
    return MappingProxyType({engine: by_engine[engine] for engine in Engine})


DIALECTS = complete(PostgresDialect, MySQLDialect)
"""In the order of `Engine`."""
