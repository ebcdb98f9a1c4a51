"""Octets that are no text, in MySQL's string literals, are written in hexadecimal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.contracts.base import Engine
from app.dialects.errors import SqlError
from app.dialects.registry import DIALECTS
from tests.support.together import together

MYSQL = DIALECTS[Engine.MYSQL]


def spelled(script: bytes) -> str:
    return MYSQL.without_octets(script.decode(errors="surrogateescape"))


@together(
    ("script", "text"),
    [
        (b"INSERT INTO a VALUES (1,'\xff'),(2,'\xc3\xbc');", "INSERT INTO a VALUES (1,X'ff'),(2,'\u00fc');"),
        (b"SELECT _binary '\x80',\"\xfe'\"", "SELECT _binary X'80',X'fe27'"),
        (b"/*!40000 SET @a = '\xff' */;", "/*!40000 SET @a = X'ff' */;"),
        (b"SELECT 1 -- caf\xe9\n;/* \xff */", "SELECT 1 -- caf\ufffd\n;/* \ufffd */"),
        (b"SELECT '\xff\\0\\'''\\\\\\Z\\n\\t\\r\\b\\\"\\%\\_\\x'", "SELECT X'ff0027275c1a0a090d08225c255c5f78'"),
        (b"SELECT '\xff\"\"\\\xfe'", "SELECT X'ff2222fe'"),
    ],
)
def test_in_a_literal_and_in_a_comment(script: bytes, text: str) -> None:
    assert spelled(script) == text


@pytest.mark.parametrize("script", [b"CREATE TABLE caf\xe9 (i int)", b"SELECT `\xff`", b"SELECT \xff"])
def test_elsewhere_they_are_refused_by_their_place(script: bytes) -> None:
    with pytest.raises(SqlError) as refused:
        spelled(script)
    assert script[refused.value.offset] >= 0x80


@given(st.binary())
def test_what_mysqldump_escapes_is_what_it_was(value: bytes) -> None:
    escapes = {0: b"\\0", 10: b"\\n", 13: b"\\r", 26: b"\\Z", 34: b'\\"', 39: b"\\'", 92: b"\\\\"}
    octets = b"\xff" + value
    literal = b"".join(escapes.get(octet, bytes([octet])) for octet in octets)
    assert spelled(b"SELECT '" + literal + b"'") == f"SELECT X'{octets.hex()}'"
