"""From a wrong body to an error that names the field by its path."""

import contextlib
from enum import StrEnum
from typing import Annotated, Literal

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.core.errors import AppError, InvalidField, MalformedJSON, MissingRequiredField
from app.web.body import canonical, decode
from tests.support.together import together


class Part(msgspec.Struct, forbid_unknown_fields=True):
    size: Annotated[int, msgspec.Meta(ge=1)]


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Whole(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    parts: list[Part] = []
    by_name: dict[str, Part] = {}
    colour: Colour = Colour.RED
    size: Literal["small", "large"] | msgspec.UnsetType = msgspec.UNSET
    share: float | None = None


@together(
    ("body", "kind", "field"),
    [
        (b'{"name": 1}', InvalidField, "name"),
        (b'{"name": "a", "parts": [{"size": 1}, {"size": 0}]}', InvalidField, "parts[1].size"),
        (b'{"name": "a", "parts": [{}]}', MissingRequiredField, "parts[0].size"),
        (b'{"name": "a", "parts": [{"size": 1, "colour": 2}]}', InvalidField, "parts[0].colour"),
        (b'{"name": "a", "by_name": {"x": {"size": "1"}}}', InvalidField, "by_name.x.size"),
        (b'{"name": "a", "parts": {}}', InvalidField, "parts"),
        (b'{"parts": []}', MissingRequiredField, "name"),
        (b'{"name": "a", "Name": "b"}', InvalidField, "Name"),
        (b'"name"', InvalidField, "body"),
    ],
)
def test_the_field_is_named_by_its_path(body: bytes, kind: type[AppError], field: str) -> None:
    with pytest.raises(kind) as refused:
        decode(body, Whole)
    assert refused.value.details == {"field": field}
    assert field in refused.value.message or field == "body"


@together(
    ("body", "message"),
    [
        (b'{"name": "a", "colour": "green"}', "colour: Expected one of red, blue."),
        (b'{"name": "a", "size": "huge"}', "size: Expected one of large, small."),
        (b'{"name": 1}', "name: Expected `string`, got `integer`."),
        (b'{"name": "a", "share": "1"}', "share: Expected `number | null`, got `string`."),
        (b'{"name": "a", "parts": [{"size": 0}]}', "parts[0].size: Expected `integer` >= 1."),
    ],
)
def test_a_client_reads_what_is_expected_in_its_own_words(body: bytes, message: str) -> None:
    with pytest.raises(InvalidField) as refused:
        decode(body, Whole)
    assert refused.value.message == message


@given(body=st.binary())
@example(body=b'{"a": 1e400}')
def test_no_body_brings_it_down(body: bytes) -> None:
    for read in (lambda: decode(body, Whole), lambda: canonical(body)):
        with contextlib.suppress(MalformedJSON, InvalidField, MissingRequiredField):
            read()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(value=JSON)
def test_the_canonical_form_is_the_same_for_the_same_value_only(value: object) -> None:
    body = msgspec.json.encode(value)
    assert canonical(body) == canonical(msgspec.json.format(body, indent=3))
    assert msgspec.json.decode(canonical(body)) == msgspec.json.decode(body)
    assert canonical(body) != canonical(msgspec.json.encode([value]))


def test_the_order_of_keys_is_no_difference_and_null_is() -> None:
    assert canonical(b'{"a": 1, "b": {"c": 2, "d": 3}}') == canonical(b'{"b": {"d": 3, "c": 2}, "a": 1}')
    assert canonical(b'{"a": 1}') != canonical(b'{"a": 1, "b": null}')
    assert canonical(b"  ") == canonical(b"")
