"""`headwater users sign-in-link`."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.cli.command import Headwater


async def made(headwater: Headwater) -> str:
    user = await headwater.json("users", "create", "--email", "ada@example.com", "--name", "Ada")
    return str(user["user_id"])


@pytest.mark.parametrize(
    ("settings", "origin"),
    [
        ({"PUBLIC_URL": "https://db.example.com"}, "https://db.example.com"),
        ({}, "http://localhost:8000"),
        ({"API_HOST": "0.0.0.0", "API_PORT": "9000"}, "http://localhost:9000"),
        ({"API_HOST": "10.0.0.5"}, "http://10.0.0.5:8000"),
    ],
    ids=["public", "loopback", "all-interfaces", "another-host"],
)
async def test_where_a_link_leads(headwater: Headwater, settings: dict[str, str], origin: str) -> None:
    link = await headwater.with_settings(**settings).json("users", "sign-in-link", await made(headwater))
    assert link.keys() == {"url", "expires_at"}
    page, _, token = link["url"].partition("#")
    assert page == f"{origin}/console/sign-in"
    assert len(token) == 43
    left = datetime.fromisoformat(link["expires_at"]) - datetime.now(UTC)
    assert timedelta(minutes=8) < left < timedelta(minutes=11)


async def test_a_link_for_nobody(headwater: Headwater) -> None:
    assert "user" in await headwater.refusal("users", "sign-in-link", "4711")


async def test_no_console_no_link(headwater: Headwater) -> None:
    off = headwater.with_settings(CONSOLE="off")
    assert "HEADWATER_CONSOLE is off" in await off.refusal("users", "sign-in-link", await made(headwater))
