"""The Helm chart, rendered without a cluster, and the part of its schema that follows from our settings: `python -m
tests.deployment.chart` writes that part anew."""

import json
from functools import cache
from pathlib import Path
from typing import Any, get_args

import msgspec
import yaml
from helm_python import Chart

from app.core.settings import Settings
from tests.deployment import compose

FOLDER = compose.ROOT / "deploy/helm/headwater"
RELEASE, NAMESPACE = "prod", "databases"
SECRETS = {
    "control_dsn": "controlDsn",
    "control_admin_dsn": "controlAdminDsn",
    "secret_keys": "secretKeys",
    "temporal_api_key": "temporalApiKey",
    "oidc_client_secret": "oidcClientSecret",
}
"""Settings that come from Secrets, and the values that name these."""
FILES = {
    "plans_file": "plans",
    "webhook_ca_file": "webhookCa",
    "backup_age_identity_file": "backupAgeIdentity",
    "temporal_tls_ca_file": "temporalCa",
    "temporal_tls_cert_file": "temporalCert",
    "temporal_tls_key_file": "temporalKey",
}
OF_THE_IMAGE = {"api_host", "api_port", "metrics_host", "metrics_port", "mysqldump", "mariadb_dump"}
EMBEDDED = {
    "connection_overcommit",
    "home",
    "host_capacity",
    "log_file_bytes",
    "mysqld",
    "postgres_bin",
    "regions",
    "temporal_port",
    "temporal_ui_port",
}

Object = dict[str, Any]


@cache
def chart() -> Chart:
    return Chart.load(str(FOLDER))


def complete(values: Object | None = None) -> Object:
    """The values with what has to be given, where they don't give it."""
    given = values or {}
    return {**given, "settings": {"backup_store": "s3://backups.example.com/prod", **given.get("settings", {})}}


def rendered(values: Object | None = None, *, release: str = RELEASE) -> list[Object]:
    """Every object. Raises `HelmError` for values that the schema or a template refuses."""
    files = chart().render(complete(values), name=release, namespace=NAMESPACE)
    texts = [text for path, text in files.items() if not path.endswith("NOTES.txt")]
    return [one for text in texts for one in yaml.load_all(text, Loader=yaml.CSafeLoader) if one]


def of_kind(objects: list[Object], kind: str) -> dict[str, Object]:
    """By component, or by name where there is none."""
    found = [one for one in objects if one["kind"] == kind]
    component = "app.kubernetes.io/component"
    return {one["metadata"]["labels"].get(component, one["metadata"]["name"]): one for one in found}


def pods(objects: list[Object]) -> dict[str, Object]:
    """The pods' specifications, by component."""
    return {
        name: one["spec"]["template"]["spec"]
        for kind in ("Deployment", "Job")
        for name, one in of_kind(objects, kind).items()
    }


def environment(objects: list[Object], component: str) -> dict[str, Any]:
    """What a component finds: values, and for a key of a Secret its reference."""
    [container] = pods(objects)[component]["containers"]
    maps = {name: one["data"] for name, one in of_kind(objects, "ConfigMap").items()}
    found: dict[str, Any] = {}
    for source in container.get("envFrom", ()):
        found |= maps[source["configMapRef"]["name"]]
    for one in container["env"]:
        assert one["name"] not in found, one["name"]
        found[one["name"]] = one["value"] if "value" in one else one["valueFrom"]["secretKeyRef"]
    return found


def schema() -> Object:
    loaded: Object = json.loads((FOLDER / "values.schema.json").read_text())
    return loaded


def settings_schema() -> Object:
    """What the chart takes as `settings`: every setting that is no secret, no file, and neither the image's nor the
    embedded stack's."""
    left_out = SECRETS.keys() | FILES.keys() | OF_THE_IMAGE | EMBEDDED
    return {
        field.name: _shape(field.type)
        for field in sorted(msgspec.structs.fields(Settings), key=lambda one: one.name)
        if field.name not in left_out
    }


def _shape(kind: Any) -> Object:
    if type(None) in get_args(kind):
        kind = get_args(kind)[0]
    if kind in (str, Path):
        return {"type": "string", "minLength": 1}
    return msgspec.json.schema(kind)


if __name__ == "__main__":
    made = schema()
    made["properties"]["settings"]["properties"] = settings_schema()
    (FOLDER / "values.schema.json").write_text(json.dumps(made, indent=2) + "\n")
