"""Identifiers: unguessable, and of a form that every place where they go accepts."""

import os
import re
from uuid import uuid4

from app.core.ids import engine_name, engine_password, marker, new_uuid, request_id

MANY = 500


def test_engine_names_need_no_quoting_and_match_no_wildcard() -> None:
    names = {engine_name() for _ in range(MANY)}
    assert len(names) == MANY
    assert all(re.fullmatch(r"[a-z][a-z0-9]{22}", name) for name in names)


def test_passwords_need_no_escaping() -> None:
    passwords = {engine_password() for _ in range(MANY)}
    assert len(passwords) == MANY
    assert all(re.fullmatch(r"[A-Za-z0-9]{32}", password) for password in passwords)


def test_a_marker_belongs_to_one_database_and_does_not_tell_which() -> None:
    one, other = uuid4(), uuid4()
    assert marker(one) == marker(one) != marker(other)
    assert re.fullmatch(r"headwater:[0-9a-f]{32}", marker(one))
    assert one.hex not in marker(one)


def test_request_ids_and_uuids_differ() -> None:
    assert len({request_id() for _ in range(MANY)}) == MANY
    assert len({new_uuid() for _ in range(MANY)}) == MANY
    assert new_uuid().version == 4


def test_a_forked_process_gives_ids_of_its_own() -> None:
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        os.write(writing, request_id().encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 100).decode() != request_id()
    os.close(reading)
    os.close(writing)
