"""What each plan allows, and what each tier may ask for. Interface specification, section 8."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.errors import PlanLimitExceeded
from app.quotas.plans import DEFAULT_PLANS, Quotas, check_plan, check_quotas, limits_in_force
from tests.support.together import together

STORAGE = st.none() | st.floats(min_value=0.01, max_value=1e6)
CONNECTIONS = st.none() | st.integers(min_value=1, max_value=100_000)
PERCENT = st.none() | st.integers(min_value=1, max_value=100)
QUOTAS = st.builds(
    Quotas, storage_hard_limit_gb=STORAGE, connection_hard_limit=CONNECTIONS, warning_threshold_pct=PERCENT
)


@pytest.mark.parametrize(
    ("plan", "storage", "connections", "hours"),
    [("free", 0.5, 10, 100), ("launch", 10, 50, None), ("grow", 50, 200, None), ("pro", 100, 400, None)],
)
def test_the_table(plan: str, storage: float, connections: int, hours: float | None) -> None:
    limits = limits_in_force(DEFAULT_PLANS, plan, Quotas())
    assert (limits.storage_hard_limit_gb, limits.connection_hard_limit) == (storage, connections)
    assert limits.warning_threshold_pct == 80
    assert DEFAULT_PLANS.by_name[plan].runtime_hours == hours
    assert len(DEFAULT_PLANS.by_name) == 4


@given(plan=st.sampled_from(sorted(DEFAULT_PLANS.by_name)), quotas=QUOTAS)
def test_an_override_is_in_force_and_nothing_else_changes(plan: str, quotas: Quotas) -> None:
    limits, default = limits_in_force(DEFAULT_PLANS, plan, quotas), DEFAULT_PLANS.by_name[plan].limits
    for field in ("storage_hard_limit_gb", "connection_hard_limit", "warning_threshold_pct"):
        override = getattr(quotas, field)
        assert getattr(limits, field) == (getattr(default, field) if override is None else override)


@together("plan", DEFAULT_PLANS.by_name)
@together("owned", [0, 1, 50])
def test_which_databases_a_tier_may_own(plan: str, owned: int) -> None:
    for paying in ("pro", "enterprise"):
        check_plan(paying, plan, owned)
    if plan == "free" and owned == 0:
        check_plan("free", plan, owned)
        return
    with pytest.raises(PlanLimitExceeded) as refused:
        check_plan("free", plan, owned)
    assert refused.value.details == {"field": "team_id" if plan == "free" else "plan"}


@given(quotas=QUOTAS)
def test_a_free_team_lowers_its_limits_and_never_raises_them(quotas: Quotas) -> None:
    check_quotas(DEFAULT_PLANS, "pro", "free", quotas)
    check_quotas(DEFAULT_PLANS, "enterprise", "free", quotas)
    raised = (quotas.storage_hard_limit_gb or 0) > 0.5 or (quotas.connection_hard_limit or 0) > 10
    if raised:
        with pytest.raises(PlanLimitExceeded):
            check_quotas(DEFAULT_PLANS, "free", "free", quotas)
    else:
        check_quotas(DEFAULT_PLANS, "free", "free", quotas)
