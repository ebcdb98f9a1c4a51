"""The registry of adapters: the only module that imports the concrete ones."""

import inspect
import re
from collections.abc import Mapping
from types import MappingProxyType

from app.contracts.base import Engine
from app.engines.base import AdminAddress, EngineAdapter
from app.engines.mysql import MySQLAdapter
from app.engines.postgres import PostgresAdapter


def registered(*adapters: type[EngineAdapter]) -> Mapping[Engine, type[EngineAdapter]]:
    """Raises `TypeError` when an adapter lacks a method or an attribute, or an engine has no adapter or two."""
    by_engine: dict[Engine, type[EngineAdapter]] = {}
    for adapter in adapters:
        attributes = (
            "engine",
            "label",
            "uri_scheme",
            "default_port",
            "telemetry_name",
            "transactional_scripts",
            "flavours",
            "dump_series",
            "rotation_renames",
            "distinguishes_sessions",
        )
        missing = [name for name in attributes if not hasattr(adapter, name)]
        missing += sorted(getattr(adapter, "__abstractmethods__", ())) if inspect.isabstract(adapter) else []
        if missing:
            raise TypeError(f"{adapter.__name__} lacks {', '.join(missing)}")
        if adapter.engine in by_engine:
            raise TypeError(f"{adapter.engine} has two adapters")
        if shared := [name for other in by_engine.values() for name in other.flavours & adapter.flavours]:
            raise TypeError(f"two adapters have the flavour {shared[0]}")
        by_engine[adapter.engine] = adapter
    unserved = [engine.value for engine in Engine if engine not in by_engine]
    if unserved:
        raise TypeError(f"no adapter for {', '.join(unserved)}")
    return MappingProxyType(by_engine)


ADAPTERS = registered(PostgresAdapter, MySQLAdapter)


def loads_dumps_of(flavour: str, dumped: str, version: str) -> bool:
    """Whether a server of this flavour and version loads a dump that a server of the version `dumped` made. False for a
    flavour that no adapter has."""
    series = next((adapter.dump_series for adapter in ADAPTERS.values() if flavour in adapter.flavours), None)
    return series is not None and _numbers(version)[:series] >= _numbers(dumped)[:series]


def _numbers(version: str) -> list[int]:
    """The numbers of a version as a server reports it, such as `10.11.19-MariaDB`."""
    return [int(number) for number in re.findall(r"\d+", version.partition("-")[0])]


def open_adapter(engine: Engine, address: AdminAddress, installation: str = "") -> EngineAdapter:
    """An adapter that hasn't connected yet. The caller closes it, in the event loop that used it."""
    return ADAPTERS[engine](address, installation)
