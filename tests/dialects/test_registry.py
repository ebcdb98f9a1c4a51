"""The registry takes whole dialects only, one for each engine."""

import pytest

from app.contracts.base import Engine
from app.dialects.base import Dialect
from app.dialects.mysql.dialect import MySQLDialect
from app.dialects.postgres.dialect import PostgresDialect
from app.dialects.registry import DIALECTS, complete
from app.engines.registry import ADAPTERS


def test_every_engine_has_its_dialect() -> None:
    assert list(DIALECTS) == list(Engine)
    for engine, dialect in DIALECTS.items():
        assert dialect.engine is engine
        assert dialect.label == ADAPTERS[engine].label


def test_an_engine_without_or_with_two_dialects_stops_the_load() -> None:
    with pytest.raises(TypeError, match="no dialect for mysql"):
        complete(PostgresDialect)
    with pytest.raises(TypeError, match="postgres has two dialects"):
        complete(PostgresDialect, MySQLDialect, PostgresDialect)


def test_a_missing_method_stops_the_load() -> None:
    class Partial(PostgresDialect):
        analyze = Dialect.analyze  # abstract again

    with pytest.raises(TypeError, match="Partial lacks analyze"):
        complete(Partial, MySQLDialect)


def test_a_missing_name_stops_the_load() -> None:
    class Nameless(Dialect):
        engine = Engine.MYSQL

    with pytest.raises(TypeError, match="Nameless lacks label, name_mark, signs, schema_reads, error_phrases, not_gra"):
        complete(PostgresDialect, Nameless)  # type: ignore[type-abstract]  # that is the point
