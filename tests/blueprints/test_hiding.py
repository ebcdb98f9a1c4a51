"""Secret values in engines' messages."""

import tracemalloc

from app.blueprints.hiding import hide
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
    assert hide(message, value) == shown


def test_a_value_of_a_megabyte_costs_little() -> None:
    """A piece of a few characters at each place of it would take a hundred megabytes, and the time to make them."""
    value = "".join(f"{number:08d}" for number in range(1 << 17))
    message = f"near '{value}' and '{value[:128]}...'"
    tracemalloc.start()
    try:
        assert hide(message, value) == "near '***' and '***...'"
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 10 * len(value)
