"""The session state that changes how the server reads the next statement, and whether its transaction is still open."""

from typing import Any

from app.engines.errors import StatementFailed, StatementUncertain

READING = {"standard_conforming_strings": "on", "client_encoding": "UTF8"}
"""The settings under which statements were judged. The server reports every change of them."""


def check_reading(connection: Any) -> None:
    """Raises `StatementFailed` when the next statement would be read differently from how it was judged."""
    settings = connection.get_settings()
    for name, expected in READING.items():
        if (value := getattr(settings, name, None)) != expected:
            raise StatementFailed(f"{name} is {value} now, which changes how the rest of the script is read")


def check_open(connection: Any) -> None:
    """Raises `StatementUncertain` when the transaction has ended. Every response has the flag."""
    if not connection.is_in_transaction():
        raise StatementUncertain("the statement ended the transaction that the script runs in")
