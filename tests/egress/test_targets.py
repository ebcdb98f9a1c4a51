"""URLs of endpoints: one strict reading, and a sentence for what it doesn't take."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.webhooks.egress.targets import RequestTarget, UnusableURL, parse_target
from tests.support.together import together

GOOD = {
    "https://example.com": RequestTarget("example.com", 443, "/"),
    "HTTPS://Example.COM/Hook?a=b&c": RequestTarget("example.com", 443, "/Hook?a=b&c"),
    "https://example.com?x=1": RequestTarget("example.com", 443, "/?x=1"),
    "https://example.com.:8443/": RequestTarget("example.com", 8443, "/"),
    "https://a_b.example.com/%7Bid%7D": RequestTarget("a_b.example.com", 443, "/%7Bid%7D"),
    "https://bücher.example/": RequestTarget("xn--bcher-kva.example", 443, "/"),
    "https://192.0.2.1:65535/": RequestTarget("192.0.2.1", 65535, "/"),
    "https://[2001:DB8::1]/": RequestTarget("2001:db8::1", 443, "/"),
    "https://[2001:db8::1]:1/": RequestTarget("2001:db8::1", 1, "/"),
    "https://3com.example/": RequestTarget("3com.example", 443, "/"),
    "https://localhost/": RequestTarget("localhost", 443, "/"),
}
BAD = [
    "",
    "https://",
    "https:///path",
    "https:example.com",
    "http://example.com/",
    "ftp://example.com/",
    "//example.com/",
    " https://example.com/",
    "https://user@example.com/",
    "https://user:secret@example.com/",
    "https://example.com@127.0.0.1/",
    "https://example.com\\@127.0.0.1/",
    "https://example.com/#fragment",
    "https://example.com:0/",
    "https://example.com:65536/",
    "https://example.com:/",
    "https://example.com:80:80/",
    "https://example.com:٤٤٣/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0x7f.1/",
    "https://0177.0.0.1/",
    "https://127.1/",
    "https://0/",
    "https://127.0.0.1.:1:2/",
    "https://1.2.3.4.5/",
    "https://example.0x10/",
    "https://\uff11\uff12\uff17.0.0.1/",
    "https://127。0。0。1/",
    "https://①②⑦.⓪.⓪.①/",
    "https://[::1/",
    "https://::1/",
    "https://[fe80::1%25eth0]/",
    "https://[fe80::1%eth0]/",
    "https://[v1.fe80]/",
    "https://[]/",
    "https://exa mple.com/",
    "https://exam\tple.com/",
    "https://exam\r\nple.com/",
    "https://example.com/a b",
    "https://example.com/\r\nHost: inside",
    "https://example.com/\u2028",
    "https://-example.com/",
    "https://example..com/",
    "https://" + "a" * 64 + ".example/",
    "https://example.com/" + "a" * 2048,
    "https://%6c%6f%63%61%6c%68%6f%73%74/",
    "https://example.com%00.evil/",
]


@together("url", GOOD)
def test_what_is_taken(url: str) -> None:
    assert parse_target(url) == GOOD[url]


@together("url", BAD)
def test_what_is_not(url: str) -> None:
    with pytest.raises(UnusableURL) as refused:
        parse_target(url)
    assert str(refused.value).endswith(".")


@together(
    ("url", "words"),
    [
        ("http://example.com/", "begins with https://"),
        ("https://user:secret@example.com/", "no user name and password"),
        ("https://example.com/#a", "no fragment"),
        ("https://example.com:0/", "from 1 to 65535"),
        ("https://2130706433/", "four decimal numbers"),
        ("https://[fe80::1%1]/", "no zone"),
        ("https://example.com/" + "a" * 2048, "at most 2048"),
    ],
)
def test_it_says_what_is_wrong(url: str, words: str) -> None:
    with pytest.raises(UnusableURL, match=words):
        parse_target(url)


def test_the_host_header() -> None:
    assert parse_target("https://example.com/").authority == "example.com"
    assert parse_target("https://example.com:8443/").authority == "example.com:8443"
    assert parse_target("https://[2001:db8::1]:8443/").authority == "[2001:db8::1]:8443"


@settings(max_examples=100)
@given(st.text(max_size=40))
def test_any_text_is_taken_apart_or_refused(rest: str) -> None:
    try:
        target = parse_target(f"https://{rest}")
    except UnusableURL:
        return
    assert 1 <= target.port <= 65_535
    assert target.path.startswith("/")
    assert (target.host + target.path).isascii()
    assert not set(target.host + target.path) & set(" \r\n\t#@\\") - set("@")
