"""What Prometheus is told of questions."""

from tests.queries.conftest import Asked
from tests.support.answers import body_of, error_of
from tests.support.metrics import scrape
from tests.support.model_server import says, sql
from tests.support.service import RunningService


async def test_questions_by_class_and_outcome(service: RunningService, on_postgres: Asked) -> None:
    before = await scrape(service.http)
    body_of(await on_postgres.ask({**sql("SELECT name FROM customers"), "delay": 0.2}))
    body_of(await on_postgres.ask(sql("UPDATE customers SET country = 'NO' WHERE id = 1", "write")))
    error_of(await on_postgres.ask(says("I would rather not.")), 422, "query_not_translated")
    error_of(await on_postgres.ask(sql("SELECT 1 / 0")), 500, "query_execution_failed")
    error_of(await on_postgres.ask(sql("SELECT pg_sleep(1)")), 422, "unsafe_sql")
    error_of(await on_postgres.ask(sql("DELETE FROM customers WHERE id = 0")), 422, "unsafe_sql")
    body_of(await on_postgres.ask(sql("SELEC name"), sql("SELECT name FROM customers")))
    after = await scrape(service.http)

    def more(name: str, **labels: str) -> float:
        return after.value(name, **labels) - before.value(name, **labels)

    def questions(kind: str, outcome: str) -> float:
        return more("headwater_questions_total", engine="postgres", outcome=outcome, **{"class": kind})

    assert questions("select", "succeeded") == 2
    assert questions("write", "succeeded") == 1
    assert questions("none", "not_translated") == 1
    assert questions("select", "failed") == 1
    assert (questions("select", "refused") + questions("none", "refused"), questions("write", "refused")) == (1, 1)
    assert more("headwater_question_duration_seconds_count", outcome="succeeded") == 3
    assert more("headwater_question_model_duration_seconds_count") == 7
    assert more("headwater_question_model_duration_seconds_sum") >= 0.2
    assert more("headwater_question_tokens_total", kind="prompt") >= 700
    assert {
        reason: more("headwater_question_refusals_total", engine="postgres", reason=reason)
        for reason in ("unreadable", "statement", "kind", "policy")
    } == {"unreadable": 1, "statement": 1, "kind": 1, "policy": 0}
