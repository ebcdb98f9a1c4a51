"""Logs: one JSON object a line, without secrets and without local variables."""

import io
import json
import logging
from typing import Any

import pytest
import structlog

from app.core import context
from app.core.logging import LogLine, write_line


def lines(json_log: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in json_log.getvalue().splitlines()]


def test_one_object_a_line(json_log: io.StringIO) -> None:
    structlog.get_logger("ours").info("it_happened", database="d\n1")
    logging.getLogger("theirs").warning("it %s", "happened")
    first, second = lines(json_log)
    assert (first["event"], first["level"], first["logger"]) == ("it_happened", "info", "ours")
    assert (first["database"], second["event"], second["logger"]) == ("d\n1", "it happened", "theirs")
    assert first["timestamp"].endswith("Z")


@pytest.mark.parametrize("name", ["password", "api_key", "secret", "dsn", "admin_dsn", "Authorization", "token"])
def test_a_value_under_a_secrets_name_stays(json_log: io.StringIO, name: str) -> None:
    structlog.get_logger().info("it_happened", **{name: "hunter2"})
    assert "hunter2" not in json_log.getvalue()
    assert lines(json_log)[0][name] == "[redacted]"


def fail() -> None:
    password = "".join(["hun", "ter2"])
    raise LookupError(f"nothing of {len(password)} letters")


def test_a_traceback_tells_lines_and_no_local_variables(json_log: io.StringIO) -> None:
    try:
        fail()
    except LookupError as fault:
        structlog.get_logger().error("it_failed", exc_info=fault)
        logging.getLogger("theirs").exception("it failed too")
    assert "hunter2" not in json_log.getvalue()
    for line in lines(json_log):
        assert "LookupError: nothing of 7 letters" in line["exception"]
        assert "in fail" in line["exception"]


def test_nor_does_the_form_for_people(console_log: io.StringIO) -> None:
    try:
        fail()
    except LookupError:
        logging.getLogger("theirs").exception("it failed")
    assert "nothing of 7 letters" in console_log.getvalue()
    assert "hunter2" not in console_log.getvalue()


def test_a_requests_id_is_on_every_line_that_it_causes(json_log: io.StringIO) -> None:
    token = context.request_id.set("req_1")
    structlog.get_logger().info("inside")
    logging.getLogger("theirs").warning("inside too")
    context.request_id.reset(token)
    structlog.get_logger().info("outside")
    assert [line.get("request_id") for line in lines(json_log)] == ["req_1", "req_1", None]


NASTY = "one\ntwo\r{forged}\x1b[2J\x9b2J\u2028three\x7f\x85\x00\ud800"


def log_nasty_text() -> None:
    """By every way on which text of others comes into a line."""
    structlog.get_logger("ours").info("it_happened", reason=NASTY)
    structlog.get_logger("ours").info(NASTY)
    logging.getLogger("theirs").warning("it %s", NASTY)
    write_line(logging.INFO, LogLine(event=NASTY.replace("\ud800", ""), logger="app.ours"))


def test_no_text_ends_a_line_or_steers_a_terminal(json_log: io.StringIO) -> None:
    log_nasty_text()
    text = json_log.getvalue()
    assert len(lines(json_log)) == text.count("\n") == 4
    assert text.replace("\n", "").isprintable()
    assert lines(json_log)[0]["reason"] == NASTY


def test_nor_does_it_in_the_form_for_people(console_log: io.StringIO) -> None:
    log_nasty_text()
    text = console_log.getvalue()
    assert text.count("\n") == 4
    assert text.replace("\n", "").replace("\ud800", "").isprintable()


def test_a_line_of_an_errors_message_never_looks_like_one_of_the_log(console_log: io.StringIO) -> None:
    try:
        raise LookupError("first\n2026-01-01T00:00:00Z [info] forged\x1b[2J")
    except LookupError:
        logging.getLogger("theirs").exception("it failed")
    own, *traceback = console_log.getvalue().splitlines()
    assert "it failed" in own
    assert all(line.startswith("    ") for line in traceback)
    assert "\x1b" not in console_log.getvalue()


def test_what_is_long_is_cut(json_log: io.StringIO) -> None:
    structlog.get_logger().info("it_happened", reason="x" * 1_000_000)
    logging.getLogger("theirs").warning("y" * 1_000_000)
    try:
        raise LookupError("z" * 1_000_000 + " at the end")
    except LookupError:
        structlog.get_logger().exception("it_failed")
    reason, event, exception = (len(line) for line in json_log.getvalue().splitlines())
    assert max(reason, event) < 5_000
    assert exception < 40_000
    assert lines(json_log)[2]["exception"].endswith(" at the end")


def test_the_least_level_that_is_written(quiet_log: io.StringIO) -> None:
    for write in (structlog.get_logger("ours").info, logging.getLogger("theirs").info):
        write("left out")
    write_line(logging.INFO, LogLine(event="left out", logger="app.ours"))
    structlog.get_logger("ours").warning("kept")
    write_line(logging.ERROR, LogLine(event="kept", logger="app.ours"))
    assert [(line["event"], line["level"]) for line in lines(quiet_log)] == [("kept", "warning"), ("kept", "error")]


def test_a_line_of_our_own_in_the_form_for_people(console_log: io.StringIO) -> None:
    token = context.request_id.set("req_1")
    write_line(logging.INFO, LogLine(event="request", logger="app.ours"))
    context.request_id.reset(token)
    (line,) = console_log.getvalue().splitlines()
    assert "request" in line
    assert "req_1" in line


def test_what_libraries_write_of_each_step_is_left_out(debug_log: io.StringIO) -> None:
    """They write whole requests then."""
    structlog.get_logger("app.somewhere").debug("kept")
    write_line(logging.DEBUG, LogLine(event="kept", logger="app.somewhere"))
    logging.getLogger("httpcore.connection").debug("Authorization: Bearer hunter2")
    assert [line["event"] for line in lines(debug_log)] == ["kept", "kept"]
