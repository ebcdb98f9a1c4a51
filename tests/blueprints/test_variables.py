"""Variables: what definitions may say, and which values fit."""

from typing import Any

import pytest

from app.blueprints.variables import DefinitionError, VariableError, check_definitions, check_values
from tests.support.together import together

GOOD: list[dict[str, Any]] = [
    {"type": "identifier", "pattern": "^[a-z][a-z0-9_]{0,30}$", "required": True},
    {"type": "integer", "default": 100, "min": 1, "max": 10000},
    {"type": "string", "max_length": 200, "secret": True},
    {"type": "enum", "values": ["a", "b"], "default": "b"},
    {"type": "boolean", "default": False},
    {"type": "number", "min": -1.5, "default": 0},
    {"type": "string", "required": False},
]
BAD: list[tuple[str, Any]] = [
    ("variables", [1]),
    ("variables", "x"),
    ("variables.1a", {"1a": {"type": "string"}}),
    ("variables.a b", {"a b": {"type": "string"}}),
    ("variables." + "a" * 41, {"a" * 41: {"type": "string"}}),
    ("variables.a", {"a": "string"}),
    ("variables.a.type", {"a": {}}),
    ("variables.a.type", {"a": {"type": "text"}}),
    ("variables.a.type", {"a": {"type": None}}),
    ("variables.a.typ", {"a": {"typ": "string", "type": "string"}}),
    ("variables.a.default", {"a": {"type": "integer", "default": "1"}}),
    ("variables.a.default", {"a": {"type": "integer", "default": True}}),
    ("variables.a.default", {"a": {"type": "integer", "default": 11, "max": 10}}),
    ("variables.a.default", {"a": {"type": "string", "default": ["x"]}}),
    ("variables.a.default", {"a": {"type": "enum", "values": ["x"], "default": "y"}}),
    ("variables.a.required", {"a": {"type": "string", "required": "yes"}}),
    ("variables.a.required", {"a": {"type": "identifier", "required": False}}),
    ("variables.a.pattern", {"a": {"type": "string", "pattern": "("}}),
    ("variables.a.pattern", {"a": {"type": "string", "pattern": "(?=x)"}}),
    ("variables.a.pattern", {"a": {"type": "string", "pattern": "a" * 501}}),
    ("variables.a.pattern", {"a": {"type": "integer", "pattern": "1"}}),
    ("variables.a.min", {"a": {"type": "integer", "min": 5, "max": 4}}),
    ("variables.a.min", {"a": {"type": "string", "min": 5}}),
    ("variables.a.max_length", {"a": {"type": "string", "max_length": 0}}),
    ("variables.a.max_length", {"a": {"type": "string", "max_length": 1.5}}),
    ("variables.a.values", {"a": {"type": "enum"}}),
    ("variables.a.values", {"a": {"type": "enum", "values": []}}),
    ("variables.a.values", {"a": {"type": "enum", "values": ["x", "x"]}}),
    ("variables.a.values", {"a": {"type": "enum", "values": [1]}}),
    ("variables.a.values", {"a": {"type": "enum", "values": ["\0"]}}),
    ("variables.a.secret", {"a": {"type": "string", "secret": 1}}),
    ("variables", {f"v{n}": {"type": "string"} for n in range(101)}),
]
UNFIT: list[tuple[dict[str, Any], Any]] = [
    ({"type": "string"}, 1),
    ({"type": "string"}, "a\0b"),
    ({"type": "string"}, "a\ud800"),
    ({"type": "string", "max_length": 3}, "abcd"),
    ({"type": "string", "pattern": "^a+$"}, "ab"),
    ({"type": "string", "pattern": "^a$"}, "a\n"),
    ({"type": "identifier"}, ""),
    ({"type": "identifier"}, "a" * 64),
    ({"type": "identifier"}, "ü" * 32),
    ({"type": "identifier"}, "a\tb"),
    ({"type": "identifier"}, "a "),
    ({"type": "identifier"}, "😀"),
    ({"type": "identifier"}, 5),
    ({"type": "integer"}, 1.0),
    ({"type": "integer"}, "1"),
    ({"type": "integer"}, True),
    ({"type": "integer"}, 2**63),
    ({"type": "integer", "min": 1}, 0),
    ({"type": "integer", "max": 1}, 2),
    ({"type": "number"}, float("nan")),
    ({"type": "number"}, float("inf")),
    ({"type": "number"}, False),
    ({"type": "number"}, 10**400),
    ({"type": "boolean"}, 1),
    ({"type": "boolean"}, "true"),
    ({"type": "enum", "values": ["a"]}, "b"),
    ({"type": "enum", "values": ["a"]}, ["a"]),
]


@together("definition", GOOD)
def test_a_good_definition(definition: dict[str, Any]) -> None:
    assert set(check_definitions({"a": definition})) == {"a"}


@together(("place", "definitions"), BAD)
def test_a_bad_definition_names_variable_and_field(place: str, definitions: object) -> None:
    with pytest.raises(DefinitionError) as caught:
        check_definitions(definitions)

    assert caught.value.place == place
    assert str(caught.value).startswith(f"{place}: ")


@together(("definition", "value"), UNFIT)
def test_a_value_that_does_not_fit_names_its_variable_and_stays_untold(definition: dict[str, Any], value: Any) -> None:
    with pytest.raises(VariableError) as caught:
        check_values(check_definitions({"wanted": definition}), {"wanted": value})

    assert caught.value.name == "wanted"
    assert str(caught.value).startswith("The variable wanted ")
    assert repr(value) not in str(caught.value)


def test_missing_and_undeclared_values() -> None:
    definitions = check_definitions({"a": {"type": "string"}, "b": {"type": "integer", "default": 5}})

    assert check_values(definitions, {"a": "x"}) == {"a": "x", "b": 5}
    assert check_values(check_definitions({"a": {"type": "string", "required": False}}), None) == {"a": None}
    for given, name in (({}, "a"), ({"a": None}, "a"), ({"a": "x", "c": 1}, "c")):
        with pytest.raises(VariableError) as caught:
            check_values(definitions, given)
        assert caught.value.name == name


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*a){20}$", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_no_pattern_can_hang_the_process(pattern: str) -> None:
    """One that tries each division of the value would not end before the test's limit."""
    definitions = check_definitions({"a": {"type": "string", "pattern": pattern}})
    with pytest.raises(VariableError):
        check_values(definitions, {"a": "a" * 50_000 + "!"})
