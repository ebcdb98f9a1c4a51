"""Logs: one JSON object a line, without secrets and without local variables."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from app.core import context
from app.core import logging as our_logging


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What is logged, in the form of production."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    our_logging.configure("json")
    lines = io.StringIO()
    (handler,) = root.handlers
    assert isinstance(handler, logging.StreamHandler)
    handler.setStream(lines)
    yield lines
    root.handlers = handlers
    root.setLevel(level)


def lines(written: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written.getvalue().splitlines()]


def test_one_object_a_line(written: io.StringIO) -> None:
    structlog.get_logger("ours").info("it_happened", database="d\n1")
    logging.getLogger("theirs").warning("it %s", "happened")
    first, second = lines(written)
    assert (first["event"], first["level"], first["logger"]) == ("it_happened", "info", "ours")
    assert (first["database"], second["event"], second["logger"]) == ("d\n1", "it happened", "theirs")
    assert first["timestamp"].endswith("Z")


@pytest.mark.parametrize("name", ["password", "api_key", "secret", "dsn", "admin_dsn", "Authorization", "token"])
def test_a_value_under_a_secrets_name_stays(written: io.StringIO, name: str) -> None:
    structlog.get_logger().info("it_happened", **{name: "hunter2"})
    assert "hunter2" not in written.getvalue()
    assert lines(written)[0][name] == "[redacted]"


def fail() -> None:
    password = "".join(["hun", "ter2"])
    raise LookupError(f"nothing of {len(password)} letters")


def test_a_traceback_tells_lines_and_no_local_variables(written: io.StringIO) -> None:
    try:
        fail()
    except LookupError as fault:
        structlog.get_logger().error("it_failed", exc_info=fault)
        logging.getLogger("theirs").exception("it failed too")
    assert "hunter2" not in written.getvalue()
    for line in lines(written):
        assert "LookupError: nothing of 7 letters" in line["exception"]
        assert "in fail" in line["exception"]


def test_nor_does_the_form_for_people(written: io.StringIO) -> None:
    our_logging.configure("console")
    (handler,) = logging.getLogger().handlers
    assert isinstance(handler, logging.StreamHandler)
    handler.setStream(written)
    try:
        fail()
    except LookupError:
        logging.getLogger("theirs").exception("it failed")
    assert "nothing of 7 letters" in written.getvalue()
    assert "hunter2" not in written.getvalue()


def test_a_requests_id_is_on_every_line_that_it_causes(written: io.StringIO) -> None:
    token = context.request_id.set("req_1")
    structlog.get_logger().info("inside")
    logging.getLogger("theirs").warning("inside too")
    context.request_id.reset(token)
    structlog.get_logger().info("outside")
    assert [line.get("request_id") for line in lines(written)] == ["req_1", "req_1", None]
