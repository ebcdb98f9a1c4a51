"""Sealed values: open only where they lie, only unchanged, and under keys that rotate."""

import base64
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.secrets import InvalidSecret, SecretBox, SecretLocation, new_key_setting
from tests.support.together import together

OLD, NEW = os.urandom(32), os.urandom(32)
PLACE = SecretLocation("databases", "password_sealed", "42")
BOX = SecretBox({"old": OLD})


@given(secret=st.text())
def test_what_is_sealed_opens(secret: str) -> None:
    sealed = BOX.seal(secret, PLACE)
    assert BOX.open(sealed, PLACE) == secret
    assert sealed.startswith(b"old\x00")


def test_the_same_secret_is_sealed_differently_each_time() -> None:
    assert BOX.seal("secret", PLACE) != BOX.seal("secret", PLACE)


def test_a_sealed_value_shows_nothing() -> None:
    assert b"hunter2" not in BOX.seal("hunter2", PLACE)


@pytest.mark.parametrize(
    "elsewhere",
    [
        SecretLocation("api_keys", "password_sealed", "42"),
        SecretLocation("databases", "other", "42"),
        SecretLocation("databases", "password_sealed", "43"),
        SecretLocation("databases", "password_sealed", ""),
    ],
)
def test_it_opens_nowhere_else(elsewhere: SecretLocation) -> None:
    with pytest.raises(InvalidSecret, match=elsewhere.table):
        BOX.open(BOX.seal("secret", PLACE), elsewhere)


@given(data=st.data())
def test_a_changed_byte_is_noticed(data: st.DataObject) -> None:
    sealed = bytearray(BOX.seal("secret", PLACE))
    index = data.draw(st.integers(0, len(sealed) - 1))
    sealed[index] ^= data.draw(st.integers(1, 255))
    with pytest.raises(InvalidSecret):
        BOX.open(bytes(sealed), PLACE)


@together("sealed", [b"", b"old", b"old\x00", b"old\x00short", b"\x00" * 40])
def test_what_never_was_sealed(sealed: bytes) -> None:
    with pytest.raises(InvalidSecret):
        BOX.open(sealed, PLACE)


def test_keys_rotate() -> None:
    sealed_before = BOX.seal("secret", PLACE)
    rotating = SecretBox({"new": NEW, "old": OLD})
    assert rotating.open(sealed_before, PLACE) == "secret"
    sealed_since = rotating.seal("secret", PLACE)
    rotated = SecretBox({"new": NEW})
    assert rotated.open(sealed_since, PLACE) == "secret"
    with pytest.raises(InvalidSecret, match="not configured"):
        rotated.open(sealed_before, PLACE)


def test_another_key_of_the_same_name_opens_nothing() -> None:
    with pytest.raises(InvalidSecret):
        SecretBox({"old": NEW}).open(BOX.seal("secret", PLACE), PLACE)


def test_the_setting() -> None:
    encoded = base64.b64encode(OLD).decode()
    box = SecretBox.from_setting(f"new:{base64.b64encode(NEW).decode()}, old:{encoded}")
    assert box.seal("secret", PLACE).startswith(b"new\x00")
    assert box.open(BOX.seal("secret", PLACE), PLACE) == "secret"
    assert SecretBox.from_setting(new_key_setting()).open is not None


@together("setting", [None, "", "k1", ":AAAA", "k1:%%%", "k1:c2hvcnQ=", "k1:AAAA,"])
def test_a_setting_that_cannot_be(setting: str | None) -> None:
    with pytest.raises(ValueError, match=r"key|KEYS") as fault:
        SecretBox.from_setting(setting)
    assert "c2hvcnQ" not in str(fault.value)


def test_no_keys_at_all() -> None:
    with pytest.raises(ValueError, match="at least one"):
        SecretBox({})
