"""The registry takes whole adapters only, one for each engine."""

import pytest

from app.contracts.base import Engine
from app.engines.base import AdminAddress, EngineAdapter
from app.engines.mysql import MySQLAdapter
from app.engines.postgres import PostgresAdapter
from app.engines.registry import ADAPTERS, loads_dumps_of, open_adapter, registered


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

    with pytest.raises(TypeError, match=r"lacks label, uri_scheme, .*, distinguishes_sessions, add_credential, close"):
        registered(PostgresAdapter, Nameless)  # type: ignore[type-abstract]  # that is the point


def test_an_engine_without_or_with_two_adapters_stops_the_load() -> None:
    with pytest.raises(TypeError, match="no adapter for mysql"):
        registered(PostgresAdapter)
    with pytest.raises(TypeError, match="postgres has two adapters"):
        registered(PostgresAdapter, MySQLAdapter, PostgresAdapter)


def test_a_flavour_of_two_adapters_stops_the_load() -> None:
    class Borrower(MySQLAdapter):
        flavours = frozenset({"mysql", "postgres"})

    with pytest.raises(TypeError, match="two adapters have the flavour postgres"):
        registered(PostgresAdapter, Borrower)


@pytest.mark.parametrize(
    ("flavour", "dumped", "version", "loads"),
    [
        ("postgres", "18.6", "18.1 (Debian 18.1-1.pgdg120+1)", True),
        ("postgres", "17.9", "18.1", True),
        ("postgres", "18.1", "17.9", False),
        ("mysql", "9.7.4", "9.7.1", True),
        ("mysql", "9.7.4", "9.6.9", False),
        ("mariadb", "10.11.19-MariaDB", "11.4.2-MariaDB-log", True),
        ("mariadb", "11.4.2-MariaDB", "10.11.19-MariaDB", False),
        ("unheard-of", "1.0", "1.0", False),
    ],
)
def test_a_server_loads_dumps_of_its_series_and_older(flavour: str, dumped: str, version: str, loads: bool) -> None:
    assert loads_dumps_of(flavour, dumped, version) is loads
