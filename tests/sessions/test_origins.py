"""Where a request with a session's cookie has to come from, and what its answers say to browsers.

A page of another port of the same host is of the same site: a browser sends our cookie with its requests, SameSite or
not. What such a page can't do is to name our origin as its own.
"""

import pytest

from app.store.session import fetch_scalar
from tests.support.answers import body_of, data_of, error_of
from tests.support.copies import Copies
from tests.support.in_process import LoneApi, lone_api
from tests.support.people import Person, follow, link_for, sign_in
from tests.support.together import together

ELSEWHERE = {
    "another-site": {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
    "sibling-port": {"Origin": "http://test:9000", "Sec-Fetch-Site": "same-site"},
    "sibling-port-that-claims-more": {"Origin": "http://test:9000"},
    "another-scheme": {"Origin": "https://test"},
    "opaque": {"Origin": "null"},
    "no-origin": {"Origin": ""},
    "says-nothing": {"Origin": "", "Sec-Fetch-Site": ""},
    "no-fetch-metadata": {"Sec-Fetch-Site": ""},
    "typed": {"Sec-Fetch-Site": "none"},
    "same-site-with-our-origin": {"Sec-Fetch-Site": "same-site"},
    "longer-name": {"Origin": "http://test.evil.example"},
    "another-host-header": {"Host": "evil.example"},
}


@pytest.mark.parametrize("headers", ELSEWHERE.values(), ids=ELSEWHERE)
@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
async def test_a_change_from_elsewhere(person: Person, headers: dict[str, str], method: str) -> None:
    team = f"/teams/{person.team_id}"
    answer = await person.request(
        method, "/teams" if method == "POST" else team, key="k", content='{"name": "Stolen"}', headers=headers
    )
    error_of(answer, 403, "cross_origin_refused")
    assert await fetch_scalar(int, "SELECT count(*) FROM teams WHERE name = 'Stolen'") == 0


@together("headers", ELSEWHERE.values(), ids=ELSEWHERE)
async def test_nobody_is_signed_in_from_elsewhere(shared: LoneApi, headers: dict[str, str]) -> None:
    """Nor as somebody else, to whom a person would then entrust what is theirs."""
    token = await link_for(shared.control_dsn, (await shared.caller()).user_id)
    answer = await follow(shared.http, token, headers=headers)
    error_of(answer, 403, "cross_origin_refused")
    assert "Set-Cookie" not in answer.headers
    data_of(await follow(shared.http, token), 201)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("path", ["/session", "/sessions", "/databases"])
async def test_what_is_read_from_elsewhere(person: Person, path: str, site: str) -> None:
    error_of(await person.get(path, headers={"Sec-Fetch-Site": site}), 403, "cross_origin_refused")


@pytest.mark.parametrize("site", ["same-origin", "none", ""])
async def test_what_is_read_from_a_page_of_ours_or_by_hand(person: Person, site: str) -> None:
    body_of(await person.get("/databases", headers={"Sec-Fetch-Site": site, "Origin": ""}))


async def test_reading_changes_nothing(person: Person) -> None:
    """No operation that reads declares an action: `check_actions`. Nor does one listen to a method in a header."""
    headers = {"X-HTTP-Method-Override": "DELETE"}
    body_of(await person.get("/sessions", headers=headers))
    body_of(await person.get("/sessions"))


async def test_answers_that_no_page_can_frame_or_embed(person: Person) -> None:
    answers = [
        await person.get("/databases"),
        await person.get("/session"),
        await person.get("/databases/none"),
        await person.post("/teams", {"name": "x"}, headers={"Origin": "http://test:9000"}),
        await person.get("/sessions", headers={"Cookie": "headwater_session=gone"}),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 404, 403, 401]
    for answer in answers:
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert answer.headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "Access-Control-Allow-Origin" not in answer.headers


async def test_the_cookie(shared: LoneApi) -> None:
    answer = await follow(shared.http, await link_for(shared.control_dsn, (await shared.caller()).user_id))
    (cookie,) = answer.headers.get_list("Set-Cookie")
    value, *attributes = cookie.split("; ")
    assert value.startswith("headwater_session=")
    assert attributes == ["Path=/", "Max-Age=1209600", "HttpOnly", "SameSite=Strict"]
    assert answer.headers["Cache-Control"] == "no-store"


async def test_several_cookies_of_that_name(person: Person) -> None:
    """A page of another port or path can add one: nobody goes on with somebody else's."""
    planted = f"{person.cookie}={person.token}; {person.cookie}=planted"
    error_of(await person.get("/databases", headers={"Cookie": planted}), 401, "unauthorized")
    same = f"other=1; {person.cookie}={person.token}; {person.cookie}={person.token}"
    body_of(await person.get("/databases", headers={"Cookie": same}))


@pytest.mark.parametrize(
    ("settings", "headers"),
    [
        ({"public_url": "https://db.example.com"}, {}),
        ({"trusted_proxies": ("127.0.0.1",)}, {"Host": "db.example.com", "X-Forwarded-Proto": "https"}),
    ],
    ids=["by-the-setting", "by-a-trusted-proxy"],
)
async def test_over_tls_the_cookie_is_this_hosts_alone(
    copies: Copies, settings: dict[str, object], headers: dict[str, str]
) -> None:
    async with copies.lent() as dsn, lone_api(dsn, **settings) as api:
        caller = await api.caller()
        page = {**headers, "Origin": "https://db.example.com"}
        answer = await follow(api.http, await link_for(dsn, caller.user_id), headers=page)
        cookie = answer.headers["Set-Cookie"]
        assert cookie.startswith("__Host-headwater_session=")
        assert cookie.endswith("; Path=/; Max-Age=1209600; HttpOnly; SameSite=Strict; Secure")
        token = cookie.partition("=")[2].partition(";")[0]
        person = Person(
            api.http, token, caller.user_id, caller.team_id, "https://db.example.com", "__Host-headwater_session"
        )
        data_of(await person.post("/teams", {"name": "one"}, headers=headers), 201)
        # The name without the prefix is one that others can set.
        bare = Person(api.http, token, caller.user_id, caller.team_id, person.origin)
        error_of(await bare.get("/databases", headers=headers), 401, "unauthorized")


async def test_who_is_no_trusted_proxy_says_nothing_of_tls(person: Person) -> None:
    headers = {"X-Forwarded-Proto": "https", "Origin": "https://test"}
    error_of(await person.post("/teams", {"name": "one"}, headers=headers), 403, "cross_origin_refused")


async def test_another_than_our_proxy_says_nothing_of_tls(copies: Copies) -> None:
    async with copies.lent() as dsn, lone_api(dsn, trusted_proxies=("192.0.2.1",)) as api:
        person = await sign_in(api.http, dsn, await api.caller())
        headers = {"X-Forwarded-Proto": "https", "Origin": "https://test"}
        error_of(await person.post("/teams", {"name": "one"}, headers=headers), 403, "cross_origin_refused")
