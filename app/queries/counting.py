"""Metrics of questions."""

from app.contracts.base import Engine
from app.core.metrics.counters import (
    QUESTION_MODEL_SECONDS,
    QUESTION_REFUSALS,
    QUESTION_SECONDS,
    QUESTION_TOKENS,
    QUESTIONS,
)
from app.dialects.verdict import Refused
from app.queries.records import Execution


def refused(engine: Engine, refusal: Refused) -> None:
    QUESTION_REFUSALS.labels(engine.value, refusal.by).inc()


def ended(engine: Engine, execution: Execution, outcome: str) -> None:
    QUESTIONS.labels(engine.value, execution.sql_class or "none", outcome).inc()
    QUESTION_SECONDS.labels(engine.value, outcome).observe(execution.seconds)
    if execution.turns:
        QUESTION_MODEL_SECONDS.observe(execution.model_seconds)
    QUESTION_TOKENS.labels("prompt").inc(execution.prompt_tokens)
    QUESTION_TOKENS.labels("completion").inc(execution.completion_tokens)
