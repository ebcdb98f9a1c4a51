"""The registry of adapters: the only module that imports the concrete ones."""

import inspect
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
            "transactional_scripts",
            "rotation_renames",
            "tells_sessions_apart",
        )
        missing = [name for name in attributes if not hasattr(adapter, name)]
        missing += sorted(getattr(adapter, "__abstractmethods__", ())) if inspect.isabstract(adapter) else []
        if missing:
            raise TypeError(f"{adapter.__name__} lacks {', '.join(missing)}")
        if adapter.engine in by_engine:
            raise TypeError(f"{adapter.engine} has two adapters")
        by_engine[adapter.engine] = adapter
    unserved = [engine.value for engine in Engine if engine not in by_engine]
    if unserved:
        raise TypeError(f"no adapter for {', '.join(unserved)}")
    return MappingProxyType(by_engine)


ADAPTERS = registered(PostgresAdapter, MySQLAdapter)


def open_adapter(engine: Engine, address: AdminAddress, installation: str = "") -> EngineAdapter:
    """An adapter that hasn't connected yet. The caller closes it, in the event loop that used it."""
    return ADAPTERS[engine](address, installation)
