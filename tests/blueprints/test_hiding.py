"""Secret values in engines' messages."""

import tracemalloc
from collections.abc import Callable

from app.blueprints.hiding import Secrets
from tests.support.together import together

LONG = "Correct-Horse-Battery-Staple-" + "0123456789abcdef" * 8
QUOTED = "pa'ss\\wo'rd-71d0c5e1"


@together(
    ("message", "value", "shown"),
    [
        ("bad value: 'hunter2'", "hunter2", "bad value: '***'"),
        ("a, b, A", "a", "***, b, ***"),
        (f"Duplicate entry '{LONG[:60]}...' for key 'k'", LONG, "Duplicate entry '***...' for key 'k'"),
        (f'type "{LONG[:63].lower()}" does not exist', LONG, 'type "***" does not exist'),
        (f'unterminated string at or near "{QUOTED[2:]}"', QUOTED, 'unterminated string at or near "***"'),
        (f"near '{LONG}' and '{LONG}'", LONG, "near '***' and '***'"),
        ("near 'pa''ss\\\\wo''rd-71d0c5e1'", QUOTED, "near '***'"),
        ("nothing of it", LONG, "nothing of it"),
        ("Horse and 89abcd", LONG, "Horse and 89abcd"),
        ("STRASSE, İstanbul-secret", "İSTANBUL-secret", "STRASSE, ***"),
        ("", LONG, ""),
    ],
)
def test_no_telling_piece_of_a_value_is_left(message: str, value: str, shown: str) -> None:
    assert Secrets([value]).hide(message) == shown


def test_a_value_of_a_megabyte_costs_little() -> None:
    """A piece of a few characters at each place of it would take a hundred megabytes, and the time to make them."""
    value = "".join(f"{number:08d}" for number in range(1 << 17))
    message = f"near '{value}' and '{value[:128]}...'"
    assert most_memory(lambda: Secrets([value]).hide(message)) < 10 * len(value)
    assert Secrets([value]).hide(message) == "near '***' and '***...'"


def test_a_message_costs_no_more_than_its_own_length() -> None:
    """A rehearsal may go on after thousands of failures, each with a message that is searched while nothing else
    runs."""
    values = ["".join(f"{number:02}'{part:05}\\x" for part in range(1000)) for number in range(100)]
    made: list[Secrets] = []
    assert most_memory(lambda: made.append(Secrets(values))) < 20_000_000
    [secrets] = made
    message = "." * 4000

    assert most_memory(lambda: secrets.hide(message)) < 100 * len(message)
    for value in (values[0], values[-1]):
        quoted = value.replace("'", "''")
        assert secrets.hide(f"near ({quoted[5:65].upper()})") == "near (***)"
        assert secrets.hide(f"near ({value})") == "near (***)"


def test_short_values_are_searched_whole_beside_long_ones() -> None:
    short, long = [f"{number:03}-" + "0123456789abcdef" * 20 for number in range(99)], "x" * 1_000_000
    secrets = Secrets([*short, long])

    assert all(secrets.hide(f"near '{value[-40:]}'") == "near '***'" for value in short)
    assert secrets.hide(f"near '{long[:4000]}...'") == "near '***...'"


def test_values_that_overlap_are_one() -> None:
    secrets = Secrets(["Battery-Staple", "Horse-Battery", "a", "Ho"])

    assert secrets.hide("near Horse-Battery-Staple, a and b") == "ne***r ***, *** ***nd b"


def most_memory(work: Callable[[], object]) -> int:
    """The octets that are allocated at once."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
