"""`python -m benchmarks.reading`: reading blueprints of one size and of twice that size, compared with PostgreSQL's
parser alone. Prints the figures of docs/benchmarks.md. Needs no server."""

import argparse
import time
from collections.abc import Callable

from postgast import parse

from app.blueprints.preparation import prepare
from app.blueprints.validation import validate
from app.contracts.base import Engine
from app.dialects.analysis import MAX_STATEMENTS

_ROUNDS = 5
_MEBIBYTE = 1 << 20
_DEFINITIONS = {"a": {"type": "integer", "default": 5}}
_INSERT = "INSERT INTO pets (id, name) VALUES (1, 'Rex');\n"
_VALUE = "INSERT INTO pets (id, name) VALUES ({{a}}, 'Rex');\n"

Work = Callable[[str], object]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reading", description=__doc__)
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help="the best of so many (default: %(default)s)")
    rounds = parser.parse_args().rounds
    half = MAX_STATEMENTS // 2
    print("| work | n | processor time | of 2n | ratio | of the parser alone |")
    print("|---|---|---|---|---|---|")
    _row("validate", _INSERT, half, lambda text: validate(text, None), rounds)
    _row("validate, placeholders", _VALUE, half, lambda text: validate(text, _DEFINITIONS), rounds)
    for engine in Engine:
        _row(f"prepare, {engine}", _INSERT, half, _preparing(engine), rounds)
        _row(f"prepare, placeholders, {engine}", _VALUE, half, _preparing(engine), rounds)
    for piece in ("SELECT 1;", ";"):
        taken = _best(lambda text: validate(text, None), piece * (_MEBIBYTE // len(piece)), rounds)
        print(f"\n1 MiB of `{piece}` is refused in {taken:.2f} s of processor time")


def _preparing(engine: Engine) -> Work:
    return lambda text: prepare(text, engine, _DEFINITIONS, {})


def _row(label: str, unit: str, count: int, work: Work, rounds: int) -> None:
    once, twice = _best(work, unit * count, rounds), _best(work, unit * (2 * count), rounds)
    bare = _best(parse, unit.replace("{{a}}", "5") * count, rounds)
    print(f"| {label} | {count} | {once:.2f} s | {twice:.2f} s | {twice / once:.2f} | {once / bare:.1f} times |")


def _best(work: Work, text: str, rounds: int) -> float:
    """The seconds of processor time of all threads."""
    times = []
    for _ in range(rounds):
        began = time.process_time()
        work(text)
        times.append(time.process_time() - began)
    return min(times)


if __name__ == "__main__":
    main()
