"""Time to connect to an engine's host, for processes of tests."""

from app.engines.mysql import connection as mysql_connection
from app.engines.postgres import connections as postgres_connections

CONNECT_SECONDS = 60


def be_patient() -> None:
    """On a crowded machine a host may not let this process in as soon as the service expects. There the step is taken
    again; tests take each once."""
    mysql_connection.CONNECT_SECONDS = postgres_connections.CONNECT_SECONDS = CONNECT_SECONDS
