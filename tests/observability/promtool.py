"""Prometheus' own tool, which reads rules as Prometheus does and evaluates them over series."""

import math
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.deployment import compose

FOLDER = compose.ROOT / "deploy/observability"
RULES = FOLDER / "alerts.yaml"
OWN = Path(sys.prefix) / "opt/prometheus/usr/bin/promtool"
"""Where `install_promtool` puts it."""
MINUTES = 80
"""More than the longest `for` of an alert."""

Sample = tuple[str, tuple[tuple[str, str], ...]]
Page = dict[Sample, float]


def find_promtool() -> Path | None:
    found = shutil.which("promtool") or (OWN if OWN.exists() else None)
    return Path(found) if found else None


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    program = find_promtool()
    if program is None:
        pytest.skip("no promtool on this machine; `make test` installs one")
    argv = [str(program), *map(str, arguments)]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def page(text: str) -> Page:
    """A page of metrics, as Prometheus would store it."""
    families = text_string_to_metric_families(text)
    samples = (one for family in families for one in family.samples)
    return {(one.name, tuple(sorted(one.labels.items()))): one.value for one in samples}


def names(text: str) -> set[str]:
    """The series that a page has or would have: also of a family without samples yet."""
    found = set()
    for family in text_string_to_metric_families(text):
        suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}.get(family.type, ("",))
        found |= {family.name + suffix for suffix in suffixes} | {one.name for one in family.samples}
    return found


def firing(
    folder: Path,
    before: Page,
    after: Page,
    *,
    up: bool = True,
    ages: Iterable[str] = (),
) -> set[str]:
    """The alerts that fire when a service stays as it was at the second look. Gauges stay, counters go on as they went
    between the two looks, `ages` get older."""
    text = RULES.read_text()
    series = [_series(one, before.get(one), value, set(ages)) for one, value in after.items() if one[0] in text]
    series.append({"series": 'up{job="headwater", instance="test"}', "values": f"{int(up)}+0x{MINUTES}"})
    return _evaluated(folder, series)


def _series(sample: Sample, before: float | None, after: float, ages: set[str]) -> dict[str, str]:
    name, labels = sample
    pairs = ["job", "headwater"], ["instance", "test"], *labels
    written = ", ".join(f'{key}="{_escaped(value)}"' for key, value in pairs)
    step = 60.0 if name in ages else 0.0
    if name.endswith(("_total", "_bucket", "_count", "_sum")):
        step = after - (before or 0)
    return {"series": f"{name}{{{written}}}", "values": f"{_number(after)}+{_number(step)}x{MINUTES}"}


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    assert math.isfinite(value)
    return f"{value:.9f}"


def _evaluated(folder: Path, series: list[dict[str, str]]) -> set[str]:
    """promtool compares and shows what differs, so it is asked for an alert that there is not."""
    fired = 'group by (alertname) (ALERTS{alertstate="firing"})'
    none = [{"labels": '{alertname="none"}', "value": 1}]
    asked = {"expr": fired, "eval_time": f"{MINUTES - 5}m", "exp_samples": none}
    test: Mapping[str, Any] = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": series, "promql_expr_test": [asked]}],
    }
    file = folder / "alerts.test.yaml"
    file.write_text(yaml.safe_dump(dict(test)))
    answer = run("test", "rules", file)
    shown = answer.stdout + answer.stderr
    assert "got:" in shown, shown
    got = shown.partition("got:")[2]
    return {part.partition('"')[0] for part in got.split('alertname="')[1:]} - {"none"}
