"""Scripts that are made to be slow or deep: each is read or refused soon, whatever it holds."""

import resource
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from app.blueprints.validation import validate

N = 100_000
PROCESSOR_SECONDS = 20
"""Of the whole process, which loads the parsers first."""
HOSTILE = {
    "comments that might continue a literal": "SELECT E'a' " + "-- " * N + "x",
    "an unclosed string of quotes": "SELECT '" + "''" * N,
    "an unclosed escaped string": "SELECT E'" + "\\'" * N,
    "an unclosed name": 'SELECT "' + '""' * N,
    "unclosed backticks": "SELECT `" + "``" * N,
    "unclosed comments": "/*" * N,
    "unclosed dollars": "SELECT " + "$a$ $b$ " * N,
    "empty statements": ";" * N * 5,
    "parentheses": "SELECT " + "(" * N + "1" + ")" * N,
    "cases": "CREATE PROCEDURE p() BEGIN " + "CASE " * N,
    "blocks": "CREATE PROCEDURE p() " + "BEGIN " * N + "END; " * N,
    "executable comments": "/*!50000 " * N,
    "delimiter lines": "DELIMITER a\n" * N,
    "delimiters in one word": "DELIMITER a\n" + "ba" * N * 5,
    "delimiters that begin comments": "DELIMITER #\n" + "a#" * N * 5,
    "placeholders": "SELECT " + "{{a}}, " * N + "1",
    "backslashes": "\\x\n" * N,
    "copies": "COPY t FROM stdin;\n" * N,
    "a long chain": "SELECT 1" + " + 1" * N * 2,
    "many errors": "SELEC 1;\n" * N,
    "many forbidden statements": "COMMIT;\n" * N,
    "words": "a " * N * 5,
}


@pytest.mark.soak
@pytest.mark.parametrize("script", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_script_takes_no_longer_than_an_honest_one(script: str) -> None:
    # The kernel ends the process that takes longer.
    limit = (resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS))
    with ProcessPoolExecutor(1, get_context("spawn"), initializer=resource.setrlimit, initargs=limit) as processes:
        assert max(processes.submit(_errors, script[: 1024 * 1024]).result()) < 50


def _errors(script: str) -> list[int]:
    """How many there are, without variables and with none."""
    choices: tuple[dict[str, object] | None, ...] = (None, {})
    return [len(validate(script, definitions).errors) for definitions in choices]
