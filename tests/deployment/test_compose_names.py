"""Every command, module, setting, file, port and queue that the compose file names exists."""

import importlib.util
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import click
import yaml

from app.contracts.queues import CONTROL_QUEUE, WEBHOOK_QUEUE, engine_queue
from app.core.secrets import new_key_setting
from app.core.settings import PREFIX, Settings
from app.core.tracing.settings import TracingSettings
from app.http.health import ready
from app.local import mysql, postgres, temporal
from tests.cli.command import commands_of
from tests.deployment import compose
from tests.support.together import together
from workers.serving import known_queue

SERVICES = compose.services()
OURS = compose.ours()
ENV = {name: "abc123" for name, rest in compose.variables().items() if rest.startswith("?")} | {
    "SECRET_KEYS": new_key_setting()
}
TRACES = {
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_RESOURCE_ATTRIBUTES",
    "OTEL_TRACES_SAMPLER",
    "OTEL_TRACES_SAMPLER_ARG",
}
FOREIGN = {
    "api": {"OPENAI_API_KEY", "OPENAI_BASE_URL"} | TRACES,
    "worker-control": TRACES,
    "worker-webhooks": TRACES,
    "worker-us-east-1": {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_ENDPOINT_URL"} | TRACES,
}
"""The variables of the language model and of S3, as their packages read them, and OpenTelemetry's."""


def test_settings_are_known_and_sufficient() -> None:
    for name, service in OURS.items():
        settings = Settings.load(compose.environment(service, ENV))
        assert settings.control_dsn == "postgresql://headwater_service:abc123@control-postgres:5432/headwater", name
        assert settings.secret_keys
        assert settings.temporal_address == "temporal:7233"
        foreign = {variable for variable in service["environment"] if not variable.startswith(PREFIX)}
        assert name == "hosts" or foreign == FOREIGN.get(name, set())
        assert TracingSettings.load(compose.environment(service, ENV)) is None


def test_modules_exist() -> None:
    commands = [compose.command(service) for service in OURS.values()]
    commands += [service["healthcheck"]["test"][1:] for service in OURS.values() if "healthcheck" in service]
    modules = [command[2] for command in commands if command[:2] == ["python", "-m"]]
    assert len(modules) == 7
    for module in modules:
        spec = importlib.util.find_spec(module)
        assert spec, module
        if spec.submodule_search_locations is not None:
            assert importlib.util.find_spec(f"{module}.__main__"), f"{module} can't be run"


def test_every_queue_has_a_worker_that_is_asked_for_its_own() -> None:
    served = []
    for name, service in OURS.items():
        if "workers" in compose.command(service):
            queues = compose.command(service)[4::2]
            assert service["healthcheck"]["test"][3:] == ["workers.health", "--queue", *queues], name
            served += [known_queue(queue) for queue in queues]
    region = SERVICES["hosts"]["environment"]["ENGINE_REGION"]
    assert served == [CONTROL_QUEUE, WEBHOOK_QUEUE, engine_queue(region)]
    assert "engines" in SERVICES[f"worker-{region}"]["networks"]


def test_the_api_is_asked_on_the_port_where_it_listens() -> None:
    port = Settings().api_port
    assert f"{{$API_UPSTREAM:api:{port}}}" in (compose.ROOT / "deploy/proxy/Caddyfile").read_text()
    check = " ".join(SERVICES["api"]["healthcheck"]["test"])
    assert f"http://127.0.0.1:{port}/health/ready" in check
    assert ready.paths == {"/health/ready"}


def test_metrics_are_served_where_engine_hosts_dont_reach_them() -> None:
    for name, service in OURS.items():
        if name in compose.once():
            continue
        host = service["environment"]["HEADWATER_METRICS_HOST"]
        if "engines" in service["networks"]:
            assert host in service["networks"]["control"]["aliases"], name
        else:
            assert host == "0.0.0.0", name
        port = service["environment"]["HEADWATER_METRICS_PORT"]
        assert not any(published.endswith(f":{port}") for published in service.get("ports", ())), name


def test_servers_are_reached_where_they_listen() -> None:
    ports = {"postgres": "5432", "mysql": "3306", "temporalio/server": "7233"}
    for service in SERVICES.values():
        for value in compose.environment(service, ENV | {"SECRET_KEYS": ""}).values():
            for other, port in re.findall(r"(?:@|^)([a-z][a-z0-9-]+):(\d+)", value):
                assert port == ports[compose.image(SERVICES[other]).split(":")[0]]


@together("name", SERVICES)
def test_mounted_files_exist_and_are_what_runs(name: str) -> None:
    mounted = compose.mounts(SERVICES[name])
    for source in mounted.values():
        if source.startswith("./"):
            assert (compose.ROOT / source).is_file(), source
    for argument in compose.command(SERVICES[name]):
        path = argument.rpartition("=")[2]
        if path.startswith(("/deploy/", "/etc/headwater/")):
            assert path in mounted


@together("script", sorted((compose.ROOT / "deploy").rglob("*.sh")), ids=lambda path: path.name)
def test_scripts_are_well_formed(script: Path) -> None:
    shell = "bash" if script.read_text().startswith("#!/bin/bash") else "sh"
    subprocess.run([shell, "-n", script], check=True)


def test_the_commands_that_scripts_run_exist() -> None:
    assert [command[1] for service in OURS.values() if (command := compose.command(service))[0] == "headwater"] == [
        "migrate"
    ]
    assert "migrate" in commands_of()
    script = (compose.ROOT / "deploy/hosts/register.sh").read_text().replace("\\\n", " ")
    calls = re.findall(r"headwater (hosts) (\w+)([^)|\n]*)", script)
    assert [verb for _, verb, _ in calls] == ["list", "add"]
    for group, verb, rest in calls:
        commands = commands_of()[group]
        assert isinstance(commands, click.Group)
        known = {option for parameter in commands.commands[verb].params for option in parameter.opts}
        assert set(re.findall(r"--[a-z-]+", rest)) <= known


def test_scripts_find_the_variables_that_they_read() -> None:
    for service in SERVICES.values():
        for source in compose.mounts(service).values():
            if source.endswith(("register.sh", "namespace.sh")):
                text = (compose.ROOT / source).read_text()
                assert set(re.findall(r"\$([A-Z][A-Z_]+)", text)) <= set(service["environment"])


def test_engine_hosts_are_hardened_like_the_embedded_ones() -> None:
    given = compose.options(SERVICES["postgres-us-east-1"])
    # Where it listens is the container's own affair.
    elsewhere = {"listen_addresses", "unix_socket_directories"}
    assert {
        item for item in (postgres._SETTINGS | postgres.DISCREET).items() if item[0] not in elsewhere
    } <= given.items()
    arguments = {argument.replace("--loose-", "--") for argument in (*mysql._OPTIONS, *mysql._FLAVOURED["mysql"])}
    places = {one for one in arguments if one.startswith(("--bind-address=", "--socket=", "--pid-file="))}
    assert arguments - places <= set(compose.command(SERVICES["mysql-us-east-1"]))


def test_temporal_is_tuned_like_the_embedded_one() -> None:
    path = compose.mounts(SERVICES["temporal"])[SERVICES["temporal"]["environment"]["DYNAMIC_CONFIG_FILE_PATH"]]
    given: dict[str, Any] = yaml.safe_load((compose.ROOT / path).read_text())
    assert {name: json.dumps(one["value"]) for name, [one] in given.items()} == temporal.DYNAMIC_CONFIG
