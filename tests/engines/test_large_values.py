"""Of large values no objects are made that would take many times their memory."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import msgspec

from app.engines import json_values
from app.engines.postgres import arrays
from tests.support.together import together


def memory_of(work: Callable[[], object]) -> int:
    """At its highest, in octets."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def array(elements: int, text: str = "1") -> str:
    return "{" + ",".join([text] * elements) + "}"


def test_an_array_is_a_list_up_to_a_bound_and_its_text_beyond() -> None:
    most = arrays.LONGEST // 2 - 1
    assert arrays.parse(array(most), int) == [1] * most
    assert arrays.parse(array(most + 1), int) == array(most + 1)


def test_no_list_is_made_of_all_parts_of_an_array() -> None:
    """The list itself has eight octets for each element."""
    text = array(500_000)
    assert memory_of(lambda: arrays.parse(text, int)) < 12 * 500_000


def test_a_long_element() -> None:
    inner = 'a "quoted", long \\ text ' * 30_000
    text = '{"' + inner.replace("\\", "\\\\").replace('"', '\\"') + '",NULL}'
    assert arrays.parse(text, str) == [inner, None]


@together("document", ["[" + "[]," * 400_000 + "1]", '[{"a": {}}' + ', {"a": [1.5e10]}' * 200_000 + "]"])
def test_of_a_document_no_objects_are_made(document: str) -> None:
    found: list[Any] = []
    assert memory_of(lambda: found.append(json_values.document(document))) < 3 * len(document)
    assert bytes(found[0]) == document.encode()


@together(
    ("document", "is_json"),
    [
        ("[1.50, 12345678901234567890123]", True),
        ('{"a": "1e400"}', True),
        ("1e99", True),
        ("9" * 200, True),
        ("1e400", False),
        ("-1E+0400", False),
        ("9" * 200 + "e150", False),
        ("[NaN]", False),
        ("{", False),
        ("[" * 100_000 + "]" * 100_000, False),
    ],
)
def test_what_clients_can_read_stays_json(document: str, is_json: bool) -> None:
    found = json_values.document(document)
    assert isinstance(found, msgspec.Raw) == is_json
    assert is_json or found == document


@together(("number", "is_json"), [("1.5e10", True), ("1e400", False), ('"1e400"', False)])
def test_whether_a_large_document_has_a_huge_number_is_not_looked_at_closely(number: str, is_json: bool) -> None:
    document = f"[{number}{' ' * 2_000_000}]"
    assert isinstance(json_values.document(document), msgspec.Raw) == is_json
