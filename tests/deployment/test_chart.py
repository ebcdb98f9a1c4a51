"""The Helm chart without a cluster: rendered over many values, validated for three versions of Kubernetes, and compared
with the compose file and with our settings."""

import json
import tomllib
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it has no types
import pytest
from helm_python import HelmError, lint

from app.core.secrets import new_key_setting
from app.core.settings import Settings
from tests.deployment import chart, compose, kubernetes
from tests.deployment.chart import RELEASE, Object
from tests.deployment.random_values import RandomValues
from workers.runner import _GRACEFUL_SHUTDOWN

VERSIONS = ("1.35", "1.36", "1.37")
SEEDS = range(50)
PEER = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "edge"}}}
INGRESS: Object = {
    "enabled": True,
    "className": "nginx",
    "host": "db.example.com",
    "tlsSecretName": "db-tls",
    "proxies": ["10.2.0.0/16", "10.3.0.0/16"],
}
EVERYTHING: Object = {
    "image": {"repository": "registry.example.com/headwater", "tag": "sha256:" + "a" * 64, "pullSecrets": ["pull"]},
    "secrets": {
        name: {"name": "other", "key": name}
        for name in ("temporalApiKey", "oidcClientSecret", "openaiApiKey", "awsAccessKeyId", "awsSecretAccessKey")
    },
    "settings": {"pool_size": 5, "webhook_retry_schedule": [0, 0.5, 2592000], "orphan_removal": False},
    "aws": {"region": "eu-west-1", "endpointUrl": "https://s3.example.com"},
    "files": {
        "controlCa": {"configMap": "authorities", "key": "control.pem"},
        "backupAgeIdentity": {"secret": "age", "key": "identity"},
        "temporalCert": {"secret": "temporal", "key": "tls.crt"},
        "temporalKey": {"secret": "temporal", "key": "tls.key"},
    },
    "backups": {"existingClaim": "backups"},
    "tracing": {
        "variables": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_TRACES_SAMPLER_ARG": "0.1"},
        "headers": {"name": "collector", "key": "headers"},
    },
    "api": {"autoscaling": {"enabled": True}, "nodeSelector": {"pool": "web"}},
    "regions": [
        {"name": "us-east-1", "ports": [5432, 3306], "hosts": [{"ipBlock": {"cidr": "10.8.0.0/16"}}]},
        {"name": "eu-west-1", "ports": [6432], "replicas": 3, "autoscaling": {"enabled": True, "maxReplicas": 9}},
    ],
    "ingress": INGRESS,
    "networkPolicy": {"apiFrom": [PEER], "metricsFrom": [PEER], "temporal": {"to": [PEER]}},
}
MATRIX: dict[str, Object] = {
    "defaults": {},
    "everything": EVERYTHING,
    "without-policies": {"networkPolicy": {"enabled": False}, "podDisruptionBudgets": False},
    "ingress": {"ingress": INGRESS},
}
_valid: set[str] = set()


