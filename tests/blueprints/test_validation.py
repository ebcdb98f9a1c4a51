"""Validation: the verdict, where errors are, and what the manifest tells."""

import msgspec
import pytest

from app.blueprints.validation import validate
from app.contracts.base import Engine


def test_a_script_for_both_engines() -> None:
    verdict = validate(
        "CREATE TABLE users (id INT PRIMARY KEY, name VARCHAR(50));\n\nINSERT INTO users VALUES (1, 'a')", {}
    )

    assert verdict.valid
    assert verdict.errors == verdict.warnings == []
    assert verdict.statement_count == 2
    assert verdict.manifest.dialects == [Engine.POSTGRES, Engine.MYSQL]
    assert verdict.manifest.objects == {"tables": ["users"]}
    assert [(found.index, found.line, found.kind, found.object) for found in verdict.manifest.statements] == [
        (1, 1, "CREATE TABLE", "users"),
        (2, 3, "INSERT", "users"),
    ]


@pytest.mark.parametrize(
    ("script", "dialect"),
    [
        ("CREATE TABLE t (id BIGSERIAL PRIMARY KEY, tags TEXT[], at TIMESTAMPTZ)", Engine.POSTGRES),
        ("CREATE FUNCTION f() RETURNS int AS $$ SELECT 1; $$ LANGUAGE sql", Engine.POSTGRES),
        ("CREATE TABLE `t` (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY) ENGINE=InnoDB", Engine.MYSQL),
        ("DELIMITER //\nCREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END//\nDELIMITER ;", Engine.MYSQL),
    ],
)
def test_a_script_for_one_engine(script: str, dialect: Engine) -> None:
    verdict = validate(script, {})

    assert verdict.manifest.dialects == [dialect]
    assert verdict.statement_count == 1


@pytest.mark.parametrize("script", ["", "  \n", "-- nothing\n", "/* nothing */;;"])
def test_a_script_without_statements_is_not_valid(script: str) -> None:
    verdict = validate(script, {})

    assert not verdict.valid
    assert verdict.errors == ["line 1, column 1: the script holds no statement"]


def test_an_error_has_line_and_column_in_characters() -> None:
    verdict = validate("CREATE TABLE äöü (id int);\nCREATE TABLE b (ü int,);", {})

    assert not verdict.valid
    assert any(error.startswith("line 2, column 23") for error in verdict.errors), verdict.errors


def test_the_verdict_is_json() -> None:
    msgspec.json.encode(validate("DROP TABLE {{t}}", None))
