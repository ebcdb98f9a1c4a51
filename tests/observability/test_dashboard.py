"""The dashboard, the alerts and the example of a configuration: as Prometheus reads them, and of metrics that exist."""

import json
import re
from pathlib import Path
from typing import Any

import yaml
from prometheus_client import REGISTRY, generate_latest

from app.core.metrics import counters
from app.core.settings import PREFIX
from tests.deployment import compose
from tests.observability import promtool
from tests.support.in_process import lone_api

_NAME = re.compile(r"\b(?:headwater|temporal)_[a-z_]+\b")
_OF_WORKERS = {
    "headwater_task_queue_backlog",
    "headwater_task_queue_backlog_age_seconds",
    "temporal_workflow_task_execution_failed_total",
    "temporal_workflow_completed_total",
}
"""Told by workers alone: tests/metrics/test_pages.py and test_alerts.py see them there."""


def _dashboard() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((promtool.FOLDER / "dashboard.json").read_text())
    return loaded


def _targets() -> list[dict[str, Any]]:
    return [target for panel in _dashboard()["panels"] for target in panel.get("targets", ())]


def _rules() -> list[dict[str, Any]]:
    [group] = yaml.safe_load(promtool.RULES.read_text())["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


async def test_all_of_them_are_of_metrics_that_the_service_has(control_dsn: str) -> None:
    async with lone_api(control_dsn, metrics_port=8000) as api:
        told = promtool.names((await api.http.get("/metrics")).text)
    assert promtool.names(generate_latest(REGISTRY).decode()) <= told
    assert counters.HTTP_REQUESTS
    used = {name for one in [*_rules(), *_targets()] for name in _NAME.findall(one["expr"])}
    assert used - told - _OF_WORKERS == set()
    assert len(used) > 30


def test_the_rules_and_the_configuration_are_well_formed() -> None:
    for kind, file in (("rules", "alerts.yaml"), ("config", "prometheus.yaml")):
        answer = promtool.run("check", kind, promtool.FOLDER / file)
        assert answer.returncode == 0, answer.stdout + answer.stderr


def test_every_expression_of_the_dashboard_is_well_formed(tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{number}", "expr": one["expr"].replace("$__rate_interval", "5m")}
        for number, one in enumerate(_targets())
    ]
    file = tmp_path / "panels.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    answer = promtool.run("check", "rules", file)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_the_dashboard_asks_the_chosen_prometheus() -> None:
    dashboard = _dashboard()
    [variable] = dashboard["templating"]["list"]
    assert (variable["type"], variable["query"]) == ("datasource", "prometheus")
    chosen = {"type": "prometheus", "uid": f"${{{variable['name']}}}"}
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    assert all(one["datasource"] == chosen for one in [*panels, *_targets()])
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    places = [tuple(panel["gridPos"][key] for key in ("x", "y")) for panel in dashboard["panels"]]
    assert len(set(places)) == len(places)


def test_the_example_reads_the_pages_of_the_compose_file() -> None:
    [job] = yaml.safe_load((promtool.FOLDER / "prometheus.yaml").read_text())["scrape_configs"]
    [static] = job["static_configs"]
    served = {
        f"{_name_in_control(name, one)}:{one['environment'][f'{PREFIX}METRICS_PORT']}"
        for name, one in compose.ours().items()
        if name not in compose.once()
    }
    assert set(static["targets"]) == served
    assert job["job_name"] == "headwater"


def _name_in_control(name: str, service: dict[str, Any]) -> str:
    networks = service["networks"]
    [alias] = networks["control"]["aliases"] if isinstance(networks, dict) else [name]
    return str(alias)