def _check(objects: list[Object]) -> None:
    """What holds for every release, whatever its values."""
    for one in objects:
        text = json.dumps(one, sort_keys=True)
        for version in () if text in _valid else VERSIONS:
            kubernetes.validate(one, version)
        _valid.add(text)
        assert one["kind"] not in ("Secret", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")
        assert len(one["metadata"]["name"]) <= 63
    names = [(one["kind"], one["metadata"]["name"]) for one in objects]
    assert len(set(names)) == len(names)
    for component, pod in chart.pods(objects).items():
        _check_pod(pod)
        if component != "migrate":
            _check_deployment(chart.of_kind(objects, "Deployment")[component])


def _check_pod(pod: Object) -> None:
    assert pod["automountServiceAccountToken"] is False
    security = pod["securityContext"]
    assert (security["runAsNonRoot"], security["runAsUser"], security["runAsGroup"]) == (True, 10001, 10001)
    assert "useradd --system --uid 10001" in (compose.ROOT / "Dockerfile").read_text()
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    [container] = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"] is not None
    mounted = {one["name"] for one in container["volumeMounts"]}
    assert mounted == {one["name"] for one in pod["volumes"]}


def _check_deployment(deployment: Object) -> None:
    selector = deployment["spec"]["selector"]["matchLabels"]
    template = deployment["spec"]["template"]
    assert selector.items() <= template["metadata"]["labels"].items()
    spread = template["spec"]["topologySpreadConstraints"]
    assert all(one["labelSelector"]["matchLabels"] == selector for one in spread)
    [container] = template["spec"]["containers"]
    before = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
    assert template["spec"]["terminationGracePeriodSeconds"] > _GRACEFUL_SHUTDOWN.total_seconds() + before
    assert "readinessProbe" in container


def test_it_has_the_version_of_the_project() -> None:
    project = tomllib.loads((compose.ROOT / "pyproject.toml").read_text())["project"]
    metadata = chart.chart().metadata
    assert {metadata["version"], metadata["appVersion"]} == {project["version"]}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("values", MATRIX.values(), ids=MATRIX)
def test_it_lints(values: Object, version: str) -> None:
    report = lint(str(chart.FOLDER), chart.complete(values), strict=True, kube_version=f"v{version}.0")
    assert report["errors"] == []
    assert [one for one in report["messages"] if one["severity"] > 1] == []


@pytest.mark.parametrize("values", MATRIX.values(), ids=MATRIX)
def test_it_renders_valid_objects(values: Object) -> None:
    _check(chart.rendered(values))


def test_the_schemas_are_strict() -> None:
    deployment = chart.of_kind(chart.rendered(), "Deployment")["api"]
    deployment["spec"]["template"]["spec"]["containers"][0]["imagePullPolice"] = "Always"
    for version in VERSIONS:
        with pytest.raises(jsonschema.ValidationError, match="imagePullPolice"):
            kubernetes.validate(deployment, version)


def test_it_renders_valid_objects_of_any_values() -> None:
    schema = chart.schema()
    for seed in SEEDS:
        values = RandomValues(schema, seed).values()
        try:
            _check(chart.rendered(values))
        except Exception as error:
            pytest.fail(f"seed {seed}: {error}\n{json.dumps(values)}")


def test_names_fit_however_long_a_release_is_called() -> None:
    _check(chart.rendered({"regions": [{"name": "r" * 24, "ports": [1]}]}, release="r" * 53))


# --- the compose file ---

_ELSEWHERE = {
    "proxy": "the ingress",
    "hosts": "the command of operators, by exec",
    "control-postgres": "outside",
    "temporal-postgres": "outside",
    "temporal-schema": "outside",
    "temporal": "outside",
    "temporal-namespace": "outside",
    "temporal-ui": "outside",
    "postgres-us-east-1": "outside",
    "mysql-us-east-1": "outside",
}
"""What the chart leaves to others, and to whom."""


def test_every_service_of_the_compose_file_has_its_counterpart() -> None:
    objects = chart.rendered({"ingress": INGRESS})
    pods = chart.pods(objects)
    assert pods.keys() | _ELSEWHERE.keys() == compose.services().keys()
    assert not pods.keys() & _ELSEWHERE.keys()
    for name, pod in pods.items():
        service = compose.services()[name]
        assert pod["containers"][0]["command"] == compose.command(service), name
    for name in pods.keys() - {"api", "migrate"}:
        probe = pods[name]["containers"][0]["readinessProbe"]["exec"]["command"]
        assert probe == compose.services()[name]["healthcheck"]["test"][1:]
    assert "api" in chart.of_kind(objects, "Ingress")


def test_secrets_are_where_they_are_in_the_compose_file() -> None:
    objects = chart.rendered(EVERYTHING | {"regions": [{"name": "us-east-1", "ports": [5432]}]})
    for name in chart.pods(objects):
        given = {one for one, value in chart.environment(objects, name).items() if isinstance(value, dict)}
        service = compose.services()[name]["environment"]
        # Not in the compose file: signing in through a provider, Temporal Cloud, and a collector's key.
        more = {"HEADWATER_OIDC_CLIENT_SECRET", "HEADWATER_TEMPORAL_API_KEY", "OTEL_EXPORTER_OTLP_HEADERS"}
        assert given - more <= service.keys(), name
        assert ("HEADWATER_CONTROL_ADMIN_DSN" in given) == (name == "migrate")
    region = chart.environment(objects, "worker-us-east-1")
    assert {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_ENDPOINT_URL"} <= region.keys()
    assert region["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://collector:4318"
    owner = chart.environment(objects, "migrate")["HEADWATER_CONTROL_ADMIN_DSN"]["name"]
    assert owner != chart.environment(objects, "api")["HEADWATER_CONTROL_DSN"]["name"]


def test_the_policies_are_the_networks_of_the_compose_file() -> None:
    objects = chart.rendered({"networkPolicy": {"apiFrom": [PEER]}})
    reach = {name: _reached(objects, name) for name in chart.pods(objects)}
    for name, reached in reach.items():
        networks = set(compose.services()[name]["networks"])
        # There the proxy and the control network have other names.
        expected = {"control", *(networks & {"engines", "outgoing"})} | ({"temporal"} if name != "migrate" else set())
        assert reached == expected, name
    incoming = [
        policy["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"]
        for policy in chart.of_kind(objects, "NetworkPolicy").values()
        if policy["spec"].get("ingress")
    ]
    assert incoming == ["api"]


def _reached(objects: list[Object], component: str) -> set[str]:
    found = set()
    for policy in chart.of_kind(objects, "NetworkPolicy").values():
        selector = policy["spec"]["podSelector"]
        labels = {"app.kubernetes.io/component": component, "app.kubernetes.io/name": "headwater"}
        labels["app.kubernetes.io/instance"] = RELEASE
        if not _selects(selector, labels):
            continue
        for rule in policy["spec"].get("egress", ()):
            ports = {one["port"] for one in rule.get("ports", ())}
            if ports == {5432}:
                found.add("control")
            elif ports == {7233}:
                found.add("temporal")
            elif ports == {5432, 3306}:
                found.add("engines")
            elif not ports:
                found.add("outgoing")
    return found


def _selects(selector: Object, labels: dict[str, str]) -> bool:
    for one in selector.get("matchExpressions", ()):
        if (labels[one["key"]] in one["values"]) != (one["operator"] == "In"):
            return False
    wanted: dict[str, str] = selector.get("matchLabels", {})
    return wanted.items() <= labels.items()


def test_nothing_reaches_the_inside_by_the_way_out() -> None:
    [policy] = [one for name, one in chart.of_kind(chart.rendered(), "NetworkPolicy").items() if "outgoing" in name]
    for to in policy["spec"]["egress"][0]["to"]:
        assert to["ipBlock"]["except"]


# --- settings ---


def test_the_chart_takes_every_setting_and_no_other() -> None:
    given = chart.schema()["properties"]["settings"]["properties"]
    assert given == chart.settings_schema(), "python -m tests.deployment.chart writes it anew"
    assert chart.settings_schema().keys() | chart.SECRETS.keys() | chart.FILES.keys() | chart.OF_THE_IMAGE | (
        chart.EMBEDDED
    ) == set(Settings.__struct_fields__)


def test_a_setting_arrives_as_it_was_given() -> None:
    given = {
        name: value
        for name, value in {
            **{one: getattr(Settings(), one) for one in chart.settings_schema()},
            "temporal_address": "temporal.example.com:7233",
            "temporal_ui_url": "https://temporal.example.com",
            "trusted_proxies": ("10.0.0.0/8", "2001:db8::/32"),
            "public_url": "https://db.example.com",
            "webhook_retry_schedule": (0.0, 0.25, 2_592_000.0),
            "orphan_removal": False,
            "retention_seconds": 2_592_000.0,
            "audit_refusals_per_hour": 1_000_000,
            "log_level": "warning",
            "oidc_issuer": 'https://id.example.com/a"b: {c}',
        }.items()
        if value is not None
    }
    values: Object = json.loads(json.dumps(given))
    environ = chart.environment(chart.rendered({"settings": values, "ingress": INGRESS}), "api")
    texts = {name: value for name, value in environ.items() if isinstance(value, str)}
    loaded = Settings.load(texts)
    for name, value in given.items():
        assert getattr(loaded, name) == value, name


def test_what_an_ingress_says_of_clients() -> None:
    environ = chart.environment(chart.rendered({"ingress": INGRESS}), "api")
    loaded = Settings.load({name: value for name, value in environ.items() if isinstance(value, str)})
    assert loaded.public_url == "https://db.example.com"
    assert loaded.trusted_proxies == ("10.2.0.0/16", "10.3.0.0/16")
    assert (loaded.metrics_host, loaded.metrics_port) == ("0.0.0.0", 9464)


def test_files_are_mounted_where_settings_name_them() -> None:
    """The key that opens backups with the engine workers alone; the migration, which runs as the tables' owner, gets
    what it connects with."""
    files = {name: {"secret": "s", "key": "k.pem"} for name in chart.FILES.values()}
    files |= {"controlCa": {"configMap": "c", "key": "ca.pem"}}
    of_backups = "backup_age_identity_file"
    for values in MATRIX.values():
        objects = chart.rendered(values | {"files": files})
        regions = {f"worker-{one['name']}" for one in values.get("regions", [{"name": "us-east-1"}])}
        assert regions < chart.pods(objects).keys()
        for name, pod in chart.pods(objects).items():
            settings = set() if name == "migrate" else chart.FILES.keys() - {of_backups}
            settings |= {of_backups} if name in regions else set()
            environ = chart.environment(objects, name)
            named = {one: environ.get(f"HEADWATER_{one.upper()}") for one in chart.FILES}
            assert {one for one, path in named.items() if path} == settings, name
            [container] = pod["containers"]
            mounted = {one["mountPath"]: one["name"] for one in container["volumeMounts"]}
            folders = {str(named[one]).removesuffix("/k.pem") for one in settings} | {"/etc/headwater/control_ca"}
            assert {path for path in mounted if path.startswith("/etc")} == folders, name
            assert ("backup-age-identity" in {one["name"] for one in pod["volumes"]}) == (name in regions), name


def test_no_secret_is_in_what_is_rendered() -> None:
    """The chart has no place for one: not in the settings, and a reference has a name and a key alone."""
    secret = new_key_setting()
    for setting, name in chart.SECRETS.items():
        with pytest.raises(HelmError, match=setting):
            chart.rendered({"settings": {setting: secret}})
        with pytest.raises(HelmError, match=name):
            chart.rendered({"secrets": {name: secret}})
    for objects in map(chart.rendered, MATRIX.values()):
        for config in chart.of_kind(objects, "ConfigMap").values():
            assert not [name for name in config["data"] if name.endswith(("_DSN", "_KEY", "_KEYS", "_SECRET"))]


# --- wrong values ---

WRONG: dict[str, tuple[Object, str]] = {
    # Engine workers would write backups into their own pods, and lose them with these.
    "no-store-of-backups": ({"settings": {"backup_store": None}}, "backup_store"),
    "misspelt-value": ({"imge": {}}, "imge"),
    "misspelt-setting": ({"settings": {"pool_sise": 1}}, "pool_sise"),
    "setting-of-another-type": ({"settings": {"pool_size": "many"}}, "pool_size"),
    "negative-setting": ({"settings": {"pool_size": -1}}, "pool_size"),
    "no-region": ({"regions": []}, "regions"),
    "region-that-is-none": ({"regions": [{"name": "US East", "ports": [1]}]}, "name"),
    "port-that-is-none": ({"regions": [{"name": "us", "ports": [70000]}]}, "ports"),
    "ingress-without-tls": ({"ingress": INGRESS | {"tlsSecretName": ""}}, "tlsSecretName"),
    "ingress-without-host": ({"ingress": INGRESS | {"host": ""}}, "host"),
    "ingress-without-proxies": ({"ingress": INGRESS | {"proxies": []}}, "proxies"),
    "too-little-time-to-end": (
        {"workerControl": {"terminationGracePeriodSeconds": 5}},
        "terminationGracePeriodSeconds",
    ),
    "secret-without-key": ({"secrets": {"temporalApiKey": {"name": "x"}}}, "temporalApiKey"),
    "file-of-two": ({"files": {"plans": {"configMap": "a", "secret": "b", "key": "c"}}}, "plans"),
    "peer-that-is-none": ({"networkPolicy": {"apiFrom": [{}]}}, "apiFrom"),
    "key-of-a-collector-in-plain": ({"tracing": {"variables": {"OTEL_EXPORTER_OTLP_HEADERS": "x=y"}}}, "OTLP_HEADERS"),
    "variable-of-something-else": ({"tracing": {"variables": {"PATH": "/"}}}, "PATH"),
    "replicas-in-words": ({"api": {"replicas": "two"}}, "replicas"),
}


@pytest.mark.parametrize(("values", "field"), WRONG.values(), ids=WRONG)
def test_a_wrong_value_is_refused_by_its_name(values: Object, field: str) -> None:
    with pytest.raises(HelmError, match=field):
        chart.rendered(values)


def _objects_of(shape: Any) -> list[Object]:
    if isinstance(shape, list):
        return [found for one in shape for found in _objects_of(one)]
    if not isinstance(shape, dict):
        return []
    below = [found for one in shape.values() for found in _objects_of(one)]
    return [shape, *below] if shape.get("type") == "object" else below


def test_the_schema_is_closed() -> None:
    schema = chart.schema()
    jsonschema.Draft7Validator.check_schema(schema)
    opened = [one for one in _objects_of(schema) if one.get("additionalProperties", True) is True]
    # Helm's own, for charts that have this one as a part.
    assert opened == [schema["properties"]["global"]]


def test_every_value_has_its_place_in_the_defaults() -> None:
    assert chart.chart().values.keys() | {"global"} == chart.schema()["properties"].keys()
