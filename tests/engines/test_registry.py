"""The registry takes whole adapters only, one for each engine."""

import pytest

from app.contracts.base import Engine
from app.engines.base import AdminAddress, EngineAdapter
from app.engines.mysql import MySQLAdapter
from app.engines.postgres import PostgresAdapter
from app.engines.registry import ADAPTERS, open_adapter, registered


def test_every_engine_has_its_adapter() -> None:
    assert set(ADAPTERS) == set(Engine)
    for engine in Engine:
        adapter = open_adapter(engine, AdminAddress(host="db.example", port=1, user="admin", password="hidden"))
        assert adapter.engine is engine
        assert adapter.label
        assert adapter.uri_scheme
        assert adapter.default_port > 0


def test_a_missing_method_stops_the_load() -> None:
    class Partial(PostgresAdapter):
        destroy = EngineAdapter.destroy  # abstract again

    with pytest.raises(TypeError, match="Partial lacks destroy"):
        registered(Partial, MySQLAdapter)


def test_a_missing_name_stops_the_load() -> None:
    class Nameless(EngineAdapter):
        engine = Engine.MYSQL

    with pytest.raises(TypeError, match=r"lacks label, uri_scheme, .*, tells_sessions_apart, add_credential, close"):
        registered(PostgresAdapter, Nameless)  # type: ignore[type-abstract]  # that is the point


def test_an_engine_without_or_with_two_adapters_stops_the_load() -> None:
    with pytest.raises(TypeError, match="no adapter for mysql"):
        registered(PostgresAdapter)
    with pytest.raises(TypeError, match="postgres has two adapters"):
        registered(PostgresAdapter, MySQLAdapter, PostgresAdapter)
