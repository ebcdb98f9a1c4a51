"""The metrics that each process counts, declared in one place. Names and units follow Prometheus' conventions.

Labels have few values: engines, regions, route templates, names from the code. Never ids, names that users choose, or
secrets.
"""

from prometheus_client import Counter, Gauge, Histogram, disable_created_metrics

# Nobody alerts on when a series began, and these series would be a third of the page.
disable_created_metrics()  # type: ignore[no-untyped-call]  # the library leaves it untyped

_QUICK = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_REQUEST = (*_QUICK, 30, 60, 120)
_PROVISIONING = (0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)

HTTP_REQUESTS = Counter(
    "headwater_http_requests_total",
    "Requests by route template; `unmatched` is a path that no route has.",
    ["method", "route", "status"],
)
HTTP_REQUEST_SECONDS = Histogram(
    "headwater_http_request_duration_seconds",
    "From a request's arrival to the end of its answer. Waiting that a client asked for is in it.",
    ["method", "route"],
    buckets=_REQUEST,
)
ACTIVITY_SECONDS = Histogram(
    "headwater_activity_duration_seconds",
    "One attempt of an activity; `outcome` is `ok`, `cancelled`, or the failure's type.",
    ["activity", "outcome"],
    buckets=_REQUEST,
)
PROVISIONING_SECONDS = Histogram(
    "headwater_provisioning_duration_seconds",
    "From a database's create to its outcome: `active`, or `cancelled` by a deletion.",
    ["engine", "region", "outcome"],
    buckets=_PROVISIONING,
)
PROVISIONING_MOVES = Counter(
    "headwater_provisioning_moves_total",
    "Times that provisioning went on at another place, because the host failed or the name was taken.",
    ["engine", "region", "reason"],
)
POOL_CLAIMS = Counter(
    "headwater_pool_claims_total",
    "Creates by whether the warm pool served them: `hit` or `miss`; the region is the database's.",
    ["engine", "region", "outcome"],
)
POOL_CLAIM_SECONDS = Histogram(
    "headwater_pool_claim_duration_seconds",
    "Looking for a ready database and taking it, within a create's transaction.",
    ["engine", "outcome"],
    buckets=_QUICK,
)
WORKFLOW_STARTS = Counter(
    "headwater_workflow_starts_total",
    "Requested workflows that Temporal accepted, and failed attempts to start them.",
    ["workflow", "outcome"],
)
QUESTIONS = Counter(
    "headwater_questions_total",
    "Questions by the class of their SQL (`none` where there was none) and outcome, as they are recorded.",
    ["engine", "class", "outcome"],
)
QUESTION_SECONDS = Histogram(
    "headwater_question_duration_seconds",
    "From a question's place in the allowance to its outcome, the model's time included.",
    ["engine", "outcome"],
    buckets=_REQUEST,
)
QUESTION_MODEL_SECONDS = Histogram(
    "headwater_question_model_duration_seconds",
    "The model's part of a question, all turns together.",
    buckets=_REQUEST,
)
QUESTION_TOKENS = Counter(
    "headwater_question_tokens_total",
    "What the model's server counted: `prompt` and `completion`.",
    ["kind"],
)
QUESTION_REFUSALS = Counter(
    "headwater_question_refusals_total",
    "SQL that was refused: `unreadable`, by the allow-list (`statement`), as another `kind` than the model said, or "
    "by the team's `policy`. A mended question may count and succeed.",
    ["engine", "reason"],
)
APPLICATION_SECONDS = Histogram(
    "headwater_application_duration_seconds",
    "Applications of blueprints that were begun, from request to end; a dry run that passes is `rolled_back`.",
    ["engine", "region", "outcome"],
    buckets=_PROVISIONING,
)
SESSIONS_ENDED = Counter(
    "headwater_sessions_ended_total",
    "Sessions of tenants that were ended because they took too much of what their whole host shares.",
    ["engine", "reason"],
)
HOST_RESOURCE_USED = Gauge(
    "headwater_host_resource_used",
    "What all tenants of an engine host use up together, as this process saw it last.",
    ["engine", "host", "resource"],
)
HOST_RESOURCE_CAPACITY = Gauge(
    "headwater_host_resource_capacity",
    "Where the engine host stops, for the resources of which it says so.",
    ["engine", "host", "resource"],
)
TRACE_SPANS = Counter(
    "headwater_trace_spans_total",
    "Spans of traces: `sent` to the collector, or `dropped`, because it did not take them or too many were waiting.",
    ["outcome"],
)


def set_shared_resource(engine: str, host: str, resource: str, used: float, capacity: float | None) -> None:
    HOST_RESOURCE_USED.labels(engine, host, resource).set(used)
    if capacity is not None:
        HOST_RESOURCE_CAPACITY.labels(engine, host, resource).set(capacity)
